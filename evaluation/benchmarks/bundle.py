"""Export and import a library, ask both, and tamper with the file.

Into evaluation/reports/bundle.{md,json}; 500 questions.

make bench-bundle
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.core.errors import FingerprintMismatch, IndexDamaged, InvalidInput
from app.core.ids import document_id, fingerprint8
from app.core.ports import Embedder
from app.core.text import words
from app.core.types import ChunkSpan, DocumentDraft, Fingerprint, Library, Metadata, Scored
from app.ingest.embedding import VectorBackfill
from app.ingest.names import IngestOptions
from app.ingest.sources.synthetic import SyntheticEncyclopedia, SyntheticOptions
from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.paths import ROOT, parser_of
from evaluation.lib.served import Line, write

LIBRARY = Library.PUBLIC


DEPTH = 10


CHUNK_CHARACTERS = 600


def made_by(embedder: Embedder) -> Fingerprint:
    """Return what the bench's vectors are made with."""
    identity = embedder.identity
    return Fingerprint(
        identity.model, identity.digest, identity.dimension, "", "", "bench", "en_stem"
    )


def options_at(data: Path) -> IndexOptions:
    """Return options under which the cache answers."""
    return IndexOptions(
        data,
        data / "chroma",
        tantivy_threads=1,
        tantivy_heap_bytes=50_000_000,
        vector_cache_vectors=10**9,
    )


def fill(store: IndexStore, embedder: Embedder, articles: int) -> list[str]:
    """Write a synthetic library with vectors; return sentences to ask."""
    asked: list[str] = []
    drafts = []
    rng = random.Random(5)
    for article in SyntheticEncyclopedia(
        SyntheticOptions(articles=articles, mean_words=250, redirect_share=0.0)
    ):
        text = " ".join(article.source.split())
        if len(text) < 50:
            continue
        starts = range(0, len(text), CHUNK_CHARACTERS)
        spans = tuple(
            ChunkSpan(n, at, min(at + CHUNK_CHARACTERS, len(text)), "body", None)
            for n, at in enumerate(starts)
        )
        key = f"article-{article.key}"
        drafts.append(
            DocumentDraft(
                library=LIBRARY,
                doc_id=document_id(LIBRARY, key),
                source_key=key,
                filename=key,
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                type="text",
                text=text,
                metadata=Metadata(article.title, (), None),
                chunks=spans,
            )
        )
        found = words(text)
        at = rng.randrange(max(1, len(found) - 9))
        asked.append(" ".join(found[at : at + 8]))
    for at in range(0, len(drafts), 200):
        store.writer.write(drafts[at : at + 200])
    store.writer.claim(LIBRARY, made_by(embedder))
    VectorBackfill(store.writer, embedder, IngestOptions()).run(LIBRARY)
    store.writer.apply(LIBRARY)
    return asked


def answers(
    store: IndexStore, embedder: Embedder, questions: Sequence[str]
) -> list[tuple[list[object], list[object], list[object]]]:
    """Return per question: exact neighbours, best lexical chunks, graph neighbours."""
    collection = f"public__{fingerprint8(made_by(embedder))}"
    rows = []
    for question in questions:
        query = embedder.embed_query(question)
        exact = store.vectors.search(LIBRARY, query, DEPTH)
        lexical = store.lexical.search(LIBRARY, question, DEPTH)
        graph: list[object] = [
            (chunk.doc_id, chunk.ordinal)
            for chunk in store.catalog.chunks_by_id(
                LIBRARY, store.vector_stores[LIBRARY].search(collection, query, DEPTH)
            )
        ]
        rows.append((_named(store, exact), _scored(store, lexical), graph))
    return rows


def _named(store: IndexStore, hits: Sequence[Scored]) -> list[object]:
    """Chunks by what they are, as ids differ between stores."""
    return [
        (chunk.doc_id, chunk.ordinal)
        for chunk in store.catalog.chunks_by_id(LIBRARY, [hit.chunk_id for hit in hits])
    ]


def _scored(store: IndexStore, hits: Sequence[Scored]) -> list[object]:
    return [*_named(store, hits), *(float(np.float32(hit.score)) for hit in hits)]


QUESTIONS = 500


@dataclass(frozen=True, slots=True)
class Journey:
    """Differences of two stores with the same library, and a broken file's effect."""

    chunks: int
    questions: int
    exact_same: int
    """Questions whose ten exact neighbours are the same chunks in the same order."""
    lexical_same: int
    """Questions whose ten best chunks by words are the same in the same order with the same
    scores."""
    graph_overlap: float
    """Mean share of the ten neighbours that both graphs return."""
    flips: int
    flips_refused: int
    """Flipped bytes that were refused before anything was written."""
    foreign_refused: bool
    resumed_whole: bool
    """An import killed on its way was complete after the same call again."""
    kept_by_kill: int
    """Documents the killed import had written."""
    faults: int
    """What fsck finds in the store that imported."""
    export_s: float
    import_s: float
    file_bytes: int


_IMPORT = """
import sys
from pathlib import Path
from app.storage.store import IndexStore
from evaluation.benchmarks.bundle import LIBRARY, options_at
with IndexStore(options_at(Path(sys.argv[1])), vector_store="off") as store:
    store.bundler.load(Path(sys.argv[2]), LIBRARY, lambda done, total: print(done, flush=True))
"""


