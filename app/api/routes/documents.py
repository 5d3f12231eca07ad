"""Documents: list, show, correct, remove, restore; text, chunks, boxes, original."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import Field, StringConstraints
from starlette.responses import FileResponse

from app.api.deps import Composition, OneLibrary, SeenLibrary, needs, needs_all
from app.api.errors import declared
from app.api.schemas.base import Reply, Request
from app.api.schemas.questions import FilterFields, OwnValue, Tag, Year
from app.core.corrections import Mending
from app.core.errors import InvalidInput, NotFound
from app.core.labels import MOST_LABEL_CHARACTERS, MOST_TAGS
from app.core.links import OBSIDIAN
from app.core.types import (
    Chunk,
    DeleteResult,
    Document,
    Filters,
    Highlight,
    Labels,
    Library,
    Metadata,
    PageBoxes,
    PageSpan,
    PageText,
    TextSpan,
    page_texts,
)
from app.ingest.sources.obsidian import neighbours
from app.storage.maintenance.duplicates import MOST_DOCUMENTS, Duplicates, duplicates

if TYPE_CHECKING:
    from app.bootstrap.services import Services

papers_router = APIRouter(prefix="/api/v1", tags=["documents"], responses=declared())

Name = Annotated[str, StringConstraints(min_length=1, max_length=500, strip_whitespace=True)]

LanguageCode = Annotated[str, StringConstraints(pattern="^[a-z]{2}$")]
"""ISO 639-1."""


class DocumentPage(Reply):
    """One page of a library."""

    documents: list[Document]
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


class SpanToMark(Request):
    """Characters [start, end) of a revision, and what the mark says."""

    start: int = Field(ge=0, le=2**31)
    end: int = Field(ge=1, le=2**31)
    note: str = Field("", max_length=4000)


class HighlightRequest(Request):
    """What to mark in a copy of the original."""

    marks: list[SpanToMark] = Field(min_length=1, max_length=500)


DocumentName = Annotated[
    str, Path(min_length=1, max_length=1024, description="doc_id, source key or file name")
]


def resolve(services: Services, library: Library, name: str) -> str:
    """Return the doc_id of a document named by its id, source key, file name or title.

    The id is looked up first: it is indexed, the names of a large library are not.

    Raises:
        NotFound: None; the message says when the other library has it.
        Conflict: Several documents have this name.
    """
    try:
        return services.catalog.document(library, name).doc_id
    except NotFound as unknown:
        try:
            return services.catalog.find(library, name).doc_id
        except NotFound:
            raise unknown from None


@papers_router.get("/papers", **needs("read"))
def list_documents(
    services: Composition,
    library: OneLibrary,
    q: Annotated[str, Query(max_length=500, description="part of the title or file name")] = "",
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    tag: Annotated[
        list[Annotated[str, StringConstraints(max_length=MOST_LABEL_CHARACTERS)]],
        Query(max_length=MOST_TAGS, description="of those that have one of these tags"),
    ] = [],  # noqa: B006  # FastAPI copies it
) -> DocumentPage:
    """One page of a library's documents."""
    found, following = services.catalog.documents(
        library, q, cursor or None, limit, [*filter(None, tag)]
    )
    return DocumentPage(documents=list(found), next_cursor=following)


class DuplicateList(Reply):
    """Documents that are alike, group by group."""

    groups: list[Duplicates]


@papers_router.get("/duplicates", **needs("read"))
def list_duplicates(services: Composition, library: OneLibrary) -> DuplicateList:
    """Documents with the same bytes or text, or of one work; of a library of up to 20,000."""
    if (count := services.catalog.counts(library).documents) > MOST_DOCUMENTS:
        raise InvalidInput(
            f"library {library.value!r} has {count:,} documents; up to {MOST_DOCUMENTS:,} are"
            " looked through for duplicates"
        )

    def text_of(document: Document) -> str:
        return services.catalog.text(library, document.doc_id).text

    found = duplicates(services.catalog.every_document(library), text_of)
    return DuplicateList(groups=list(found))


