"""Serve the content of a document: text, chunks, page boxes, the original."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.responses import FileResponse, Response

from app.api.deps import Composition, OneLibrary
from app.api.errors import declared
from app.api.routes.papers import DocumentName, resolve
from app.api.schemas.documents import ChunkList, ChunkReply
from app.core.errors import InvalidInput
from app.core.types import PageBoxes, TextSpan
from app.ingest.pages import page_texts

router = APIRouter(prefix="/api/v1/documents", tags=["documents"])

Offset = Annotated[int, Query(ge=0, le=2**31, description="Unicode code points")]
Revision = Annotated[int | None, Query(ge=1, le=2**31, description="null: the live one")]


@router.get(
    "/{doc_id}/text",
    operation_id="document_text",
    response_model=TextSpan,
    responses=declared("not_found", "conflict"),
)
def document_text(
    services: Composition,
    library: OneLibrary,
    doc_id: DocumentName,
    start: Offset = 0,
    end: Annotated[int | None, Query(ge=0, le=2**31)] = None,
    revision: Revision = None,
) -> TextSpan:
    """Return characters [start, end) of a revision, superseded revisions included."""
    return services.catalog.text(library, resolve(services, library, doc_id), start, end, revision)


@router.get(
    "/{doc_id}/chunks",
    operation_id="document_chunks",
    response_model=ChunkList,
    responses=declared("not_found", "conflict"),
)
def document_chunks(
    services: Composition, library: OneLibrary, doc_id: DocumentName, revision: Revision = None
) -> ChunkList:
    """The chunks of a revision in order."""
    found = resolve(services, library, doc_id)
    chunks = services.catalog.chunks(library, found, revision)
    shown = chunks[0].revision if chunks else services.catalog.document(library, found).revision
    return ChunkList(
        doc_id=found,
        revision=shown,
        chunks=[ChunkReply.model_validate(chunk) for chunk in chunks],
    )


@router.get(
    "/{doc_id}/boxes",
    operation_id="document_boxes",
    response_model=list[PageBoxes],
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
    if end < start:
        raise InvalidInput(f"end {end!r} must not be before start {start!r}")
    found = resolve(services, library, doc_id)
    original = services.catalog.original(library, found, revision)

    def read(from_: int, to: int) -> str:
        return services.catalog.text(library, found, from_, to, revision).text

    wanted = page_texts(services.catalog.pages(library, found, revision), start, end, read)
    boxes = services.pages.page_boxes(original, wanted) if wanted else ()
    return list(boxes)


@router.get(
    "/{doc_id}/file",
    operation_id="document_file",
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
