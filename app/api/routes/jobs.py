"""Jobs: progress, events, pause, resume, cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from app.api.contract import events
from app.api.deps import AtEdge, Composition, RequestIdentity
from app.api.errors import declared
from app.api.pump import Pump
from app.api.schemas.jobs import JobList, JobReply
from app.api.sse import EventStream, each, event
from app.core.types import Job as CoreJob

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"])

JobId = Annotated[str, Path(min_length=1, max_length=64)]


@router.get("", operation_id="list_jobs", response_model=JobList, responses=declared())
def list_jobs(services: Composition, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> JobList:
    """Jobs, newest first."""
    return JobList(jobs=[JobReply.of(job) for job in services.jobs.list(limit)])


@router.get(
    "/{job_id}", operation_id="get_job", response_model=JobReply, responses=declared("not_found")
)
def get_job(services: Composition, job_id: JobId) -> JobReply:
    """One job as it is now."""
    return JobReply.of(services.jobs.get(job_id))


@router.get(
    "/{job_id}/events",
    operation_id="job_events",
    response_class=Response,
    responses={
        **events("Server-sent events: `job` with the job after each change, until it ends"),
        **declared("not_found"),
    },
)
def job_events(
    services: Composition, edge: AtEdge, request_id: RequestIdentity, job_id: JobId
) -> Response:
    """The job now, and again after each change, until it ends."""
    services.jobs.get(job_id)  # an unknown id is a 404, not a stream with an error in it

    def render(job: CoreJob) -> bytes:
        return event("job", JobReply.of(job).model_dump(mode="json"))

    return EventStream(
        Pump(lambda cancel: each(services.jobs.watch(job_id, cancel), render), edge.streams),
        request_id,
    )


@router.post(
    "/{job_id}/pause",
    operation_id="pause_job",
    response_model=JobReply,
    responses=declared("not_found", "conflict"),
)
def pause_job(services: Composition, job_id: JobId) -> JobReply:
    """Stop a job at its next step; it stays paused over restarts until resumed."""
    return JobReply.of(services.jobs.pause(job_id))


@router.post(
    "/{job_id}/resume",
    operation_id="resume_job",
    response_model=JobReply,
    responses=declared("not_found", "conflict"),
)
def resume_job(services: Composition, job_id: JobId) -> JobReply:
    """Go on with a paused job."""
    return JobReply.of(services.jobs.resume(job_id))


@router.delete(
    "/{job_id}", operation_id="cancel_job", response_model=JobReply, responses=declared("not_found")
)
def cancel_job(services: Composition, job_id: JobId) -> JobReply:
    """End a job for good; what it has done stays."""
    return JobReply.of(services.jobs.cancel(job_id))