@papers_router.api_route(
    "/papers/{doc_id}/restore",
    methods=["GET", "PATCH", "DELETE", "PUT"],
    include_in_schema=False,
    **needs("write"),
)
async def restore_is_a_post() -> None:
    """Refuse these paths: names may hold slashes, so `.../restore` looks like a name.

    Raises:
        HTTPException: Always 405.
    """
    raise HTTPException(405)


@papers_router.get("/papers/{doc_id:path}", **needs("read", "not_found", "conflict"))
def get_document(services: Composition, library: OneLibrary, doc_id: DocumentName) -> Document:
    """One document."""
    return services.catalog.document(library, resolve(services, library, doc_id))


@papers_router.patch(
    "/papers/{doc_id:path}", **needs("write", "not_found", "conflict", "disk_full")
)
def correct_document(
    services: Composition, library: OneLibrary, doc_id: DocumentName, correction: DocumentCorrection
) -> Document:
    """Correct title, authors, year or language; omitted fields stay, `year: null` removes it.

    The words of a document are stemmed by the rules of its language. Tags and own metadata change
    without indexing it again.
    """
    document = services.catalog.document(library, resolve(services, library, doc_id))
    given = correction.model_fields_set
    labels = Labels.of(correction.tags, correction.metadata)
    if labels:
        document = services.writer.label(library, document.doc_id, labels)
    if not given - {"tags", "metadata"}:
        return document
    metadata = Metadata(
        document.title, document.authors, document.year, document.arxiv_id, document.language
    )
    wanted = correction.model_dump(include={"title", "authors", "language"}, exclude_none=True)
    if "authors" in wanted:
        wanted["authors"] = tuple(wanted["authors"])
    if "year" in given:
        wanted["year"] = correction.year
    metadata = replace(metadata, **wanted)
    return services.writer.correct(library, document.doc_id, metadata)


labels_router = APIRouter(prefix="/api/v1", tags=["documents"], responses=declared())
TagPath = Annotated[str, Path(min_length=1, max_length=MOST_LABEL_CHARACTERS)]


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
    filters: Filters


class CollectionList(Reply):
    """Collections by name."""

    collections: list[SavedFilter]


@labels_router.get("/tags", **needs("read"))
def list_tags(services: Composition, library: SeenLibrary) -> TagList:
    """The tags of documents, and how many documents have each."""
    found = services.store.labels.tags(library)
    return TagList(tags=[TagCount(tag=tag, documents=count) for tag, count in found])


@labels_router.patch("/tags/{tag}", **needs("write", "not_found", "disk_full"))
def rename_tag(
    services: Composition, tag: TagPath, wanted: TagName, library: SeenLibrary
) -> TagCount:
    """Rename a tag in every document that has it."""
    count = services.store.labels.replace_tag(tag, wanted.name, library)
    return TagCount(tag=wanted.name, documents=count)


@labels_router.delete("/tags/{tag}", **needs("write", "not_found", "disk_full"))
def delete_tag(services: Composition, tag: TagPath, library: SeenLibrary) -> TagCount:
    """Take a tag from every document that has it; the documents stay."""
    return TagCount(tag=tag, documents=services.store.labels.replace_tag(tag, None, library))


@labels_router.get("/collections", **needs_all("read"))
def list_collections(services: Composition) -> CollectionList:
    """Saved filters, which search and ask take by name."""
    saved = services.store.labels.collections().items()
    return CollectionList(
        collections=[SavedFilter(name=name, filters=filters) for name, filters in saved]
    )


@labels_router.put("/collections/{name}", **needs_all("write", "disk_full"))
def save_collection(services: Composition, name: TagPath, filters: FilterFields) -> SavedFilter:
    """Save a filter under a name, in the place of any before.

    Documents that meet it later are in the collection too.
    """
    asked = filters.conditions()
    if filters.collection or not asked:
        raise InvalidInput("a collection needs at least one condition, and no other collection")
    services.store.labels.save_collection(name, asked)
    return SavedFilter(name=name, filters=asked)


