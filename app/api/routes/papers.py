"""Documents of a library: list, show, correct, remove, bring back."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Query

from app.api.deps import Composition, OneLibrary
from app.api.errors import declared
from app.api.schemas.documents import Deleted, DocumentCorrection, DocumentPage, DocumentReply
from app.api.services import ServicePort
from app.core.errors import NotFound
from app.core.types import Library, Metadata

router = APIRouter(prefix="/api/v1", tags=["documents"])

DocumentName = Annotated[
    str, Path(min_length=1, max_length=1024, description="doc_id, source key or file name")
]


def resolve(services: ServicePort, library: Library, name: str) -> str:
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


@router.get(
    "/papers", operation_id="list_documents", response_model=DocumentPage, responses=declared()
)
def list_documents(
    services: Composition,
    library: OneLibrary,
    q: Annotated[str, Query(max_length=500, description="part of the title or file name")] = "",
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> DocumentPage:
    """One page of a library's documents."""
    found, following = services.catalog.documents(library, q, cursor or None, limit)
    return DocumentPage(
        documents=[DocumentReply.model_validate(document) for document in found],
        next_cursor=following,
    )


@router.api_route(
    "/papers/{doc_id}/restore", methods=["GET", "PATCH", "DELETE", "PUT"], include_in_schema=False
)
async def restore_is_a_post() -> None:
    """Refuse these paths: names may hold slashes, so `.../restore` looks like a name.

    Raises:
        HTTPException: Always 405.
    """
    raise HTTPException(405)


@router.get(
    "/papers/{doc_id:path}",
    operation_id="get_document",
    response_model=DocumentReply,
    responses=declared("not_found", "conflict"),
)
def get_document(services: Composition, library: OneLibrary, doc_id: DocumentName) -> DocumentReply:
    """One document."""
    return DocumentReply.model_validate(
        services.catalog.document(library, resolve(services, library, doc_id))
    )


@router.patch(
    "/papers/{doc_id:path}",
    operation_id="correct_document",
    response_model=DocumentReply,
    responses=declared("not_found", "conflict", "disk_full"),
)
def correct_document(
    services: Composition, library: OneLibrary, doc_id: DocumentName, correction: DocumentCorrection
) -> DocumentReply:
    """Correct title, authors, year or language; omitted fields stay, `year: null` removes it.

    The words of a document are stemmed by the rules of its language.
    """
    document = services.catalog.document(library, resolve(services, library, doc_id))
    given = correction.model_fields_set
    metadata = Metadata(
        document.title, document.authors, document.year, document.arxiv_id, document.language
    )
    if correction.title is not None:
        metadata = replace(metadata, title=correction.title)
    if correction.authors is not None:
        metadata = replace(metadata, authors=tuple(correction.authors))
    if "year" in given:
        metadata = replace(metadata, year=correction.year)
    if correction.language is not None:
        metadata = replace(metadata, language=correction.language)
    return DocumentReply.model_validate(services.writer.correct(library, document.doc_id, metadata))


Grace = Annotated[
    float,
    Query(ge=0, le=30 * 86400, description="seconds during which the document can be restored"),
]


@router.delete(
    "/papers/{doc_id:path}",
    operation_id="delete_document",
    response_model=Deleted,
    responses=declared("not_found", "conflict", "disk_full"),
)
@router.delete(
    "/ingest/{doc_id}",
    operation_id="delete_ingested",
    response_model=Deleted,
    responses=declared("not_found", "conflict", "disk_full"),
)
def delete_document(
    services: Composition, library: OneLibrary, doc_id: DocumentName, grace_s: Grace = 0
) -> Deleted:
    """Delete a document: hide it at once, purge it after the grace period."""
    gone = services.writer.delete(library, resolve(services, library, doc_id), grace_s)
    return Deleted.model_validate(gone, from_attributes=True)


@router.post(
    "/papers/{doc_id}/restore",
    operation_id="restore_document",
    response_model=DocumentReply,
    responses=declared("not_found", "conflict", "disk_full"),
)
def restore_document(
    services: Composition, library: OneLibrary, doc_id: DocumentName
) -> DocumentReply:
    """Undo a removal within its grace."""
    return DocumentReply.model_validate(services.writer.restore(library, doc_id))
