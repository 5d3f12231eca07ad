"""Jobs, maintenance of the store as jobs, and evaluations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import Field

from app.api.deps import (
    AtCaller,
    Composition,
    ContextDep,
    events,
    files,
    needs,
    needs_all,
    server_path,
    settings_open,
)
from app.api.errors import declared
from app.api.schemas.base import Reply, Request
from app.api.streaming import EventStream, Pump, each, event
from app.core.access import Caller
from app.core.errors import Conflict, InvalidInput, NotFound, made_in_data
from app.core.serialization import json_values
from app.core.types import Job, Library, LibraryName
from app.evaluation.arms import EvaluationBody
from app.evaluation.report import EvaluationReport, EvaluationSummary, Format
from app.jobs.kinds import BACKUP, CALIBRATE, EXPORT, FSCK, IMPORT
from app.jobs.maintenance import request_purge
from app.jobs.reembed import ReembedPayload, request_reembed
from app.models.options import EmbeddingProviderName

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], responses=declared())

JobId = Annotated[str, Path(min_length=1, max_length=64)]


class JobList(Reply):
    """Jobs, newest first."""

    jobs: list[Job]


@router.get("", **needs_all("read"))
def list_jobs(services: Composition, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> JobList:
    """Jobs, newest first."""
    return JobList(jobs=list(services.jobs.list(limit)))


@router.get("/{job_id}", **needs("read", "not_found"))
def get_job(services: Composition, caller: AtCaller, job_id: JobId) -> Job:
    """One job as it is now."""
    return _seen(services.jobs.get(job_id), caller)


def _seen(job: Job, caller: Caller) -> Job:
    """Return a job that the caller may see.

    Raises:
        Forbidden: It is not of the one library that the caller may use.
    """
    if not caller.sees_all:
        caller.require("read", every_library=job.library not in set(Library))
        caller.library(Library(str(job.library)))
    return job


@router.get(
    "/{job_id}/events",
    response_class=Response,
    **needs(
        "read",
        "not_found",
        also=events("Server-sent events: `job` with the job after each change, until it ends"),
    ),
)
def job_events(context: ContextDep, job_id: JobId) -> Response:
    """The job now, and again after each change, until it ends."""
    jobs = context.services.jobs
    _seen(jobs.get(job_id), context.caller)  # else an error within the stream

    def render(job: Job) -> bytes:
        return event("job", json_values(job))

    pump = Pump(lambda cancel: each(jobs.watch(job_id, cancel), render), context.edge.streams)
    return EventStream(pump, context.request_id)


@router.post("/{job_id}/pause", **needs_all("write", "not_found", "conflict"))
def pause_job(services: Composition, job_id: JobId) -> Job:
    """Stop a job at its next step; it stays paused over restarts until resumed."""
    return services.jobs.pause(job_id)


@router.post("/{job_id}/resume", **needs_all("write", "not_found", "conflict"))
def resume_job(services: Composition, job_id: JobId) -> Job:
    """Go on with a paused job."""
    return services.jobs.resume(job_id)


@router.delete("/{job_id}", **needs_all("write", "not_found"))
def cancel_job(services: Composition, job_id: JobId) -> Job:
    """End a job for good; what it has done stays."""
    return services.jobs.cancel(job_id)


maintenance_router = APIRouter(prefix="/api/v1", tags=["maintenance"], **needs_all("admin"))

ServerPath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4096,
        pattern=r"^/[^\x00-\x1f]*$",
        description="absolute, on the server",
    ),
]


class ExportRequest(Request):
    """Which library goes where."""

    library: LibraryName
    path: ServerPath | None = Field(
        None, description="a new file; null: a name with the time under DATA_DIR/exports"
    )


class ImportRequest(Request):
    """Which file goes into which library."""

    path: ServerPath
    library: LibraryName | None = Field(None, description="null: the library it was exported from")


class BackupRequest(Request):
    """The path of the backup."""

    path: ServerPath | None = Field(
        None, description="a new directory; null: a name with the time under DATA_DIR/backups"
    )


class CalibrateRequest(Request):
    """Which library is calibrated."""

    library: LibraryName


class ReembedRequest(Request):
    """The library to re-embed, and how."""

    library: LibraryName
    action: Literal["start", "rollback", "discard"] = Field(
        "start",
        description="rollback: go back to the previous vectors; discard: remove previous and"
        " unfinished ones",
    )
    provider: EmbeddingProviderName | None = Field(
        None, description="provider of the embedder; null: as configured for an empty library"
    )
    model: str | None = Field(
        None, min_length=1, max_length=200, description="embedding model; null: as configured"
    )


class StoreFault(Reply):
    """One kind of fault; `library` is empty when it concerns all."""

    code: str
    library: str
    count: int
    detail: str
    repaired: bool
    at_start: bool  # what a killed server leaves; the next start repairs it


class StoreCheck(Reply):
    """The findings of a check.

    `documind fsck --repair` fixes them while the server is stopped.
    """

    started_at: str
    seconds: float
    repair: bool
    sound: bool
    exit_code: int = Field(
        description="of the command: 0 sound, 7 faults that --repair fixes, 8 faults that need a"
        " backup"
    )
    faults: list[StoreFault]
    checked: dict[str, int]


@maintenance_router.get("/fsck", responses=declared("not_found"))
def last_fsck(services: Composition) -> StoreCheck:
    """The last finished check."""
    for job in services.jobs.list(1000):
        if job.kind == FSCK and job.state == "done" and job.result is not None:
            return StoreCheck.model_validate(job.result)
    raise NotFound("no check has been run yet; start one with POST /api/v1/fsck or: documind fsck")


@maintenance_router.post("/fsck", status_code=202, responses=declared("disk_full"))
def run_fsck(services: Composition) -> Job:
    """Check the whole store as a job; change nothing. Writes wait until it ends."""
    return services.jobs.submit(FSCK, {}, coalesce=True)


@maintenance_router.post("/export", status_code=202, responses=declared("conflict", "disk_full"))
def export_library(services: Composition, asked: ExportRequest) -> Job:
    """Export text, vectors and originals of a library into one file, as a job.

    The file carries checksums.
    """
    path = (
        server_path(asked.path)
        if asked.path
        else _fresh(services, "exports", f"{asked.library}-", ".documind")
    )
    _must_be_new(path)
    return services.jobs.submit(EXPORT, {"library": asked.library, "path": str(path)})


@maintenance_router.post("/import", status_code=202, responses=declared("disk_full"))
def import_library(services: Composition, asked: ImportRequest) -> Job:
    """Add an exported file to a library, without embedding anything again, as a job."""
    if not server_path(asked.path).is_file():
        raise InvalidInput(f"path {asked.path!r} is no file on the server")
    return services.jobs.submit(IMPORT, {"path": asked.path, "library": asked.library})


@maintenance_router.post("/backup", status_code=202, responses=declared("conflict", "disk_full"))
def backup(services: Composition, asked: BackupRequest) -> Job:
    """Back up catalog and originals as a job, while the server serves.

    `documind restore` brings the backup back.
    """
    path = server_path(asked.path) if asked.path else _fresh(services, "backups", "", "")
    _must_be_new(path)
    return services.jobs.submit(BACKUP, {"path": str(path)})


@maintenance_router.post("/calibrate", status_code=202, responses=declared("conflict", "disk_full"))
def calibrate(services: Composition, asked: CalibrateRequest) -> Job:
    """Calibrate a library's embedder from the library's own sentences, as a job.

    Its result holds the constants; they count from then on in every library of that embedder.
    """
    return services.jobs.submit(CALIBRATE, {"library": asked.library})


@maintenance_router.post(
    "/reembed",
    status_code=202,
    dependencies=[Depends(settings_open)],
    responses=declared("conflict", "disk_full"),
)
def reembed(services: Composition, asked: ReembedRequest) -> Job:
    """Re-embed a library with another model, then swap; as a job.

    The current vectors keep serving until then, and `rollback` brings them back. The job's result
    tells the outcome (swapped, rolled_back, discarded) and the reason.
    """
    payload = ReembedPayload(Library(asked.library), asked.action, asked.provider, asked.model)
    return request_reembed(services.jobs, payload)


@maintenance_router.post("/purge", status_code=202, responses=declared("disk_full"))
def purge(services: Composition) -> Job:
    """Remove every byte of deleted documents now, as a job.

    Otherwise this happens some time after the last deletion.
    """
    return request_purge(services.jobs)


def _fresh(services: Composition, folder: str, prefix: str, suffix: str) -> FilePath:
    """Return a name with the present time in a folder of the data directory."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    directory = made_in_data(services.settings.data_dir.resolve() / folder)
    return directory / f"{prefix}{stamp}{suffix}"


