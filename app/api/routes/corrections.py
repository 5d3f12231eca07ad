"""Corrections of a document's text: list, make, take back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from app.api.deps import AtCaller, Composition, OneLibrary, needs
from app.api.errors import declared
from app.api.routes.documents import DocumentName, Revision, resolve
from app.api.schemas.base import Reply, Request
from app.core.corrections import Edit, Mending
from app.core.types import Library

if TYPE_CHECKING:
    from app.bootstrap.services import Services

router = APIRouter(prefix="/api/v1/documents", tags=["documents"], responses=declared())

LONGEST_CORRECTION = 100_000
"""Characters of the text of one."""
Live = Annotated[int, Field(ge=1, le=2**31, description="which the spans are of; the live one")]


class EditRequest(Request):
    """Characters [start, end) of the revision, and what is to stand there.

    An empty span inserts, an empty text takes away.
    """

    start: int = Field(ge=0, le=2**31)
    end: int = Field(ge=0, le=2**31)
    text: str = Field(max_length=LONGEST_CORRECTION)


class CorrectionRequest(Request):
    """What to correct in the text of the live revision."""

    revision: Live
    corrections: list[EditRequest] = Field(min_length=1, max_length=500)


class CorrectionReply(Reply):
    """A correction as it stands in the text of a revision."""

    n: int = Field(description="its number in this revision's list, from 1; `undo` takes it")
    start: int | None = Field(description="in the text of the revision; null: it has no place")
    end: int | None
    page: int | None
    before: str = Field(description="what was read there")
    text: str = Field(description="what stands there")
    author: str = Field(description="name of the key that wrote it")
    created_at: str
    placed: bool = Field(
        description="false: what a newer release reads has no such place; it does nothing"
    )


class CorrectionList(Reply):
    """The corrections of one revision in the order of its text."""

    doc_id: str
    revision: int
    corrections: list[CorrectionReply]


def _listed(
    services: Services, library: Library, doc_id: str, revision: int | None = None
) -> CorrectionList:
    catalog = services.catalog
    with catalog.snapshot():
        shown = revision or catalog.document(library, doc_id).revision
        held = catalog.corrections(library, doc_id, shown)
        pages = catalog.pages(library, doc_id, shown)
    mending = Mending(held)
    spans = dict(zip(map(id, mending.corrections), mending.spans, strict=True))
    found = []
    for n, one in enumerate(held, 1):
        start, end = spans.get(id(one), (None, None))
        on = (page.number for page in pages if start is not None and page.start <= start < page.end)
        reply = CorrectionReply(
            n=n,
            start=start,
            end=end,
            page=next(on, None),
            before=one.before,
            text=one.text,
            author=one.author,
            created_at=one.created_at,
            placed=one.placed,
        )
        found.append(reply)
    return CorrectionList(doc_id=doc_id, revision=shown, corrections=found)


@router.get("/{doc_id}/corrections", **needs("read", "not_found", "conflict"))
def list_corrections(
    services: Composition, library: OneLibrary, doc_id: DocumentName, revision: Revision = None
) -> CorrectionList:
    """The corrections that a revision has; each revision keeps its own."""
    return _listed(services, library, resolve(services, library, doc_id), revision)


_CHANGES = needs(
    "write", "not_found", "no_original", "conflict", "unreadable", "too_large", "disk_full"
)


@router.post("/{doc_id}/corrections", status_code=201, **_CHANGES)
def correct_text(
    services: Composition,
    library: OneLibrary,
    doc_id: DocumentName,
    caller: AtCaller,
    asked: CorrectionRequest,
) -> CorrectionList:
    """Correct words of a document's text, which makes another revision of the same bytes.

    The original is not touched. Citations of revisions before open the words of then.
    """
    found = resolve(services, library, doc_id)
    edits = [Edit(one.start, one.end, one.text) for one in asked.corrections]
    services.corrections.add(library, found, asked.revision, edits, caller.name)
    return _listed(services, library, found)


@router.delete("/{doc_id}/corrections/{n}", **_CHANGES)
def undo_correction(
    services: Composition,
    library: OneLibrary,
    doc_id: DocumentName,
    n: Annotated[int, Path(ge=1, le=2**31, description="its number in the revision's list")],
    revision: Annotated[int, Query(ge=1, le=2**31, description="the live one, whose list it is")],
) -> CorrectionList:
    """Take a correction back: what was read stands there again, in another revision."""
    found = resolve(services, library, doc_id)
    services.corrections.undo(library, found, revision, n)
    return _listed(services, library, found)