@labels_router.delete("/collections/{name}", **needs_all("write", "not_found", "disk_full"))
def delete_collection(services: Composition, name: TagPath) -> SavedFilter:
    """Forget a saved filter; the documents stay."""
    filters = services.store.labels.collection(name)
    services.store.labels.delete_collection(name)
    return SavedFilter(name=name, filters=filters)


Grace = Annotated[
    float,
    Query(ge=0, le=30 * 86400, description="seconds during which the document can be restored"),
]


@papers_router.delete(
    "/papers/{doc_id:path}", **needs("write", "not_found", "conflict", "disk_full")
)
@papers_router.delete(
    "/ingest/{doc_id}",
    operation_id="delete_ingested",
    **needs("write", "not_found", "conflict", "disk_full"),
)
def delete_document(
    services: Composition, library: OneLibrary, doc_id: DocumentName, grace_s: Grace = 0
) -> DeleteResult:
    """Delete a document: hide it at once, purge it after the grace period."""
    return services.writer.delete(library, resolve(services, library, doc_id), grace_s)


@papers_router.post(
    "/papers/{doc_id}/restore", **needs("write", "not_found", "conflict", "disk_full")
)
def restore_document(services: Composition, library: OneLibrary, doc_id: DocumentName) -> Document:
    """Undo a removal within its grace."""
    return services.writer.restore(library, doc_id)


router = APIRouter(prefix="/api/v1/documents", tags=["documents"], **needs("read"))

Offset = Annotated[int, Query(ge=0, le=2**31, description="Unicode code points")]
Revision = Annotated[int | None, Query(ge=1, le=2**31, description="null: the live one")]


class ChunkList(Reply):
    """Chunks of one revision in order."""

    doc_id: str
    revision: int
    chunks: list[Chunk]


@router.get("/{doc_id}/text", responses=declared("not_found", "conflict"))
def document_text(
    services: Composition,
    library: OneLibrary,
    doc_id: DocumentName,
    start: Offset = 0,
    end: Annotated[int | None, Query(ge=0, le=2**31)] = None,
    revision: Revision = None,
    page: Annotated[
        int | None, Query(ge=1, le=2**31, description="that page instead of start and end")
    ] = None,
) -> TextSpan:
    """Return characters [start, end), or a page, of a revision; superseded revisions included."""
    found = resolve(services, library, doc_id)
    with services.catalog.snapshot():
        if page is not None:
            pages = services.catalog.pages(library, found, revision)
            span = next(((one.start, one.end) for one in pages if one.number == page), None)
            if span is None:
                raise NotFound(f"document {found!r} has no page {page}; it has {len(pages)} pages")
            start, end = span
        return services.catalog.text(library, found, start, end, revision)


class Neighbour(Reply):
    """A note that another one leads to, or that leads to it."""

    doc_id: str
    title: str


class Neighbours(Reply):
    """The notes around one, in order of titles."""

    links: list[Neighbour]
    backlinks: list[Neighbour]


@router.get("/{doc_id}/links", responses=declared("not_found", "conflict"))
def document_links(services: Composition, library: OneLibrary, doc_id: DocumentName) -> Neighbours:
    """Return the notes of an Obsidian vault that a note leads to, and those that lead to it."""
    note = services.catalog.document(library, resolve(services, library, doc_id))
    notes = services.catalog.labelled(library, OBSIDIAN) if OBSIDIAN in note.metadata else []
    to, back = (
        [Neighbour(doc_id=one.doc_id, title=one.title) for one in found]
        for found in neighbours(note, notes)
    )
    return Neighbours(links=to, backlinks=back)


@router.get("/{doc_id}/chunks", responses=declared("not_found", "conflict"))
def document_chunks(
    services: Composition, library: OneLibrary, doc_id: DocumentName, revision: Revision = None
) -> ChunkList:
    """The chunks of a revision in order."""
    found = resolve(services, library, doc_id)
    chunks = services.catalog.chunks(library, found, revision)
    shown = chunks[0].revision if chunks else services.catalog.document(library, found).revision
    return ChunkList(doc_id=found, revision=shown, chunks=list(chunks))