def _must_be_new(path: FilePath) -> None:
    """Refuse to write over anything, or into a folder that is not there."""
    if path.exists():
        raise Conflict(f"path {str(path)!r} exists already; name a new one")
    if not path.parent.is_dir():
        raise InvalidInput(
            f"path {str(path)!r}: there is no folder {str(path.parent)!r} on the server"
        )


evaluations_router = APIRouter(
    prefix="/api/v1/evaluations", tags=["evaluations"], responses=declared()
)

ReportId = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
_MEDIA = {
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
}


class EvaluationList(Reply):
    """Finished reports, newest first."""

    evaluations: list[EvaluationSummary]


@evaluations_router.get("", **needs_all("read"))
def list_evaluations(services: Composition) -> EvaluationList:
    """Finished reports, newest first; runs under way are jobs of kind `evaluation`."""
    return EvaluationList(evaluations=services.evaluations.reports.list())


@evaluations_router.post("", status_code=202, **needs_all("admin", "disk_full"))
def start_evaluation(context: ContextDep, asked: EvaluationBody) -> Job:
    """Compare settings on judged questions, as a job whose id is that of the report."""
    scope = asked.library or context.scope(None)
    library = context.edge.settings.library if scope == "all" else Library(scope)
    return context.services.evaluations.start(replace(asked, library=library.value))


@evaluations_router.get("/{report_id}", **needs_all("read", "not_found"))
def get_evaluation(services: Composition, report_id: ReportId) -> EvaluationReport:
    """A finished report with every question's outcome."""
    return services.evaluations.reports.read(report_id)


@evaluations_router.get(
    "/{report_id}/report.{kind}",
    response_class=Response,
    **needs_all("read", "not_found", also=files("the file", _MEDIA.values())),
)
def download_evaluation(services: Composition, report_id: ReportId, kind: Format) -> Response:
    """Send a finished report as a file: JSON, Markdown, table or standalone page."""
    text = services.evaluations.reports.text(report_id, kind)
    return Response(
        text,
        media_type=_MEDIA[kind],
        headers={"Content-Disposition": f'attachment; filename="evaluation-{report_id}.{kind}"'},
    )
