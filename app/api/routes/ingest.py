"""What brings documents in: uploads, folder syncs, samples, arXiv, bulk sources."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.responses import JSONResponse

from app.api.deps import (
    AtCaller,
    Composition,
    ContextDep,
    OneLibrary,
    RequestContext,
    SeenLibrary,
    needs,
    needs_all,
    one_library,
    server_path,
)
from app.api.errors import declared, problem, problem_response
from app.api.middleware.access import changed
from app.api.schemas.base import Flag, IngestResponse, Reply, WaitName
from app.api.schemas.base import Request as RequestModel
from app.api.streaming import settled
from app.api.uploads import Upload, UploadReceiver, form_of, received
from app.core.errors import Conflict, DocuMindError, InvalidInput
from app.core.labels import labels_from, parse_object, split_tags
from app.core.serialization import json_values
from app.core.text import either
from app.core.types import Job, JobFile, Labels, LedgerSummary, Library, LibraryName
from app.ingest.bulk import MissingPolicy
from app.ingest.names import display_name, source_key
from app.ingest.sources.dumps import is_part, open_articles, source_name
from app.jobs.bulk import BULK_PLAN, BulkPayload
from app.jobs.ingest import remove_claimed, remove_samples
from app.jobs.kinds import ARXIV, FETCH, SAMPLES, request_embedding
from app.jobs.payloads import IngestPayload, UploadedFile, has_text, report_of
from app.jobs.runner import is_finished
from app.jobs.zotero import request_zotero
from app.models.arxiv import base_id
from app.models.webpage import LONGEST_URL
from app.storage.catalog.folders import FailedFile, SyncedFolder

sync_router = APIRouter(prefix="/api/v1/sync", tags=["ingest"], responses=declared())

MAX_FOLDER_CHARACTERS = 5_000
FOLDER = "names the folder; the client makes the name up and always sends the same"


class SyncedDocuments(Reply):
    """Source keys, sorted."""

    source_keys: list[str]


class SyncRemoval(RequestModel):
    """Files that were removed from a synced folder."""

    library: LibraryName
    folder: Annotated[
        str, Field(min_length=1, max_length=MAX_FOLDER_CHARACTERS, description=FOLDER)
    ]
    source_keys: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1024)]], Field(max_length=10_000)
    ]


class FolderLook(RequestModel):
    """What a sync found in a folder."""

    library: LibraryName
    folder: Annotated[
        str, Field(min_length=1, max_length=MAX_FOLDER_CHARACTERS, description=FOLDER)
    ]
    watching: Flag = Field(description="it follows changes, and says so every five minutes")
    failed: Annotated[list[FailedFile], Field(max_length=1000)] | None = Field(
        None, description="null: as before"
    )


class SyncedFolders(Reply):
    """Folders by library and name."""

    folders: list[SyncedFolder]


@sync_router.get("/folders", **needs("read"))
def list_folders(services: Composition, caller: AtCaller) -> SyncedFolders:
    """List the folders that libraries follow, as their last sync left them."""
    found = services.store.claims.folders()
    return SyncedFolders(folders=[one for one in found if one.library in caller.libraries])


@sync_router.put("/folders", **needs("write", "disk_full"))
def report_folder(services: Composition, caller: AtCaller, look: FolderLook) -> SyncedFolders:
    """Keep what a sync found in a folder, and that it was looked at now."""
    library = caller.library(Library(look.library))
    services.store.claims.look(library, look.folder, watching=look.watching, failed=look.failed)
    return list_folders(services, caller)


@sync_router.get("/documents", **needs("read"))
def list_synced(
    services: Composition,
    library: OneLibrary,
    folder: Annotated[
        str, Query(min_length=1, max_length=MAX_FOLDER_CHARACTERS, description=FOLDER)
    ],
) -> SyncedDocuments:
    """List documents a folder's sync sent whose bytes are still the same."""
    return SyncedDocuments(source_keys=sorted(services.store.claims.held(library, folder)))


@sync_router.post("/remove", **needs("write", "disk_full", "index_damaged"))
def remove_synced(
    services: Composition, request: Request, caller: AtCaller, removal: SyncRemoval
) -> SyncedDocuments:
    """Remove documents that this folder's sync sent; ignore any other name.

    The reply lists the removed documents.
    """
    library = caller.library(Library(removal.library))
    removed = remove_claimed(
        services.store.claims, services.writer, library, removal.folder, removal.source_keys
    )
    changed(request, *removed)
    return SyncedDocuments(source_keys=sorted(removed))


class ZoteroSync(RequestModel):
    """Which library follows Zotero."""

    library: LibraryName = "papers"
    allow_empty: Flag = Field(
        False, description="remove documents also where more than half of them are gone at once"
    )


