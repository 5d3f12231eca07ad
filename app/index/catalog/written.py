"""Cut a batch of drafts into runs; say what it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def distinct_runs(drafts: Sequence[DocumentDraft]) -> Iterator[list[int]]:
    """Yield positions in order, in runs without a repeated document."""
    run: list[int] = []
    seen: set[tuple[Library, str]] = set()
    for i, draft in enumerate(drafts):
        key = (draft.library, draft.source_key)
        if key in seen:
            yield run
            run, seen = [], set()
        run.append(i)
        seen.add(key)
    if run:
        yield run
