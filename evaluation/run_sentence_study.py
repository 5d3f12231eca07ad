"""What sentence vectors made at ingest would cost: `python -m evaluation.run_sentence_study [--data DIR] [--passages N]`.

Writes evaluation/reports/sentences.md and .json. What they gain is in the report of `run_fusion_study`.
"""

from __future__ import annotations

import json
import random
import time

from app.core.ports import Embedder
from app.core.text import sentence_spans
from app.evaluation.collections import Collection, from_folder
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.providers.minilm import MiniLmEmbedder
from evaluation.workbench import REPORTS, SEED, arguments

COLLECTIONS = ("squad", "cranfield", "pubmedqa")


def main() -> None:
    """Measure and write."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--passages", type=int, default=60, help="documents drawn per collection")
    given = parser.parse_args()
    embedder = MiniLmEmbedder(given.cache / "graph")
    lines = [
        "# Sentence vectors at ingest: what they would cost",
        "",
        "| collection | chunks | sentences per chunk | time: sentences / chunks | bytes: vector | bytes: sentences |",
        "|---|---|---|---|---|---|",
    ]
    figures: dict[str, dict[str, float]] = {}
    for name in COLLECTIONS:
        measured = _measure(from_folder(given.data / name), embedder, given.passages)
        figures[name] = measured
        cells = (f"{measured['chunks']:.0f}", *(f"{measured[key]:.2f}" for key in ("sentences per chunk", "time ratio")))
        own = 2 * embedder.identity.dimension  # float16, as the catalog stores vectors
        lines.append(f"| {name} | {' | '.join(cells)} | {own} | {own * measured['sentences per chunk']:.0f} |")
    lines += [
        "",
        f"{given.passages} documents per collection, seed {SEED}; bytes are per chunk, float16; {embedder.identity.model}, int8.",
    ]
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "sentences.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (REPORTS / "sentences.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines))


def _measure(collection: Collection, embedder: Embedder, documents: int) -> dict[str, float]:
    options = IngestOptions()
    parser = DirectParser(options)
    chunks: list[str] = []
    for passage in random.Random(SEED).sample(collection.passages, min(documents, len(collection.passages))):
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
    return {"chunks": len(chunks), "sentences per chunk": len(sentences) / len(chunks), "time ratio": ratio}


if __name__ == "__main__":
    main()
