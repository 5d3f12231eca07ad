"""Share answers: a link shows one answer as it was then, without a key, until it is revoked."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Field

from app.answer.records import StoredRecord, root_path
from app.api.deps import AtCaller, Composition, needs_all
from app.api.errors import declared
from app.api.middleware.access import changed
from app.api.schemas.base import Reply
from app.core.errors import Conflict
from app.core.links import WebLink
from app.core.serialization import from_json, json_values
from app.core.types import Quote, Sentence
from app.storage.catalog.answers import Share

router = APIRouter(prefix="/api/v1", tags=["shares"], responses=declared())
open_router = APIRouter(tags=["shares"])

Identity = Annotated[str, Path(min_length=1, max_length=64)]
_UNLISTED = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow"}


class MadeShare(Reply):
    """A new link, which is shown this once."""

    id: str
    answer_id: str
    question: str
    created_at: str
    path: str = Field(description="what opens the answer, relative to the host")


class ShareList(Reply):
    """Links, newest first."""

    shares: list[Share]


class SharedSource(Reply):
    """What a citation of a shared answer names."""

    n: int
    title: str
    authors: list[str]
    year: int | None
    page: int | None
    licence: str | None
    source_url: WebLink


class SharedAnswer(Reply):
    """An answer as it was when it was shared, with its quotes; nothing else of a document."""

    question: str
    answer: str
    generator: str
    at: str = Field(description="when it was answered, UTC ISO 8601")
    quote: Quote | None
    sentences: list[Sentence]
    sources: list[SharedSource] = Field(description="those that are cited")


@router.post(
    "/answers/{answer_id}/share",
    status_code=201,
    **needs_all("ask", "not_found", "conflict", "disk_full"),
)
def share_answer(
    request: Request,
    services: Composition,
    caller: AtCaller,
    answer_id: Identity,
    response: Response,
) -> MadeShare:
    """Make a link that shows an answer, as it is now, to all who have it.

    It is shown this once. The key needs the scope `read` as well.
    """
    answer = from_json(StoredRecord, services.store.answers.get(answer_id))
    caller.require("read", every_library=True)
    if answer.kept != "full":
        raise Conflict("of this answer only hashes are kept (STORE_ANSWERS); ask again to share it")
    changed(request)
    token, made = services.store.shares.add(answer_id, _copied(answer))
    response.headers["Cache-Control"] = "no-store"
    return MadeShare(path=f"{root_path.get()}/shared/{token}", **json_values(made))


@router.get("/shares", **needs_all("read"))
def list_shares(
    services: Composition,
    answer_id: Annotated[str | None, Query(description="of this answer; default: all")] = None,
) -> ShareList:
    """Links to shared answers, newest first; what they open with is not kept."""
    return ShareList(shares=list(services.store.shares.list(answer_id)))


@router.delete("/shares/{share_id}", **needs_all("ask", "not_found", "disk_full"))
def revoke_share(request: Request, services: Composition, share_id: Identity) -> Share:
    """Revoke a link: it opens nothing any more."""
    changed(request)
    return services.store.shares.revoke(share_id)


@open_router.get("/shared/{token}", response_model=SharedAnswer, responses=declared("not_found"))
def read_shared(
    request: Request,
    services: Composition,
    token: Annotated[str, Path(max_length=100)],
    response: Response,
) -> SharedAnswer | Response:
    """Show a shared answer, without a key; a browser is led to the page that shows it."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"{root_path.get()}/#/shared/{token}", 303, headers=_UNLISTED)
    response.headers.update(_UNLISTED)
    return SharedAnswer.model_validate(services.store.shares.open(token).record)


_OF_ANSWER = ("answer", "generator", "at", "quote", "sentences")
_OF_SOURCE = (*SharedSource.model_fields, "doc_id", "library")
"""The last two are not shown: a deletion finds by them what it has to blank."""


def _copied(answer: StoredRecord) -> dict[str, object]:
    """Return what is shared of a stored answer."""
    record = json_values(answer)
    quoted = answer.quote.sentences if answer.quote else ()
    cited = {one.n for sentence in (*answer.sentences, *quoted) for one in sentence.citations}
    return {
        "question": answer.asked.text,
        **{name: record[name] for name in _OF_ANSWER},
        "sources": [
            {name: source[name] for name in _OF_SOURCE}
            for source in record["sources"]
            if source["n"] in cited
        ],
    }