@sync_router.post("/zotero", status_code=202, **needs("write", "disk_full"))
def sync_zotero(services: Composition, caller: AtCaller, asked: ZoteroSync) -> Job:
    """Make a library equal Zotero on the server's machine, as a job.

    Its result counts what changed and names what failed. Asking again joins the job under way.
    """
    library = caller.library(Library(asked.library))
    return request_zotero(services.jobs, library, allow_empty=asked.allow_empty)


if TYPE_CHECKING:
    from app.bootstrap.services import Services

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/api/v1", tags=["ingest"], responses=declared())

Wait = Annotated[
    WaitName,
    Query(description="true: until vectors are applied; text: until acknowledged; false: not"),
]
_FIELDS = frozenset({"library", "source_key", "sync_folder", "tags", "metadata", "labels"})
"""Text fields of an upload."""

_TEXTS = {"type": "array", "items": {"type": "string"}}
_FORM = form_of(
    file={
        "type": "array",
        "items": {"type": "string", "format": "binary"},
        "description": "or `files`",
    },
    library={"type": "string", "enum": list(get_args(LibraryName))},
    source_key={**_TEXTS, "description": "a relative path per file, in the order of the files"},
    sync_folder={
        "type": "string",
        "description": "names the folder that is synced: what it sent can be removed by"
        " /api/v1/sync/remove",
    },
    tags={
        **_TEXTS,
        "description": "of all files, each field one or, between commas, several; they replace"
        " those of a document that is there",
    },
    metadata={
        "type": "string",
        "description": "own metadata of all files, a JSON object; keys that it does not name stay",
    },
    labels={
        **_TEXTS,
        "description": "tags, own metadata and facts of each file, in the order of the files: a"
        " JSON object {tags, metadata, title, authors, year}, each of them if wanted, or empty",
    },
)
_FAILURES = (
    "unsupported_type encrypted no_text_layer unreadable too_large conflict disk_full index_damaged"
).split()


@router.post(
    "/ingest",
    status_code=201,
    response_model=IngestResponse,
    openapi_extra=_FORM,
    **needs(
        "write",
        *_FAILURES,
        also={
            200: {"model": IngestResponse, "description": "all files were known and unchanged"},
            202: {
                "model": IngestResponse,
                "description": "accepted: the files are on disk, the job goes on; also while the"
                " server stops",
            },
            207: {"model": IngestResponse, "description": "some files failed"},
        },
    ),
)
# async, unlike its neighbours: the body is read as it arrives and the wait must not hold a thread
async def ingest(
    request: Request,
    context: ContextDep,
    library: Annotated[LibraryName | None, Query(description="default: public")] = None,
    wait: Wait = "true",
) -> Response:
    """Index one or more files and report each outcome; no file is half indexed."""

    def accept(receiver: UploadReceiver, rest: bytes) -> Job:
        receiver.feed(rest)
        upload = receiver.finish()
        changed(request, *(display_name(file.raw_name) for file in upload.files))
        return _accept(upload, context, library, retry=wait == "false")

    async with received(request, context.edge.settings, _FIELDS) as (receiver, rest):
        job = await to_thread.run_sync(accept, receiver, rest)
    return await outcome(job, wait, context)


def _accept(
    upload: Upload, context: RequestContext, in_query: LibraryName | None, *, retry: bool
) -> Job:
    """Make the upload durable: originals first, then the job's row."""
    services = context.services
    default = context.edge.settings.library
    library = one_library(context.caller, _library(upload, in_query), default)
    names = [display_name(file.raw_name) for file in upload.files]
    keys = _keys(upload, names)
    folder, labels = _folder(upload), _labels(upload, len(names))
    services.store.labels.check(labels)
    shas = services.writer.store_originals([file.path for file in upload.files])
    files = tuple(map(UploadedFile, names, keys, shas, labels))
    return submitted(services, IngestPayload(library, files, retry), folder)


def submitted(services: Services, payload: IngestPayload, folder: str = "") -> Job:
    """Return the job of files whose originals are kept; unless it is accepted, they are not."""
    files = payload.files
    try:
        if folder:
            services.store.claims.record(
                payload.library, folder, {file.source_key: file.sha256 for file in files}
            )
        return services.jobs.submit(
            "ingest",
            json_values(payload),
            files=[JobFile(file.filename, "queued", 0.0) for file in files],
            total=len(files),
            unit="files",
        )
    except (DocuMindError, OSError):
        try:
            services.writer.delete_unaccepted([file.sha256 for file in files])
        except (DocuMindError, OSError):
            logger.warning(
                "originals of a refused upload stay behind: %s",
                ", ".join(file.sha256 for file in files),
                exc_info=True,
            )
        raise


def _library(upload: Upload, in_query: LibraryName | None) -> LibraryName | None:
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


