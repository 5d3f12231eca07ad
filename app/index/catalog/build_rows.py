"""Name a build and hold rows of its vectors."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.types import FloatArray, Library
from app.index.catalog.facts import DocumentFacts, RowFacts


@dataclass(frozen=True, slots=True)
class Build:
    """A build of a library: whose vectors it holds, and of what dimension."""

    number: int
    library: Library
    fingerprint8: str
    dimension: int
    embedding_model: str


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Stored vectors of live chunks with what filters ask of them, in chunk order."""

    chunk_ids: list[int]
    rows: FloatArray
    """float32 `[n, dim]`, norm 1."""
    facts: list[RowFacts]
    documents: list[DocumentFacts]
    doc_ids: list[str]