@router.get(
    "/{doc_id}/boxes",
    responses=declared("not_found", "no_original", "conflict", "unsupported_type", "unreadable"),
)
def document_boxes(
    services: Composition,
    library: OneLibrary,
    doc_id: DocumentName,
    start: Offset,
    end: Annotated[int, Query(ge=0, le=2**31)],
    revision: Revision = None,
) -> list[PageBoxes]:
    """Return the rectangles of characters [start, end) on the original's pages.

    PDF points, origin top left.
    """
    found = resolve(services, library, doc_id)
    original = services.catalog.original(library, found, revision)
    wanted = _on_pages(services, library, found, revision, start, end)
    if not wanted:
        return []
    words = services.writer.page_words(original.stem, [page.number for page in wanted])
    return list(services.parser.page_boxes(original, wanted, words))


def _on_pages(
    services: Services, library: Library, doc_id: str, revision: int | None, start: int, end: int
) -> tuple[PageText, ...]:
    if end < start:
        raise InvalidInput(f"end {end!r} must not be before start {start!r}")

    def read(from_: int, to: int) -> str:
        return services.catalog.text(library, doc_id, from_, to, revision).text

    pages = services.catalog.pages(library, doc_id, revision)
    mending = Mending(services.catalog.corrections(library, doc_id, revision))
    if not mending.corrections:
        return page_texts(pages, start, end, read)
    # The page shows what was read there, not what was written instead.
    whole = mending.undo(services.catalog.text(library, doc_id, revision=revision).text)
    pages = tuple(
        PageSpan(page.number, mending.back(page.start), mending.back(page.end)) for page in pages
    )
    start, end = mending.back(start), mending.back(end, is_end=True)
    return page_texts(pages, start, end, lambda from_, to: whole[from_:to])


@router.post(
    "/{doc_id}/highlights",
    operation_id="highlightedCopy",
    response_class=Response,
    responses={
        200: {
            "description": "a copy of the PDF with the marks",
            "content": {"application/pdf": {"schema": {"type": "string", "format": "binary"}}},
        },
        **declared("not_found", "no_original", "conflict", "unsupported_type", "unreadable"),
    },
)
def document_highlights(
    services: Composition,
    library: OneLibrary,
    doc_id: DocumentName,
    asked: HighlightRequest,
    revision: Revision = None,
) -> Response:
    """Return a copy of the original PDF in which spans are highlighted, each with its note.

    Any viewer shows them. The original is not touched. An encrypted or signed PDF is refused.
    """
    found = resolve(services, library, doc_id)
    original = services.catalog.original(library, found, revision)
    highlights = [
        Highlight(_on_pages(services, library, found, revision, one.start, one.end), one.note)
        for one in asked.marks
    ]
    pages = sorted({page.number for one in highlights for page in one.pages})
    words = services.writer.page_words(original.stem, pages)
    name = services.catalog.document(library, found).filename.rpartition(".")[0] or found
    return Response(
        services.parser.highlighted(original, highlights, words),
        media_type="application/pdf",
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}-highlights.pdf"
        },
    )


@router.get(
    "/{doc_id}/file",
    response_class=Response,
    responses={
        200: {
            "description": "the original bytes",
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        },
        **declared("not_found", "no_original", "conflict"),
    },
)
def document_file(
    services: Composition, library: OneLibrary, doc_id: DocumentName, revision: Revision = None
) -> Response:
    """Send the original bytes as an attachment of no type, so no browser runs it."""
    document = services.catalog.document(library, resolve(services, library, doc_id))
    original = services.catalog.original(library, document.doc_id, revision)
    name = document.filename or document.doc_id
    ascii_name = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in name)
    return FileResponse(
        original,
        media_type="application/octet-stream",
        headers={
            "Content-Disposition": f'attachment; filename="{ascii_name}";'
            f" filename*=UTF-8''{quote(name, safe='')}"
        },
    )
