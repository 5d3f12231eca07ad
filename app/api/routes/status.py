"""Probes, diagnostics, metrics, models and libraries."""

from __future__ import annotations

import json
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Literal, Self

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, StringConstraints
from starlette.responses import PlainTextResponse

from app.answer.model_test import CheckedBy, CheckRates, Counts, compared
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
from app.api.schemas.base import Reply
from app.api.schemas.base import Request as RequestModel
from app.core.documents import OUT_OF_REACH
from app.core.errors import InvalidInput, StorageError
from app.core.ids import checkout_sha, package_version, without_credentials
from app.core.types import (
    DefaultLibrary,
    EmbeddingState,
    Fingerprint,
    HostStatus,
    Job,
    Library,
    LibraryName,
    Message,
    Mode,
    ModelFindings,
    ModelReport,
    Notice,
    Scope,
)
from app.jobs.kinds import PULL
from app.storage.files.durable import bytes_by_store

if TYPE_CHECKING:
    from app.bootstrap.services import Services


class CollectionStats(Reply):
    """Counts of a library."""

    library: LibraryName
    documents: int
    chunks: int
    embedded: int
    by_type: dict[str, int]


class LibraryDiagnostics(Reply):
    """One library in numbers."""

    library: LibraryName
    documents: int
    chunks: int
    embedded: int
    bytes: int
    fingerprint: Fingerprint | None = Field(
        description="null while the library has never been written"
    )


class LibraryStatus(LibraryDiagnostics):
    """Counts and build state of one library."""

    samples: int = Field(
        description="documents that came with the program; DELETE /api/v1/samples removes them"
    )
    embedding: EmbeddingState
    notices: list[Notice] = Field(
        description="notices about the library's vectors, such as `better_embedder`"
    )
    build: str = Field(
        description="`ready`, or `rebuilding DONE of TOTAL` while an index is rebuilt from the"
        " catalog"
    )


class LibraryList(Reply):
    """Both libraries."""

    libraries: list[LibraryStatus]
    default_library: Scope = Field(description="where a question looks that names no library")
    default_reason: str = Field(description="why there: DEFAULT_LIBRARY, or what libraries hold")


class Cleared(Reply):
    """Counts of what clearing a library removed."""

    library: LibraryName
    documents: int
    chunks: int
    vectors: int
    out_of_reach: list[str] = Field(
        list(OUT_OF_REACH), description="copies that no deletion and no purge can remove"
    )


class Live(Reply):
    """The process is up."""

    status: Literal["ok"] = "ok"


class Ready(Reply):
    """Readiness: requests are answered now, or what is missing."""

    status: Literal["ready", "starting", "failed"]
    missing: list[str] = Field(description="missing parts; empty when ready")
    detail: str = Field(
        "", description="why the start failed or waits, or which engine or files are gone"
    )
    degraded: list[str] = Field(
        [],
        description="what is not as it should be though requests are answered: a database that can"
        " only be read, a node or an object store that does not answer, words or vectors that are"
        " filled again",
    )


class Health(Reply):
    """Generator, embedder, and whether their hosts respond."""

    status: Literal["ready", "starting", "failed"]
    version: str
    embedder: str | None = Field(description="of the default library")
    generator: str | None
    generator_why: str = Field(
        "", description="why this one answers; without a model, why none does, and what to do"
    )
    embedding: dict[LibraryName, EmbeddingState] = Field(
        description="embedder of each library, and whether it responds"
    )
    hosts: list[HostStatus]
    libraries: list[CollectionStats] | None = Field(
        description="null if an API key is set and the request has none"
    )
    settings: bool = Field(
        description="models, hosts and keys can be changed over HTTP (ALLOW_SETTINGS)"
    )


class Diagnostics(Reply):
    """Everything that support asks a user for."""

    version: str
    git_sha: str
    python: str
    platform: str
    uptime_s: float
    app_env: str
    embedder: str
    generator: str
    default_library: DefaultLibrary
    libraries: list[LibraryDiagnostics]
    retrieval: dict[str, float | int | str | bool | None] = Field(
        description="configured thresholds and weights"
    )
    acting: dict[str, dict[str, float]] = Field(
        description="by library, the constants that decide: of the fusion and the embedder's"
        " calibration"
    )
    inert: list[str] = Field(description="changed settings without effect, and what acts instead")
    chunking: dict[str, int] = Field(description="characters")
    disk: dict[str, int] = Field(
        description="bytes on disk by store: catalog, chroma, tantivy, exact, originals, models,"
        " ..."
    )
    limits: dict[str, int] = Field(description="bytes, threads, streams, requests")
    watermarks: dict[str, int] = Field(
        description="last change each projection has applied; `changes` is the newest there is"
    )
    lags: dict[str, int] = Field(description="changes each projection is behind; 10,000 means more")
    active_streams: int
    jobs: dict[str, int] = Field(description="jobs by state")


ModelName = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$")
]


