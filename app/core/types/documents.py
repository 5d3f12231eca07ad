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
    """Identity within a library: file name, relative path, arXiv id without version, wiki page id, `sample_<stem>`."""
    filename: str
    """Display name; data, never a path."""
    content: bytes | Path
    source_url: str | None = None
    licence: str | None = None
    doc_id: str | None = None
    """Fixed id (samples only); None derives it from library and source key."""
    metadata: Metadata | None = None
    """What the source itself says (arXiv); None takes what the text shows."""


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Characters `[start, end)` of the text stand on page `number` (from 1)."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading's own characters `[start, end)`; its section runs to the next heading of the same or a higher level."""

    start: int
    end: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known about a document besides its text; every field is correctable."""

    title: str
    authors: tuple[str, ...] = ()
    year: int | None = None
    arxiv_id: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """Plain text with the structure that was found in it. NFC, newline line ends, no NUL or lone surrogates."""

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
    """The stored text of one page and a half-open span within it, to be found on the page again."""

    number: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Where a span stands on a page: rectangles (x0, y0, x1, y1) in PDF points, origin top left, one per line."""

    page: int
    width: float
    height: float
    rects: tuple[tuple[float, float, float, float], ...]


class ChunkSpan(NamedTuple):
    """Where a chunk lies in its revision, before it has an id; a bulk run makes one per 800 characters."""

    ordinal: int
    start: int
    end: int
    section: str
    """Normalised section name, `body` when none was found."""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a document's characters; `covered_characters` counts non-blank ones inside chunks."""

    pages: int
    characters: int
    covered_characters: int
    chunks: int
    vectors: int


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """What happened to one file of an ingest."""

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
    """Edition of the source, to skip what is unchanged: of an article its revision id in the wiki, of a file who has read it."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a draft became in the catalog."""

    doc_id: str
    revision: int
    status: Literal["indexed", "unchanged", "replaced"]
    duplicate_of: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """What a deletion removed, by kind."""

    doc_id: str
    chunks: int
    vectors: int
    originals: int
    quotes_blanked: int
    purged: bool
