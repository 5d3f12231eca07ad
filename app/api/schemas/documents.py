"""Libraries, documents, their text and chunks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from app.answer.records import AskedFilters, PassageRecord, WebLink
from app.api.schemas.base import Reply, Request
from app.api.schemas.questions import OwnValue, Tag, Year
from app.core.ids import OUT_OF_REACH
from app.core.labels import MOST_TAGS
from app.core.types import Fingerprint, Library, LibraryName, Notice, Scope, Value

Name = Annotated[str, StringConstraints(min_length=1, max_length=500, strip_whitespace=True)]


LanguageCode = Annotated[str, StringConstraints(pattern="^[a-z]{2}$")]
"""ISO 639-1."""


class DocumentReply(Reply):
    """A live document."""

    doc_id: str
    library: Library
    source_key: str
    filename: str
    title: str
    authors: list[str]
    year: int | None
    arxiv_id: str | None
    type: str
    sha256: str
    revision: int
    state: Literal["live", "deleted"]
    characters: int
    pages: int
    chunks: int
    embedded: int = Field(description="chunks that have a vector")
    duplicate_of: str | None
    source_url: WebLink
    licence: str | None
    has_original: bool
    flags: list[str] = Field(description="findings at ingest a reader should see")
    language: str = Field(
        description="ISO 639-1; empty: unknown, its words are stemmed as English ones"
    )
    sample: bool = Field(
        validation_alias="is_sample", description="the document came with the program"
    )
    tags: list[str]
    metadata: dict[str, Value] = Field(
        description="own metadata by key: a text, a number, or a date as YYYY-MM-DD"
    )
    added_at: str
    updated_at: str


class DocumentPage(Reply):
    """One page of a library."""

    documents: list[DocumentReply]
    next_cursor: str | None = Field(description="pass it as `cursor`; null on the last page")


class DocumentCorrection(Request):
    """Fields to correct; omitted fields stay as they are."""

    title: Name | None = None
    authors: list[Name] | None = Field(None, max_length=200)
    year: Year | None = None
    language: LanguageCode | None = None
    tags: list[Tag] | None = Field(
        None, max_length=MOST_TAGS, description="all tags, in the place of those before"
    )
    metadata: dict[str, OwnValue | None] | None = Field(
        None,
        description="values by key; null takes a key away, others stay. A key keeps the kind of its"
        " first value: text, number, or date (YYYY-MM-DD)",
    )


class TagCount(Reply):
    """A tag and how many documents have it."""

    tag: str
    documents: int


class TagList(Reply):
    """Tags in order."""

    tags: list[TagCount]


class TagName(Request):
    """Another name of a tag; one that is there takes the documents too."""

    name: Tag


class SavedFilter(Reply):
    """A collection: the documents that a filter allows, now and later."""

    name: str
    filters: AskedFilters


class CollectionList(Reply):
    """Collections by name."""

    collections: list[SavedFilter]


class Deleted(Reply):
    """Counts of what a deletion removed."""

    doc_id: str
    chunks: int
    vectors: int
    originals: int
    quotes_blanked: int = Field(description="number of its quotes removed from stored answers")
    purged: bool = Field(description="false while the grace period runs")
    out_of_reach: list[str] = Field(
        list(OUT_OF_REACH), description="copies that no deletion and no purge can remove"
    )


class SamplesRemoved(Reply):
    """The number of sample documents removed, by library."""

    public: int
    papers: int


class Cleared(Reply):
    """Counts of what clearing a library removed."""

    library: LibraryName
    documents: int
    chunks: int
    vectors: int
    out_of_reach: list[str] = Field(
        list(OUT_OF_REACH), description="copies that no deletion and no purge can remove"
    )


class ChunkReply(Reply):
    """A unit of the index: always text[start:end] of the document."""

    index: int = Field(validation_alias="ordinal")
    start: int
    end: int
    section: str
    page: int | None
    text: str


class ChunkList(Reply):
    """Chunks of one revision in order."""

    doc_id: str
    revision: int
    chunks: list[ChunkReply]


class Embedding(Reply):
    """The embedder of a library."""

    embedder: str = Field(
        description="`provider:model`; for an empty library, the one it would use now"
    )
    reachable: bool
    detail: str = Field("", description="why it is unreachable, and the fix")


class LibraryStatus(Reply):
    """Counts and build state of one library."""

    library: LibraryName
    documents: int
    samples: int = Field(
        description="documents that came with the program; DELETE /api/v1/samples removes them"
    )
    chunks: int
    embedded: int
    bytes: int
    fingerprint: Fingerprint | None = Field(
        description="null while the library has never been written"
    )
    embedding: Embedding
    notices: list[Notice] = Field(
        description="notices about the library's vectors in every search, such as `reembed_offered`"
    )
    build: str = Field(
        description="`ready`, or `rebuilding DONE of TOTAL` while an index is rebuilt from the"
        " catalog"
    )


class LibraryList(Reply):
    """Both libraries."""

    libraries: list[LibraryStatus]
    default_library: Scope = Field(description="where a question looks that names no library")
    default_reason: str = Field(description="why there: DEFAULT_LIBRARY, or what libraries hold")


class CollectionStats(Reply):
    """Counts of a library."""

    library: LibraryName
    documents: int
    chunks: int
    embedded: int
    by_type: dict[str, int]


class Highlight(Reply):
    """A matched word in the hit's text, as offsets into `text`."""

    start: int
    end: int


class SearchHit(PassageRecord):
    """A ranked passage."""

    type: str
    text: str
    highlights: tuple[Highlight, ...]
    """The words of the query."""


class SearchResponse(Reply):
    """Hits, best first; no answer."""

    query: str
    library: str
    hits: list[SearchHit]
    notices: list[Notice]