class ModelTest(Reply):
    """The findings of one model's test."""

    model: str = Field(description="provider:model")
    prompts: Literal["compact", "full"] = Field(description="prompt to use from now on")
    evidence: Literal["short", "full"] = Field(description="amount of evidence to use from now on")
    as_good_as_quotes: bool = Field(
        description="its own words were right at least as often as the quotes alone; it speaks"
        " alone"
    )
    advice: str
    at: str = Field(description="when it was tested, UTC ISO 8601")
    questions: int
    quotes_right: int = Field(
        description="questions that the quotes alone answer, or rightly refuse"
    )
    counts: dict[str, Counts] = Field(description="by prompt: compact, full")
    reading_tokens_s: float | None
    writing_tokens_s: float | None
    budget_tokens: int = Field(description="most evidence it gets")
    budget_s: float | None = Field(description="seconds this host needs to read it")
    checks: dict[CheckedBy, CheckRates] = Field(
        default={}, description="the model as the judge of 40 claims, and the reader beside it"
    )

    @classmethod
    def of(cls, model: str, found: ModelFindings) -> Self:
        report = json.loads(found.report)
        counts = report.pop("prompts")
        return cls.model_validate({**report, **asdict(found), "model": model, "counts": counts})


class ModelTests(Reply):
    """All tested models, newest first."""

    tests: list[ModelTest]
    advice: str = Field(
        description="one line that compares them with each other and the quotes; empty without a"
        " test"
    )

    @classmethod
    def of(cls, found: Sequence[tuple[str, ModelFindings]]) -> Self:
        return cls(tests=[ModelTest.of(model, one) for model, one in found], advice=compared(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList(ModelReport):
    """Models of the Ollama host, and what is in use."""

    tests: tuple[ModelTest, ...]
    """Results of model tests, newest first."""


class PullRequest(RequestModel):
    """Which model."""

    model: ModelName


class ChoiceRequest(RequestModel):
    """Which model answers from now on."""

    model: ModelName | None = Field(description="null: the server decides")


class HostReply(Reply):
    """An OpenAI-compatible host as it was chosen; its key is not shown."""

    base_url: str
    model: str
    has_key: bool
    overruled_by: str = Field(
        description="the setting of the environment that decides instead; empty: none"
    )


class HostRequest(RequestModel):
    """An OpenAI-compatible host whose model answers from now on."""

    base_url: Annotated[str, Field(max_length=500, examples=["https://api.example.com/v1"])]
    model: ModelName
    api_key: str | None = Field(
        None, repr=False, description="null: that of before, if the address is the same"
    )


class PromptReply(Reply):
    """What is sent to a model, with {question} and {passages} for what varies."""

    full: list[Message]
    compact: list[Message] = Field(description="for small or slow models (MODEL_PROMPTS)")
    own: list[str] = Field(description="files of PROMPTS_DIR that took the place of packaged ones")


class TestRequest(RequestModel):
    """Which model to test."""

    __test__ = False  # no test case

    model: ModelName | None = Field(default=None, description="null: the configured model")


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
        return Ready(status="starting", missing=list(startup.missing), detail=startup.waiting)
    # Not by the pool of the routes: a probe does not wait behind questions.
    if missing := await to_thread.run_sync(startup.services().store.missing, limiter=_LOOKS):
        response.status_code = 503
        return Ready(status="failed", missing=list(missing), detail=_explained(missing))
    try:
        degraded = await to_thread.run_sync(startup.services().store.degraded, limiter=_LOOKS)
    except StorageError as error:  # since that check
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
        embedding=dict(parts.embedding),
        hosts=list(parts.hosts),
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
    " embed_on_query_budget_ms"
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
        lags=dict(services.store.projector.log.lags()),
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
        **{one.name: getattr(report, one.name) for one in fields(report)},
        tests=tuple(ModelTest.of(*found) for found in services.model_tests.results()),
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
    asked = (query_mode, library, "{question}", "{passages}")
    return PromptReply(
        full=list(prompts.build(*asked, fence="---", reasoning=reasoning)),
        compact=list(prompts.build(*asked, reasoning=reasoning, compact=True)),
        own=sorted(name for name in prompts.sources if prompts.is_overlaid(name[:-4])),
    )


@models_router.post("/models/pull", status_code=202, **changes_settings("disk_full"))
def pull_model(services: Composition, wanted: PullRequest) -> Job:
    """Fetch a model into Ollama as a job; an interrupted fetch resumes."""
    return services.jobs.submit(PULL, {"model": wanted.model}, unit="bytes")


@models_router.post(
    "/models/test", status_code=202, **changes_settings("model_not_installed", "disk_full")
)
def test_model(services: Composition, wanted: TestRequest) -> Job:
    """Test a model on 24 built-in questions with both prompts, as a job.

    The result decides how the model is asked.
    """
    return services.model_tests.start(wanted.model)


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
        state = {"embedding": embedding, "notices": embedding.notices, "build": build}
        found.append(LibraryStatus.model_validate({**_counted(services, library), **state}))
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
