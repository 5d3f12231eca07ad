"""Libraries, documents, their text and chunks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from app.api.schemas.answers import Notice, Signals
from app.api.schemas.base import LibraryName, Reply, Request, WebLink
from app.api.schemas.query import Year
from app.core.removal import OUT_OF_REACH
from app.core.types import Band, EmbeddingState
from app.core.types import Document as CoreDocument

Name = Annotated[str, StringConstraints(min_length=1, max_length=500, strip_whitespace=True)]


class Document(Reply):
    """A live document."""

    doc_id: str
    library: LibraryName
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
    sample: bool = Field(description="the document came with the program")
    added_at: str
    updated_at: str

    @classmethod
    def of(cls, document: CoreDocument) -> Document:
        """Return a document as the API shows it."""
        return cls(
            doc_id=document.doc_id,
            library=document.library.value,
            source_key=document.source_key,
            filename=document.filename,
            title=document.title,
            authors=list(document.authors),
            year=document.year,
            arxiv_id=document.arxiv_id,
            type=document.type,
            sha256=document.sha256,
            revision=document.revision,
            state=document.state,
            characters=document.characters,
            pages=document.pages,
            chunks=document.chunks,
            embedded=document.embedded,
            duplicate_of=document.duplicate_of,
            source_url=document.source_url,
            licence=document.licence,
            has_original=document.has_original,
            flags=list(document.flags),
            sample=document.is_sample,
            added_at=document.added_at,
            updated_at=document.updated_at,
        )


class DocumentPage(Reply):
    """One page of a library."""

    documents: list[Document]
    next_cursor: str | None = Field(description="pass it as `cursor`; null on the last page")


class DocumentCorrection(Request):
    """Fields to correct; omitted fields stay as they are."""

    title: Name | None = None
    authors: list[Name] | None = Field(None, max_length=200)
    year: Year | None = None


class Deleted(Reply):
    """Counts of what a deletion removed."""

    doc_id: str
    chunks: int
    vectors: int
    originals: int
    quotes_blanked: int = Field(description="number of its quotes removed from stored answers")
    purged: bool = Field(description="false while the grace period runs")
    out_of_reach: list[str] = Field(list(OUT_OF_REACH), description="copies that no deletion and no purge can remove")


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
    out_of_reach: list[str] = Field(list(OUT_OF_REACH), description="copies that no deletion and no purge can remove")


class TextSpan(Reply):
    """Exactly the characters [start, end) of a revision."""

    text: str
    start: int
    end: int
    length: int = Field(description="characters of the whole text")
    revision: int


class Chunk(Reply):
    """A unit of the index: always text[start:end] of the document."""

    index: int
    start: int
    end: int
    section: str
    page: int | None
    text: str


class ChunkList(Reply):
    """Chunks of one revision in order."""

    doc_id: str
    revision: int
    chunks: list[Chunk]


class PageBoxes(Reply):
    """Rectangles of a span on one page, in PDF points, origin top left."""

    page: int
    width: float
    height: float
    rects: list[tuple[float, float, float, float]]


class Fingerprint(Reply):
    """Versions that made a library's index."""

    embedding_model: str
    model_digest: str
    dimension: int
    query_prefix: str
    passage_prefix: str
    chunker: str
    analyzer: str


class Embedding(Reply):
    """The embedder of a library."""

    embedder: str = Field(description="`provider:model`; for an empty library, the one it would use now")
    reachable: bool
    detail: str = Field("", description="why it is unreachable, and the fix")

    @classmethod
    def of(cls, state: EmbeddingState) -> Embedding:
        """Return the state as the API shows it."""
        return cls(embedder=state.embedder, reachable=state.reachable, detail=state.detail)


class Library(Reply):
    """Counts and build state of one library."""

    library: LibraryName
    documents: int
    samples: int = Field(description="documents that came with the program; DELETE /api/v1/samples removes them")
    chunks: int
    embedded: int
    bytes: int
    fingerprint: Fingerprint | None = Field(description="null while the library has never been written")
    embedding: Embedding
    notices: list[Notice] = Field(description="notices about the library's vectors in every search, such as `reembed_offered`")
    build: str = Field(description="`ready`, or `rebuilding DONE of TOTAL` while an index is rebuilt from the catalog")


class LibraryList(Reply):
    """Both libraries."""

    libraries: list[Library]
    default_library: LibraryName


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


class SearchHit(Reply):
    """A ranked passage."""

    doc_id: str
    duplicate_of: str | None
    revision: int
    library: LibraryName
    title: str
    sample: bool = Field(description="the document came with the program")
    authors: list[str]
    year: int | None
    type: str
    section: str
    page: int | None
    chunk_index: int
    start: int
    end: int
    text: str
    highlights: list[Highlight]
    score: float
    band: Band | None
    signals: Signals
    source_url: WebLink
    view_url: str
    flags: list[str] = Field(description="findings at ingest a reader should see, of the whole document")


class SearchResponse(Reply):
    """Hits, best first; no answer."""

    query: str
    library: str
    hits: list[SearchHit]
    notices: list[dict[str, str]]