def _labels(upload: Upload, n: int) -> list[Labels]:
    """Return the tags and own metadata of each file: those of all, and over them its own."""
    tags, given = upload.fields.get("tags"), upload.fields.get("metadata", [])
    each = upload.fields.get("labels", [])
    if len(given) > 1 or len(each) not in (0, n):
        raise InvalidInput(
            f"{len(given)} metadata and {len(each)} labels fields for {n} files; send metadata"
            " once, for all, and labels once per file, or none"
        )
    shared = Labels.of(
        None if tags is None else split_tags(tags), parse_object(given[0]) if given else {}
    )
    return [shared.under(labels_from(text)) for text in each or [""] * n]


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


async def outcome(job: Job, wait: WaitName, context: RequestContext) -> Response:
    """Return an accepted job's outcome once it got as far as asked; else 202.

    Raises:
        Conflict: The job was cancelled or paused while it was waited for.
    """
    until = has_text if wait == "text" else is_finished
    jobs, stopping = context.services.jobs, context.edge.stopping
    found = None if wait == "false" else await settled(jobs, job.id, until, stopping)
    if found is None:
        body = IngestResponse(job_id=job.id, documents=[])
        return JSONResponse(body.model_dump(), status_code=202)
    return outcome_response(found, context.request_id)


def outcome_response(job: Job, request_id: str) -> Response:
    """Return the response of an ingest that has come as far as it was waited for.

    Raises:
        Conflict: The job was cancelled or paused while it was waited for.
    """
    report = report_of(job.result)
    if report is None:
        if job.state != "failed":
            raise Conflict(f"job {job.id!r} was {job.state} before it had a result")
        error = job.result.get("error") if job.result else None
        code, detail = "internal", f"job {job.id!r} failed; see its errors"
        if isinstance(error, dict):
            code, detail = str(error["code"]), str(error["detail"])
        return problem_response(problem(code=code, detail=detail, request_id=request_id))
    failed = [outcome for outcome in report.documents if outcome.status == "failed"]
    body = IngestResponse(job_id=job.id, documents=list(report.documents))
    if failed and len(failed) == len(report.documents):
        code = failed[0].code or "unreadable"
        detail = "; ".join(
            outcome.reason or f"{outcome.filename!r} failed" for outcome in failed[:20]
        )
        found = problem(code=code, detail=detail, request_id=request_id)
        return problem_response({**found, "documents": body.model_dump()["documents"]})
    known = all(outcome.status == "unchanged" for outcome in report.documents)
    return JSONResponse(body.model_dump(), status_code=207 if failed else 200 if known else 201)


collect_router = APIRouter(prefix="/api/v1", tags=["ingest"], responses=declared())

_ACCEPTED: dict[int | str, dict[str, object]] = {
    200: {"model": IngestResponse, "description": "everything was known and unchanged"},
    202: {"model": IngestResponse, "description": "accepted; the job goes on"},
    207: {"model": IngestResponse, "description": "some failed"},
}


class SamplesRemoved(Reply):
    """The number of sample documents removed, by library."""

    public: int
    papers: int


class ArxivRequest(RequestModel):
    """Which paper."""

    arxiv_id: Annotated[
        str,
        Field(min_length=1, max_length=64, description="id such as 2210.03629v2 or hep-th/9901001"),
    ]


class UrlRequest(RequestModel):
    """Which page, and where it goes."""

    url: Annotated[
        str, Field(min_length=1, max_length=LONGEST_URL, description="address of a page or file")
    ]
    library: LibraryName = "papers"


@collect_router.post(
    "/samples",
    operation_id="index_samples",
    status_code=201,
    response_model=IngestResponse,
    **needs_all("write", "not_found", "conflict", "disk_full", "index_damaged", also=_ACCEPTED),
)
async def samples(context: ContextDep, wait: Wait = "true") -> Response:
    """Index the bundled documents into both libraries; doing it again changes nothing."""
    job = context.services.jobs.submit(SAMPLES, {"purge": False}, unit="files", coalesce=True)
    return await outcome(job, wait, context)


@collect_router.delete(
    "/samples", operation_id="remove_samples", **needs_all("write", "conflict", "disk_full")
)
def drop_samples(services: Composition) -> SamplesRemoved:
    """Remove the bundled documents from both libraries, and only them.

    Removing them again removes nothing.
    """
    if any(services.jobs.unfinished(SAMPLES)):
        raise Conflict("the samples are being indexed: wait for that job, or cancel it")
    removed = remove_samples(services.catalog, services.writer)
    return SamplesRemoved(public=removed[Library.PUBLIC], papers=removed[Library.PAPERS])


_fetches = needs(
    "write", "not_found", "too_large", "conflict", "unreadable", "no_text_layer",
    "provider_unreachable", "provider_timeout", "provider_bad_response", "disk_full",
    also=_ACCEPTED,
)  # fmt: skip