def killed_import(data: Path, bundle: Path) -> None:
    """Begin an import in a process of its own and kill it after its first batch."""
    command = [sys.executable, "-c", _IMPORT, str(data), str(bundle)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def refused(store: IndexStore, bundle: Path, flips: int, seed: int) -> int:
    """Flip one byte at a time and import; return how many were refused cleanly."""
    content = bytearray(bundle.read_bytes())
    rng = random.Random(seed)
    count = 0
    for _ in range(flips):
        at, bit = rng.randrange(len(content)), 1 << rng.randrange(8)
        content[at] ^= bit
        bundle.write_bytes(content)
        try:
            store.bundler.load(bundle)
        except (IndexDamaged, InvalidInput):
            count += store.catalog.counts(LIBRARY).documents == 0
        content[at] ^= bit
    bundle.write_bytes(content)
    return count


def journey(directory: Path, embedder: Embedder, articles: int, flips: int) -> Journey:
    """Export a library, import it elsewhere with a kill in between, and compare."""
    bundle = directory / "library.documind"
    with IndexStore(options_at(directory / "source"), vector_store="foreground") as source:
        asked = fill(source, embedder, articles)
        questions = (asked * (QUESTIONS // len(asked) + 1))[:QUESTIONS]
        start = time.perf_counter()
        report = source.bundler.export(LIBRARY, bundle)
        export_s = time.perf_counter() - start
        before = answers(source, embedder, questions)
        counts = source.catalog.counts(LIBRARY)
    with IndexStore(options_at(directory / "empty"), vector_store="off") as empty:
        flips_refused = refused(empty, bundle, flips, seed=3)
    with IndexStore(options_at(directory / "foreign"), vector_store="off") as foreign:
        foreign_refused = _refuses_foreign(foreign, embedder, bundle)
    killed_import(directory / "target", bundle)
    with IndexStore(options_at(directory / "target"), vector_store="foreground") as target:
        kept = target.catalog.counts(LIBRARY).documents
        start = time.perf_counter()
        target.bundler.load(bundle)
        import_s = time.perf_counter() - start
        after = answers(target, embedder, questions)
        whole = target.catalog.counts(LIBRARY) == counts
        faults = len(target.fsck.run().faults)
    overlap = [
        len(set(one[2]) & set(two[2])) / max(1, len(one[2]))
        for one, two in zip(before, after, strict=True)
    ]
    return Journey(
        chunks=report.chunks,
        questions=len(questions),
        exact_same=sum(one[0] == two[0] for one, two in zip(before, after, strict=True)),
        lexical_same=sum(one[1] == two[1] for one, two in zip(before, after, strict=True)),
        graph_overlap=float(np.mean(overlap)),
        flips=flips,
        flips_refused=flips_refused,
        foreign_refused=foreign_refused,
        resumed_whole=whole and 0 < kept < report.documents,
        kept_by_kill=kept,
        faults=faults,
        export_s=export_s,
        import_s=import_s,
        file_bytes=bundle.stat().st_size,
    )


def _refuses_foreign(store: IndexStore, embedder: Embedder, bundle: Path) -> bool:
    """Return whether a library with another model's vectors refuses the file and stays."""
    text = "one document of another model"
    draft = DocumentDraft(
        LIBRARY, document_id(LIBRARY, "x"), "x", "x", hashlib.sha256(text.encode()).hexdigest(), "text", text,
        Metadata("x", (), None), (ChunkSpan(0, 0, len(text), "body", None),),
    )  # fmt: skip
    store.writer.write([draft])
    store.writer.claim(LIBRARY, replace(made_by(embedder), embedding_model="another"))
    VectorBackfill(store.writer, embedder, IngestOptions()).run(LIBRARY)
    try:
        store.bundler.load(bundle)
    except FingerprintMismatch:
        return store.catalog.counts(LIBRARY).documents == 1
    return False


REMARKS = (
    "A synthetic library, embedded by the embedded model, is exported; the file is imported into"
    " an empty data directory by a",
    "process that is killed after its first batch, and again. The same questions (eight words in a"
    " row out of documents) go to",
    "both stores: by the cache, by words, and through Chroma's graph, which each store built for"
    " itself.",
)


def main() -> int:
    """Run, report, and exit 1 when a limit does not hold."""
    parser = parser_of(__doc__)
    parser.add_argument("--articles", type=int, default=300)
    parser.add_argument("--flips", type=int, default=100)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="documind-bundle-") as temporary:
        found = journey(
            Path(temporary), MiniLmEmbedder(Path(temporary) / "models"), args.articles, args.flips
        )
    lines = [
        Line(
            f"exact neighbours identical, of {found.questions} questions",
            found.exact_same,
            found.questions,
            "",
            at_most=False,
        ),
        Line(
            f"words: order and scores identical, of {found.questions}",
            found.lexical_same,
            found.questions,
            "",
            at_most=False,
        ),
        Line(
            "overlap of the ten neighbours through the graph",
            found.graph_overlap,
            0.99,
            "",
            at_most=False,
        ),
        Line(
            f"flipped bytes refused before a write, of {found.flips}",
            found.flips_refused,
            found.flips,
            "",
            at_most=False,
        ),
        Line("a file of another model refused", found.foreign_refused, 1, "", at_most=False),
        Line(
            "a killed import whole after the same call again",
            found.resumed_whole,
            1,
            "",
            at_most=False,
        ),
        Line("faults that fsck finds afterwards", found.faults, 0, ""),
    ]
    command = (
        f"python -m evaluation.benchmarks.bundle --articles {args.articles} --flips {args.flips}"
    )
    figures = {
        "chunks": float(found.chunks),
        "file, MB": found.file_bytes / 1e6,
        "export, s": found.export_s,
        "import after the kill, s": found.import_s,
        "documents the killed import had written": float(found.kept_by_kill),
    }
    return write("bundle", "Export and import", REMARKS, lines, figures, command)


if __name__ == "__main__":
    sys.exit(main())
