"""Uploads: files to originals on disk, a durable job, and its outcome."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Annotated, get_args

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from app.api.deps import AtEdge, Composition, RequestIdentity
from app.api.errors import declared, problem, problem_response, status_of_code
from app.api.receiving import received
from app.api.routes.sync import MAX_FOLDER_CHARACTERS
from app.api.schemas.base import WaitName
from app.api.schemas.jobs import IngestResponse
from app.api.services import ServicePort
from app.api.uploads import Upload, UploadReceiver
from app.api.waiting import settled
from app.core.errors import Conflict, DocuMindError, InvalidInput
from app.core.text import either
from app.core.types import IngestOutcome, Job, JobFile, Library, LibraryName
from app.ingest.names import display_name, source_key
from app.jobs.board import is_finished
from app.jobs.payloads import IngestPayload, IngestReport, UploadedFile, has_text

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/api/v1", tags=["ingest"])

_FIELDS = frozenset({"library", "source_key", "sync_folder"})
"""Text fields of an upload."""
"""Bytes collected before a worker thread parses and writes them: a trip per network packet would
cost more than the work."""

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "or `files`",
                        },
                        "library": {"type": "string", "enum": list(get_args(LibraryName))},
                        "source_key": {
                            "type": "array",
                            "items": {"type": "string"},
                            "description": "a relative path per file, in the order of the files",
                        },
                        "sync_folder": {
                            "type": "string",
                            "description": "names the folder that is synced: what it sent can be"
                            " removed by /api/v1/sync/remove",
                        },
                    },
                }
            }
        },
    }
}
_FAILURES = (
    "unsupported_type",
    "encrypted",
    "no_text_layer",
    "unreadable",
    "too_large",
    "conflict",
    "disk_full",
    "index_damaged",
)


@router.post(
    "/ingest",
    operation_id="ingest",
    status_code=201,
    response_model=IngestResponse,
    openapi_extra=_FORM,
    responses={
        200: {"model": IngestResponse, "description": "all files were known and unchanged"},
        202: {
            "model": IngestResponse,
            "description": "accepted: the files are on disk, the job goes on; also while the"
            " server stops",
        },
        207: {"model": IngestResponse, "description": "some files failed"},
        **declared(*_FAILURES),
    },
)
# async, unlike its neighbours: the body is read as it arrives and the wait must not hold a thread
async def ingest(
    request: Request,
    services: Composition,
    edge: AtEdge,
    request_id: RequestIdentity,
    library: Annotated[LibraryName | None, Query(description="default: public")] = None,
    wait: Annotated[
        WaitName,
        Query(description="true: until vectors are applied; text: until acknowledged; false: not"),
    ] = "true",
) -> Response:
    """Index one or more files and report each outcome; no file is half indexed."""
    async with received(request, edge.settings, _FIELDS) as (receiver, rest):
        job = await to_thread.run_sync(
            _accept, receiver, rest, services, library, edge, wait == "false"
        )
    return await outcome(job, wait, services, edge, request_id)


def _accept(
    receiver: UploadReceiver,
    rest: bytes,
    services: ServicePort,
    in_query: LibraryName | None,
    edge: AtEdge,
    retry: bool,
) -> Job:
    """Make the upload durable: originals first, then the job's row."""
    receiver.feed(rest)
    upload = receiver.finish()
    library = _library(upload, in_query) or edge.settings.library.value
    names = [display_name(file.raw_name) for file in upload.files]
    keys = _keys(upload, names)
    folder = _folder(upload)
    files: list[UploadedFile] = []
    try:
        for name, key, file in zip(names, keys, upload.files, strict=True):
            files.append(UploadedFile(name, key, services.writer.store_original(file.path)))
        if folder:
            services.claims.record(
                Library(library), folder, {file.source_key: file.sha256 for file in files}
            )
        return services.jobs.submit(
            "ingest",
            IngestPayload(Library(library), tuple(files), retry).to_json(),
            files=[JobFile(name, "queued", 0.0) for name in names],
            total=len(files),
            unit="files",
        )
    except (DocuMindError, OSError):
        _discard([file.sha256 for file in files], services)
        raise


