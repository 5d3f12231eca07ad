"""Data directories with a vector store, made for damaging, and the check that one is whole."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from app.bootstrap.libraries import fingerprint_of
from app.core.ids import content_sha256, document_id
from app.core.types import ChunkSpan, DocumentDraft, Fingerprint, Library, Metadata
from app.core.vectors import l2_normalise
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.vector_checks import held, unproposed

LIBRARY = Library.PAPERS
WORD = "walrus"
"""A word of every document."""
CHUNKS_PER_DOCUMENT = 20
BATCH = 200
EARLIER_AT = 1_200
"""Vectors after which the state of the graph's files is kept: Chroma wrote them at 1,000 and
writes them again at 2,000."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a healthy store came to be."""

    vectors: int
    deleted_documents: int = 0
    written_again: int = 0
    """Documents replaced by a new revision with other vectors."""
    reopened: int = 0
    """How often the store was closed and opened in between."""

    @property
    def name(self) -> str:
        """What is not as in the plainest store."""
        return ", ".join(f"{key} {value}" for key, value in asdict(self).items() if value)

    @property
    def leaves_nothing(self) -> bool:
        """Whether every document is deleted, so that no question finds any."""
        return self.deleted_documents * CHUNKS_PER_DOCUMENT >= self.vectors


HEALTHY: Sequence[Recipe] = (
    Recipe(20), Recipe(200), Recipe(980), Recipe(1000), Recipe(1020), Recipe(1200), Recipe(1980), Recipe(2000), Recipe(2020),
    Recipe(2600), Recipe(3000), Recipe(4000), Recipe(200, deleted_documents=5), Recipe(1200, deleted_documents=10),
    Recipe(2600, deleted_documents=60), Recipe(1200, written_again=5), Recipe(2600, written_again=40),
    Recipe(1200, reopened=2), Recipe(2600, deleted_documents=20, written_again=20, reopened=3),
    Recipe(1200, deleted_documents=60),
)  # fmt: skip
"""Twenty of them: below, at and above the thousands at which Chroma writes its files, grown,
thinned, emptied, reopened."""

DAMAGED = Recipe(2600)
"""What the kinds of damage are done to: two writes of the files, 600 vectors in the log."""


def options_at(data_dir: Path) -> IndexOptions:
    """Return options of a data directory whose libraries are searched in Chroma alone."""
    return IndexOptions(
        data_dir,
        data_dir / "chroma",
        tantivy_threads=1,
        tantivy_heap_bytes=15_000_000,
        vector_cache_vectors=0,
    )


def fingerprint(model_cache: Path) -> Fingerprint:
    """Return what the server's own embedder says of itself, so that its questions are searched among these vectors."""
    return fingerprint_of(MiniLmEmbedder(model_cache, threads=1).identity, IngestOptions())


def build(data_dir: Path, recipe: Recipe, made_with: Fingerprint) -> None:
    """Make a data directory; beside its store, `earlier` keeps the graph's files of an earlier state."""
    rng = np.random.default_rng(recipe.vectors)
    rounds = recipe.reopened + 1
    documents = list(range(recipe.vectors // CHUNKS_PER_DOCUMENT))
    for n in range(rounds):
        with IndexStore(options_at(data_dir), vector_store="foreground") as store:
            store.writer.write([_draft(number, 0) for number in documents[n::rounds]])
            store.writer.claim(LIBRARY, made_with)
            _embed(store, rng, made_with.dimension, keep_at=EARLIER_AT if rounds == 1 else 0)
    with IndexStore(options_at(data_dir), vector_store="foreground") as store:
        for number in documents[: recipe.deleted_documents]:
            store.writer.delete(LIBRARY, document_id(LIBRARY, _key(number)))
        store.writer.write(
            [
                _draft(number, 1)
                for number in documents[recipe.deleted_documents :][: recipe.written_again]
            ]
        )
        _embed(store, rng, made_with.dimension)


def _embed(store: IndexStore, rng: np.random.Generator, dimension: int, keep_at: int = 0) -> None:
    done = 0
    while chunks := store.writer.pending_vectors(LIBRARY, BATCH):
        rows = l2_normalise(rng.normal(size=(len(chunks), dimension)))
        store.writer.write_vectors(LIBRARY, [chunk.chunk_id for chunk in chunks], rows)
        store.writer.apply(LIBRARY)
        done += len(chunks)
        if done == keep_at:
            chroma = store.options.chroma_dir
            for header in chroma.glob("*/header.bin"):
                shutil.copytree(header.parent, chroma.with_name("earlier") / header.parent.name)


def _key(number: int) -> str:
    return f"d{number:05d}.txt"


def _draft(number: int, revision: int) -> DocumentDraft:
    parts = [
        f"{WORD} number {number} in part {part} of revision {revision}. "
        for part in range(CHUNKS_PER_DOCUMENT)
    ]
    text = "".join(parts)
    spans, start = [], 0
    for ordinal, part in enumerate(parts):
        spans.append(ChunkSpan(ordinal, start, start + len(part), "body", None))
        start += len(part)
    return DocumentDraft(
        library=LIBRARY,
        doc_id=document_id(LIBRARY, _key(number)),
        source_key=_key(number),
        filename=_key(number),
        sha256=content_sha256(text.encode()),
        type="text",
        text=text,
        metadata=Metadata(f"Document {number}", (), None),
        chunks=tuple(spans),
        pages=(),
        has_original=False,
    )


def wholeness(data_dir: Path) -> tuple[int, int, list[str]]:
    """Open a data directory like the next start, and ask Chroma for its list, and for every vector by a search for itself.

    Returns:
        How many vectors there are, how many are found by themselves, and what else is wrong.
    """
    with IndexStore(options_at(data_dir), vector_store="foreground") as store:
        vectors, listed = store.catalog.counts(LIBRARY).embedded, held(store, LIBRARY)
        wrong = [] if len(listed) == vectors else [f"Chroma lists {len(listed)} of {vectors}"]
        return vectors, vectors - len(unproposed(store, LIBRARY)), wrong
