"""Say what a batch of drafts wrote."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.core.types import DocumentDraft, Library, WriteResult


@dataclass(frozen=True, slots=True)
class Stored:
    """A draft that became a revision: what the lexical index has to hold."""

    doc: int
    draft: DocumentDraft
    first_chunk_id: int
    title: str
    authors: tuple[str, ...]
    year: int | None
    language: str
    superseded: int | None
    """The revision that was live before, if any."""


@dataclass(slots=True)
class Written:
    """The result of a batch."""

    results: list[WriteResult] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    removed: dict[Library, list[int]] = field(default_factory=dict)
    """Chunk ids that left the dense projections."""
    last_seq: dict[Library, int] = field(default_factory=dict)
