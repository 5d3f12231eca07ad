"""Documents as they are kept, and what made their vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.core.types.vocabulary import SAMPLE_PREFIX, Library


@dataclass(frozen=True, slots=True)
class Document:
    """A live document as lists and sources show it."""

    doc_id: str
    library: Library
    source_key: str
    revision: int
    sha256: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    type: str
    """A `DocumentType`."""
    state: Literal["live", "deleted"]
    characters: int
    pages: int
    chunks: int
    embedded: int
    duplicate_of: str | None
    source_url: str | None
    licence: str | None
    added_at: str
    updated_at: str
    filename: str = ""
    arxiv_id: str | None = None
    has_original: bool = False
    flags: tuple[str, ...] = ()
    """Findings at ingest that a reader should see, for example `override`, `stripped:12`."""
    language: str = ""
    """ISO 639-1; empty: unknown, treated as English."""

    @property
    def is_sample(self) -> bool:
        """Return whether the document came with the program."""
        return self.doc_id.startswith(SAMPLE_PREFIX)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stored chunk of one revision."""

    chunk_id: int
    doc_id: str
    library: Library
    revision: int
    ordinal: int
    start: int
    end: int
    section: str
    page: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A live chunk joined with its document."""

    chunk: Chunk
    document: Document


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Characters `[start, end)` of a revision, and the length of the whole text."""

    text: str
    start: int
    end: int
    length: int
    revision: int


@dataclass(frozen=True, slots=True)
class LibraryCounts:
    """Counts from the catalog; `embedded` chunks have a stored vector."""

    documents: int
    chunks: int
    embedded: int
    bytes: int
    by_type: Mapping[str, int] = field(default_factory=dict)
    samples: int = 0
    """Documents that came with the program."""

    @property
    def is_disposable(self) -> bool:
        """Return whether no document is a person's own: empty, or samples only."""
        return self.documents == self.samples


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Versions that made a library's vectors and lexical index.

    Indexes with equal fingerprints are interchangeable.
    """

    embedding_model: str
    model_digest: str
    dimension: int
    query_prefix: str
    passage_prefix: str
    chunker: str
    analyzer: str


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """The embedder that made a vector.

    `max_tokens` is the longest passage the model reads whole.
    """

    provider: str
    model: str
    digest: str
    dimension: int
    max_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""
    languages: frozenset[str] = frozenset()
    """That the model knows, ISO 639-1; empty: it is not known which."""

    def knows(self, language: str) -> bool:
        """Return whether vectors of a language mean anything, as far as is known."""
        return not self.languages or not language or language in self.languages
