"""Measure the cost of sentence vectors at ingest.

`python -m evaluation.studies.sentences [--data DIR] [--passages N]`

Writes evaluation/reports/sentences.md and .json. What they gain is in the report of
`run_fusion_study`.
"""

from __future__ import annotations

import random
import time

from app.bootstrap.libraries import fingerprint_of
from app.core.ids import fingerprint8
from app.core.ports import Embedder
from app.core.release import checkout_sha
from app.core.sentences import sentence_spans
from app.evaluation.collections import Collection, from_folder
from app.evaluation.report import Provenance
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.providers.minilm import MiniLmEmbedder
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, write_figures

COLLECTIONS = ("squad", "cranfield", "pubmedqa")


def main() -> None:
    """Measure and write."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--passages", type=int, default=60, help="documents drawn per collection")
    given = parser.parse_args()
    embedder = MiniLmEmbedder(given.cache / "graph")
    lines = [
        "| collection | chunks | sentences per chunk | bytes: vector | bytes: sentences |",
        "|---|---|---|---|---|",
    ]
    figures: dict[str, float] = {}
    timings: dict[str, float] = {}
    own = 2 * embedder.identity.dimension  # float16, as the catalog stores vectors
    for name in COLLECTIONS:
        chunks, sentences, ratio = _measure(
            from_folder(given.data / name), embedder, given.passages
        )
        figures |= {f"{name}: chunks": chunks, f"{name}: sentences per chunk": sentences}
        timings[f"{name}: time of sentences / time of chunks"] = ratio
        lines.append(f"| {name} | {chunks} | {sentences:.2f} | {own} | {own * sentences:.0f} |")
    identity, ingest = embedder.identity, IngestOptions()
    made = Provenance(
        checkout_sha(),
        hash_of(ingest),
        fingerprint8(fingerprint_of(identity, ingest)),
        {identity.model: identity.digest},
        SEED,
    )
    remark = (
        f"{given.passages} documents per collection; bytes are per chunk, float16;"
        f" {identity.model}, int8."
    )
    title = "Sentence vectors at ingest: what they would cost"
    write_figures(Figures(title, made, figures, timings, (remark,), (*lines, "")), "sentences")


def _measure(
    collection: Collection, embedder: Embedder, documents: int
) -> tuple[int, float, float]:
    """Return chunks, sentences a chunk, and embedding time of sentences per chunk's."""
    options = IngestOptions()
    parser = DirectParser(options)
    chunks: list[str] = []
    for passage in random.Random(SEED).sample(
        collection.passages, min(documents, len(collection.passages))
    ):
        parsed = parser.parse(passage.document.encode(), f"{passage.id}.txt")
        spans = chunk(parsed, options, embedder.count_tokens, embedder.identity.max_tokens)
        chunks += [parsed.text[span.start : span.end] for span in spans]
    sentences = [text[start:end] for text in chunks for start, end in sentence_spans(text)]
    seconds = []
    for texts in (chunks, sentences, chunks, sentences):  # twice each: the quicker counts
        start = time.perf_counter()
        embedder.embed_passages(texts)
        seconds.append(time.perf_counter() - start)
    ratio = min(seconds[1], seconds[3]) / min(seconds[0], seconds[2])
    return len(chunks), len(sentences) / len(chunks), ratio


if __name__ == "__main__":
    main()
