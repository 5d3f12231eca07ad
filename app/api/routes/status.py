"""Probes, diagnostics, metrics, models and libraries."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request, Response
from starlette.responses import PlainTextResponse

from app.answer.service import asked_by_default
from app.api.deps import (
    AtCaller,
    AtEdge,
    Composition,
    OneLibrary,
    changes_settings,
    needs,
    needs_all,
)
from app.api.errors import declared
from app.api.metrics import CONTENT_TYPE
from app.api.schemas.documents import (
    Cleared,
    CollectionStats,
    Embedding,
    LibraryList,
    LibraryStatus,
)
from app.api.schemas.status import (
    ChoiceRequest,
    Diagnostics,
    Health,
    HostReply,
    HostRequest,
    JobReply,
    LibraryDiagnostics,
    Live,
    ModelHost,
    ModelList,
    ModelOnDisk,
    ModelTest,
    ModelTests,
    PromptReply,
    PullRequest,
    Ready,
    TestRequest,
)
from app.core.errors import InvalidInput, StorageError
from app.core.ids import checkout_sha, package_version, without_credentials
from app.core.types import Library, LibraryName, Mode, Scope
from app.jobs.kinds import PULL
from app.storage.files.durable import bytes_by_store

if TYPE_CHECKING:
    from app.bootstrap.services import Services

router = APIRouter(tags=["health"])

_ENGINES = ("database ", "search engine ")
"""How the names of parts begin that another process serves."""

_LOOKS = CapacityLimiter(2)
"""Threads that look at the disk for readiness probes."""


@router.get("/health/live")
async def live() -> Live:
    """Confirm that the process runs.

    Answered without the thread pool, also during the start and at full load.
    """
    return Live()


@router.get("/health/ready", responses={503: {"model": Ready, "description": "not yet"}})
async def ready(edge: AtEdge, response: Response) -> Ready:
    """Report whether requests will be answered; 503 names what is missing, 200 what is degraded."""
    startup = edge.startup
    if startup.failure:
        response.status_code = 503
        return Ready(status="failed", missing=list(startup.missing), detail=startup.failure)
    if startup.missing:
        response.status_code = 503
        return Ready(status="starting", missing=list(startup.missing))
    # Not by the pool of the routes: a probe does not wait behind questions.
    if missing := await to_thread.run_sync(startup.services().store.missing, limiter=_LOOKS):
        response.status_code = 503
        return Ready(status="failed", missing=list(missing), detail=_explained(missing))
    try:
        degraded = await to_thread.run_sync(startup.services().store.degraded, limiter=_LOOKS)
    except StorageError as error:  # since it was looked whether something is missing
        degraded = (error.message,)
    return Ready(status="ready", missing=[], degraded=list(degraded))


def _explained(missing: Sequence[str]) -> str:
    """Return what became of missing parts, and what to do."""
    away = [name for name in missing if name.startswith(_ENGINES)]
    gone = [name for name in missing if name not in away]
    said = []
    if away:
        one = len(away) == 1
        said.append(
            f"{' and '.join(away)} {'does' if one else 'do'} not answer; the server goes on when"
            f" {'it is' if one else 'they are'} back"
        )
    if gone:
        said.append(
            f"{' and '.join(gone)} gone or damaged under the server; stop it, see what"
            " became of DATA_DIR, and start it again"
        )
    return ". ".join(said)


@router.get("/health")
def health(request: Request, edge: AtEdge) -> Health:
    """Report generator, embedder and whether their hosts respond.

    Counts only for callers who may see them.
    """
    startup = edge.startup
    if startup.missing and startup.missing != ("embedder",):
        status = "failed" if startup.failure else "starting"
        return Health(
            status=status,
            version=package_version(),
            embedder=None,
            generator=None,
            embedding={},
            hosts=[],
            libraries=None,
            settings=edge.settings.allow_settings,
        )
    services = startup.services()
    parts = services.status()
    return Health(
        status="starting" if startup.missing else "ready",
        version=package_version(),
        embedder=parts.embedding[edge.settings.library.value].embedder,
        generator=services.generator.name,
        generator_why=parts.answers_why,
        embedding={
            library: Embedding.model_validate(state) for library, state in parts.embedding.items()
        },
        hosts=[ModelHost.model_validate(host) for host in parts.hosts],
        libraries=[library_stats(services, library) for library in Library]
        if edge.key.sees_counts(request.scope)
        else None,
        settings=edge.settings.allow_settings,
    )


def library_stats(services: Services, library: Library) -> CollectionStats:
    counts = services.catalog.counts(library)
    return CollectionStats.model_validate({**asdict(counts), "library": library.value})


def _counted(services: Services, library: Library) -> dict[str, object]:
    fingerprint = services.catalog.fingerprint(library)
    counts = asdict(services.catalog.counts(library))
    return {**counts, "library": library.value, "fingerprint": fingerprint}


_RETRIEVAL = (
    "top_k_results fusion relevance_threshold public_relevance_threshold keyword_rerank_weight"
    " public_keyword_rerank_weight enable_fallback_retrieval fallback_top_n"
    " grounding_min_similarity embed_on_query_budget_ms"
).split()
_LIMITS = "thread_pool_size max_streams max_model_calls rate_limit_per_minute".split()


@router.get("/api/v1/diagnostics", **needs_all("admin"))
def diagnostics(services: Composition, edge: AtEdge) -> Diagnostics:
    """Return everything that support needs; no secrets, no questions."""
    settings, status = edge.settings, services.status()
    return Diagnostics(
        version=package_version(),
        git_sha=settings.documind_git_sha or checkout_sha(),
        python=sys.version.split()[0],
        platform=platform.platform(terse=True),
        uptime_s=round(edge.uptime_s(), 1),
        app_env=settings.app_env,
        embedder=status.embedding[settings.library.value].embedder,
        generator=services.generator.name,
        default_library=settings.default_library,
        libraries=[
            LibraryDiagnostics.model_validate(_counted(services, library)) for library in Library
        ],
        retrieval={name: getattr(settings, name) for name in _RETRIEVAL},
        acting={library: dict(constants) for library, constants in status.acting.items()},
        inert=list(status.inert),
        chunking={"chunk_size": settings.chunk_size, "chunk_overlap": settings.chunk_overlap},
        disk=bytes_by_store(settings.data_dir, settings.chroma_dir),
        limits={
            "max_file_size_bytes": settings.max_file_size_mb * 2**20,
            **{name: getattr(settings, name) for name in _LIMITS},
            "max_dense_vectors": settings.index().max_dense_vectors,
        },
        watermarks=dict(status.watermarks),
        lags=dict(services.store.status.lags()),
        active_streams=edge.streams.taken,
        jobs=dict(Counter(job.state for job in services.jobs.list(1000))),
    )


models_router = APIRouter(prefix="/api/v1", tags=["models"], responses=declared())


@models_router.get("/models", **needs("read"))
def list_models(services: Composition) -> ModelList:
    """List models that Ollama has installed and loaded, and those in use.

    Empty lists without Ollama.
    """
    report = services.model_report()
    return ModelList(
        installed=[
            ModelOnDisk(name=name, size_bytes=size, chats=name in report.chat)
            for name, size in report.installed
        ],
        loaded=list(report.loaded),
        in_use=dict(report.in_use),
        decided_by=report.decided_by,
        why=report.why,
        fit=report.fit,
        tests=[ModelTest.of(model, found) for model, found in services.model_tests.results()],
    )


@models_router.put(
    "/models/answering",
    **changes_settings("model_not_installed", "conflict", "provider_unreachable", "disk_full"),
)
def choose_model(services: Composition, wanted: ChoiceRequest) -> ModelList:
    """Choose which of Ollama's models answers, from the next question on.

    Refused while LLM_MODEL or LLM_PROVIDER names one.
    """
    services.models.choose(wanted.model or "")
    return list_models(services)


@models_router.get("/models/host", **needs_all("admin"))
def get_host(services: Composition) -> HostReply:
    """The OpenAI-compatible host that was chosen; empty without one. Its key is never shown."""
    host, overruled_by = services.models.host()
    return HostReply(
        base_url=without_credentials(host.base_url) if host else "",
        model=host.model if host else "",
        has_key=bool(host and host.api_key),
        overruled_by=overruled_by,
    )


@models_router.put("/models/host", **changes_settings("conflict", "disk_full"))
def choose_host(services: Composition, wanted: HostRequest) -> HostReply:
    """Let a model of an OpenAI-compatible host answer, from the next question on.

    Questions and passages go to that host. Refused while the environment names a model or host;
    `PUT /api/v1/models/answering` takes its place again.
    """
    services.models.choose_host(wanted.base_url.strip(), wanted.model, wanted.api_key)
    return get_host(services)


@models_router.get("/models/prompts", **needs_all("admin"))
def show_prompts(
    services: Composition, query_mode: Mode = "general", library: Scope = "all"
) -> PromptReply:
    """The prompts of a kind of answer; `datasets` asks no model and has none."""
    prompts = services.prompts
    reasoning = prompts.answer(query_mode, library).reasoning or services.settings.reasoning
    asked = ("{question}", "{passages}")
    return PromptReply(
        full=list(prompts.build(query_mode, library, *asked, fence="---", reasoning=reasoning)),
        compact=list(prompts.small(query_mode, *asked, reasoning)),
        own=sorted(name for name in prompts.sources if prompts.is_overlaid(name[:-4])),
    )


@models_router.post("/models/pull", status_code=202, **changes_settings("disk_full"))
def pull_model(services: Composition, wanted: PullRequest) -> JobReply:
    """Fetch a model into Ollama as a job; an interrupted fetch resumes."""
    job = services.jobs.submit(PULL, {"model": wanted.model}, unit="bytes")
    return JobReply.of(job)


@models_router.post(
    "/models/test", status_code=202, **changes_settings("model_not_installed", "disk_full")
)
def test_model(services: Composition, wanted: TestRequest) -> JobReply:
    """Test a model on 24 built-in questions with both prompts, as a job.

    The result decides how the model is asked.
    """
    return JobReply.of(services.model_tests.start(wanted.model))


@models_router.get("/models/tests", **needs("read"))
def list_model_tests(services: Composition) -> ModelTests:
    """List results of model tests, newest first, with a summary line."""
    return ModelTests.of(services.model_tests.results())


libraries_router = APIRouter(prefix="/api/v1", tags=["libraries"], responses=declared())


@libraries_router.get("/libraries", **needs("read"))
def list_libraries(services: Composition, edge: AtEdge, caller: AtCaller) -> LibraryList:
    """The libraries that the key may use, with their counts, from the catalog."""
    status = services.status()
    found = []
    for library in filter(caller.libraries.__contains__, Library):
        embedding = status.embedding[library.value]
        build = status.builds.get(library.value, "none")
        found.append(
            LibraryStatus.model_validate(
                {
                    **_counted(services, library),
                    "embedding": embedding,
                    "notices": embedding.notices,
                    "build": build,
                }
            )
        )
    asked = asked_by_default(services.catalog, edge.settings.default_library)
    return LibraryList(libraries=found, default_library=asked.library, default_reason=asked.reason)


@libraries_router.delete("/libraries/{library}/documents", **needs("admin", "disk_full"))
def clear_library(
    services: Composition,
    caller: AtCaller,
    library: LibraryName,
    confirm: Annotated[str, Query(description="the library's name, to confirm")],
) -> Cleared:
    """Remove every document of a library. `confirm` must repeat its name."""
    if confirm != library:
        raise InvalidInput(
            f"confirm {confirm!r} must be {library!r}, the library that will be emptied"
        )
    gone = services.writer.delete_all(caller.library(Library(library)))
    return Cleared(
        library=library, documents=gone.documents, chunks=gone.chunks, vectors=gone.embedded
    )


@libraries_router.get("/collection/stats", **needs("read"))
def collection_stats(services: Composition, library: OneLibrary) -> CollectionStats:
    """Counts of one library, by type of document."""
    return library_stats(services, library)


metrics_router = APIRouter(tags=["health"])


@metrics_router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request, edge: AtEdge) -> Response:
    """Return metrics of requests, answers, stages, models, jobs and projections.

    Counts of documents only for callers who may see them.
    """
    startup = edge.startup
    readable = not startup.missing and edge.key.sees_counts(request.scope)
    services = startup.services() if readable else None
    return Response(edge.metrics.exposition(services, edge.streams.taken), media_type=CONTENT_TYPE)