def _discard(shas: list[str], services: ServicePort) -> None:
    """Leave nothing of an upload that was not accepted."""
    try:
        services.writer.delete_unaccepted(shas)
    except (DocuMindError, OSError):
        logger.warning(
            "originals of a refused upload stay behind: %s", ", ".join(shas), exc_info=True
        )


def _library(upload: Upload, in_query: LibraryName | None) -> LibraryName | None:
    """Return the library named by the form or the query."""
    named = upload.fields.get("library", [])
    for name in named:
        if name not in get_args(LibraryName):
            raise InvalidInput(f"library {name!r:.80} must be {either(get_args(LibraryName))}")
    distinct = {*named, *([in_query] if in_query else [])}
    if len(distinct) > 1:
        raise InvalidInput(f"library is given as {' and as '.join(sorted(distinct))}; say it once")
    return next((name for name in get_args(LibraryName) if name in distinct), None)


def _folder(upload: Upload) -> str:
    """Return the name of the folder that is synced; empty for any other upload."""
    given = upload.fields.get("sync_folder", [])
    if len(given) > 1 or any(not 0 < len(folder) <= MAX_FOLDER_CHARACTERS for folder in given):
        raise InvalidInput(
            f"sync_folder must be given once, with 1 to {MAX_FOLDER_CHARACTERS:,} characters"
        )
    return given[0] if given else ""


def _keys(upload: Upload, names: list[str]) -> list[str]:
    """Return the source key of each file: given ones in order, else the file names."""
    given = upload.fields.get("source_key", [])
    if given and len(given) != len(names):
        raise InvalidInput(
            f"{len(given)} source_key fields for {len(names)} files; send one per file, or none"
        )
    keys = [source_key(key) for key in given] or names
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise InvalidInput(
                f"two files have the source key {key!r}, so one would replace the other; send"
                " source_key for each"
            )
        seen.add(key)
    return keys


async def outcome(
    job: Job, wait: WaitName, services: ServicePort, edge: AtEdge, request_id: str
) -> Response:
    """Return an accepted job's outcome once it got as far as asked; else 202.

    Raises:
        Conflict: The job was cancelled or paused while it was waited for.
    """
    until = has_text if wait == "text" else is_finished
    found = None if wait == "false" else await settled(services.jobs, job.id, until, edge.stopping)
    if found is None:
        return JSONResponse(
            IngestResponse(job_id=job.id, documents=[]).model_dump(), status_code=202
        )
    return outcome_response(found, request_id)


def outcome_response(job: Job, request_id: str) -> Response:
    """Return the response of an ingest that has come as far as it was waited for.

    Raises:
        Conflict: The job was cancelled or paused while it was waited for.
    """
    report = IngestReport.from_json(job.result)
    if report is None:
        if job.state == "failed":
            return _failed(job, request_id)
        raise Conflict(f"job {job.id!r} was {job.state} before it had a result")
    documents = list(report.outcomes)
    failed = [outcome for outcome in report.outcomes if outcome.status == "failed"]
    body = IngestResponse(job_id=job.id, documents=documents)
    if failed and len(failed) == len(report.outcomes):
        code = failed[0].code or "unreadable"
        detail = "; ".join(
            outcome.reason or f"{outcome.filename!r} failed" for outcome in failed[:20]
        )
        found = problem(
            status=status_of_code(code),
            code=code,
            detail=detail,
            retryable=False,
            request_id=request_id,
        )
        return problem_response({**found, "documents": body.model_dump()["documents"]})
    return JSONResponse(
        body.model_dump(), status_code=_status(report.outcomes, some_failed=bool(failed))
    )


def _status(outcomes: Iterable[IngestOutcome], *, some_failed: bool) -> int:
    if some_failed:
        return 207
    return 200 if all(outcome.status == "unchanged" for outcome in outcomes) else 201


def _failed(job: Job, request_id: str) -> Response:
    """Return the error of a job that failed as a whole."""
    error = job.result.get("error") if job.result else None
    code, detail = "internal", f"job {job.id!r} failed; see its errors"
    if isinstance(error, dict):
        code, detail = str(error["code"]), str(error["detail"])
    status = status_of_code(code)
    return problem_response(
        problem(
            status=status,
            code=code,
            detail=detail,
            retryable=status in {502, 503, 504, 507},
            request_id=request_id,
        )
    )
