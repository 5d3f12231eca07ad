"""Documents that the server fetches itself: samples and arXiv."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from app.api.deps import AtEdge, Composition, RequestIdentity
from app.api.errors import declared
from app.api.routes.ingest import outcome
from app.api.schemas.base import Request, WaitName
from app.api.schemas.documents import SamplesRemoved
from app.api.schemas.jobs import IngestResponse
from app.core.errors import Conflict
from app.core.types import Library
from app.jobs.board import is_finished
from app.jobs.kinds import ARXIV, SAMPLES
from app.jobs.samples import remove_samples
from app.providers.arxiv import base_id

router = APIRouter(prefix="/api/v1", tags=["ingest"])

Wait = Annotated[
    WaitName,
    Query(description="true: until vectors are applied; text: until acknowledged; false: not"),
]
_ACCEPTED: dict[int | str, dict[str, object]] = {
    200: {"model": IngestResponse, "description": "everything was known and unchanged"},
    202: {"model": IngestResponse, "description": "accepted; the job goes on"},
    207: {"model": IngestResponse, "description": "some failed"},
}


class ArxivRequest(Request):
    """Which paper."""

    arxiv_id: Annotated[
        str,
        Field(min_length=1, max_length=64, description="id such as 2210.03629v2 or hep-th/9901001"),
    ]


@router.post(
    "/samples",
    operation_id="index_samples",
    status_code=201,
    response_model=IngestResponse,
    responses={**_ACCEPTED, **declared("not_found", "conflict", "disk_full", "index_damaged")},
)
async def samples(
    services: Composition, edge: AtEdge, request_id: RequestIdentity, wait: Wait = "true"
) -> Response:
    """Index the bundled documents into both libraries; doing it again changes nothing."""
    job = services.jobs.submit(SAMPLES, {"purge": False}, unit="files", coalesce=True)
    return await outcome(job, wait, services, edge, request_id)


@router.delete(
    "/samples",
    operation_id="remove_samples",
    response_model=SamplesRemoved,
    responses=declared("conflict", "disk_full"),
)
def drop_samples(services: Composition) -> SamplesRemoved:
    """Remove the bundled documents from both libraries, and only them.

    Removing them again removes nothing.
    """
    if any(job.kind == SAMPLES and not is_finished(job) for job in services.jobs.list(100)):
        raise Conflict("the samples are being indexed: wait for that job, or cancel it")
    removed = remove_samples(services.catalog, services.writer)
    return SamplesRemoved(public=removed[Library.PUBLIC], papers=removed[Library.PAPERS])


@router.post(
    "/fetch-arxiv",
    operation_id="fetch_arxiv",
    status_code=201,
    response_model=IngestResponse,
    responses={
        **_ACCEPTED,
        **declared(
            "not_found", "too_large", "conflict", "unreadable", "no_text_layer",
            "provider_unreachable", "provider_timeout",
            "provider_bad_response", "disk_full",
        ),
    },
)  # fmt: skip
async def fetch_arxiv(
    asked: ArxivRequest,
    services: Composition,
    edge: AtEdge,
    request_id: RequestIdentity,
    wait: Wait = "true",
) -> Response:
    """Fetch a paper by its arXiv id into `papers`."""
    base_id(asked.arxiv_id)
    job = services.jobs.submit(
        ARXIV, {"arxiv_id": asked.arxiv_id.strip(), "retry": wait == "false"}, total=1, unit="files"
    )
    return await outcome(job, wait, services, edge, request_id)