@collect_router.post("/fetch-url", status_code=201, response_model=IngestResponse, **_fetches)
async def fetch_url(
    asked: UrlRequest, request: Request, context: ContextDep, wait: Wait = "true"
) -> Response:
    """Fetch a page or file from the web, or the first 50 pages that a feed or sitemap lists.

    The address is the source key. Only public addresses are fetched, as robots.txt allows, without
    credentials. The same bytes again are `unchanged`.
    """
    url = context.services.pages.checked(asked.url).geturl()
    library = context.caller.library(Library(asked.library)).value
    changed(request, url)
    payload = {"url": url, "library": library, "retry": wait == "false"}
    job = context.services.jobs.submit(FETCH, payload, total=1, unit="files")
    return await outcome(job, wait, context)


@collect_router.post("/fetch-arxiv", status_code=201, response_model=IngestResponse, **_fetches)
async def fetch_arxiv(
    asked: ArxivRequest, request: Request, context: ContextDep, wait: Wait = "true"
) -> Response:
    """Fetch a paper by its arXiv id into `papers`."""
    context.caller.library(Library.PAPERS)
    changed(request, base_id(asked.arxiv_id))
    job = context.services.jobs.submit(
        ARXIV, {"arxiv_id": asked.arxiv_id.strip(), "retry": wait == "false"}, total=1, unit="files"
    )
    return await outcome(job, wait, context)


bulk_router = APIRouter(prefix="/api/v1/bulk", tags=["bulk"], responses=declared())

NAME = r"^[^\x00-\x1f]+$"


class BulkRequest(RequestModel):
    """The work on a bulk source. The source is a path on the server's machine."""

    action: Literal["plan", "index", "embed"]
    library: LibraryName = "public"
    source: Annotated[str | None, Field(min_length=1, max_length=4096, pattern=NAME)] = Field(
        None, description="absolute path on the server, or hub:owner/name; for plan and index"
    )
    name: Annotated[str | None, Field(min_length=1, max_length=200, pattern=NAME)] = Field(
        None, description="name of the source in the ledger; null: its own name, such as enwiki"
    )
    workers: int | None = Field(
        None,
        ge=0,
        le=64,
        description="index: parser processes; 0: the server's own; null chooses by source and"
        " cores."
        " embed: batches that are with the embedder at once; 0 and null are 1",
    )
    missing: MissingPolicy | None = Field(
        None,
        description="index: documents whose article is gone from the source; remove (refused if"
        " most would go), keep, force;"
        " null keeps them for a part of a dump and removes them otherwise",
    )
    articles: int | None = Field(
        None, ge=1, description="index: at most this many articles, from the beginning"
    )
    order: Literal["id", "longest", "linked"] = Field(
        "id",
        description="embed: which documents first; linked: those most other articles of their"
        " source link to",
    )
    limit: int | None = Field(None, ge=1, description="embed: at most this many chunks")


@bulk_router.post(
    "",
    status_code=202,
    **needs_all(
        "admin", "not_found", "conflict", "unreadable", "disk_full", "fingerprint_mismatch"
    ),
)
def bulk(asked: BulkRequest, services: Composition) -> Job:
    """Start a job on a bulk source; asking for the same again joins or resumes it."""
    library = Library(asked.library)
    if asked.action == "embed":
        return request_embedding(
            services.jobs, library, asked.order, asked.limit, asked.workers or 1
        )
    if asked.source is None:
        raise InvalidInput(
            f"action {asked.action!r} needs a source: an absolute path on the server, or"
            " hub:owner/name"
        )
    if not asked.source.startswith("hub:") and not Path(asked.source).is_absolute():
        raise InvalidInput(
            f"source {asked.source!r} must be an absolute path on the server, or hub:owner/name"
        )
    if not asked.source.startswith("hub:"):
        server_path(asked.source)
    if asked.action == "plan":
        open_articles(asked.source)
        payload = {"library": library.value, "source": asked.source, "name": asked.name}
        return services.jobs.submit(BULK_PLAN, payload, unit="articles")
    # Articles that the source lacks are kept for a part of a dump, else removed.
    missing = asked.missing or ("keep" if asked.articles or is_part(asked.source) else "remove")
    name = asked.name or source_name(asked.source)
    run = BulkPayload(library, asked.source, name, asked.workers, missing, asked.articles)
    return services.bulk.request(run)


@bulk_router.get("/ledger", **needs("read"))
def bulk_ledger(
    services: Composition,
    library: SeenLibrary,
    source: Annotated[
        str | None,
        Query(min_length=1, max_length=200, description="name of one source, for example enwiki"),
    ] = None,
) -> LedgerSummary:
    """Count the outcomes of all articles, of one library's, or of one source's."""
    return services.store.ledger.summary(library, source)
