"""Documents on their way in: bytes, text, chunks, outcome."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from app.core.types.vocabulary import Library


@dataclass(frozen=True, slots=True)
class RawDocument:
    """One source before parsing: bytes in memory or on disk, and where they came from."""

    source_key: str
    """Identity within a library: file name, relative path, arXiv id without version, wiki page
    id, `sample_<stem>`."""
    filename: str
    """Display name; data, never a path."""
    content: bytes | Path
    source_url: str | None = None
    licence: str | None = None
    doc_id: str | None = None
    """Fixed id (samples only); None derives it from library and source key."""
    metadata: Metadata | None = None
    """What the source itself says (arXiv); None takes what the text shows."""
    job_id: str = ""
    """The job that accepted it; a deletion after that keeps it out."""


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Characters `[start, end)` of the text stand on page `number` (from 1)."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading's characters `[start, end)`.

    Its section runs to the next heading of the same or a higher level.
    """

    start: int
    end: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """Facts about a document besides its text; every field can be corrected."""

    title: str
    authors: tuple[str, ...] = ()
    year: int | None = None
    arxiv_id: str | None = None
    language: str = ""
    """ISO 639-1; empty: unknown, treated as English."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """Plain text and its structure.

    NFC, lines end with newline, no NUL, no lone surrogates.
    """

    text: str
    media_type: str
    pages: tuple[PageSpan, ...] = ()
    headings: tuple[Heading, ...] = ()
    title: str | None = None
    authors: tuple[str, ...] = ()
    year: int | None = None
    warnings: tuple[str, ...] = ()
    stripped_characters: int = 0
    """Invisible and tag characters removed while parsing (hidden-instruction carriers)."""


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's stored text and a half-open span in it, to locate on the page."""

    number: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Rectangles of a span on a page: (x0, y0, x1, y1), one per line.

    PDF points, origin top left.
    """

    page: int
    width: float
    height: float
    rects: tuple[tuple[float, float, float, float], ...]


class ChunkSpan(NamedTuple):
    """The place of a chunk in its revision, before the chunk has an id.

    A bulk run makes one per 800 characters.
    """

    ordinal: int
    start: int
    end: int
    section: str
    """Normalised section name, `body` when none was found."""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Counts of a document's characters.

    `covered_characters` counts non-blank ones inside chunks.
    """

    pages: int
    characters: int
    covered_characters: int
    chunks: int
    vectors: int


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """The outcome of one file of an ingest."""

    filename: str
    doc_id: str | None
    status: Literal["indexed", "unchanged", "replaced", "failed"]
    reason: str | None = None
    code: str | None = None
    """The error code when failed (see core.errors)."""
    duplicate_of: str | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class DocumentDraft:
    """A parsed and chunked document, ready to be written as a revision."""

    library: Library
    doc_id: str
    source_key: str
    filename: str
    sha256: str
    """Of the original bytes; for bulk text, of the text."""
    type: str
    text: str
    metadata: Metadata
    chunks: tuple[ChunkSpan, ...]
    pages: tuple[PageSpan, ...] = ()
    source_url: str | None = None
    licence: str | None = None
    flags: tuple[str, ...] = ()
    has_original: bool = False
    source_revision: str | None = None
    """Edition of the source, to skip what is unchanged: of an article its revision id in the
    wiki, of a file who has read it."""
    job_id: str = ""
    """The job that accepted it; empty: no deletion keeps it out."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of one draft in the catalog."""

    doc_id: str
    revision: int
    status: Literal["indexed", "unchanged", "replaced"]
    duplicate_of: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """Counts of what a deletion removed, by kind."""

    doc_id: str
    chunks: int
    vectors: int
    originals: int
    quotes_blanked: int
    purged: bool
