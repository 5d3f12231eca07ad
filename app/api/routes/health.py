"""Probes and diagnostics."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Sequence

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response

from app.api.deps import AtEdge, Composition
from app.api.errors import declared
from app.api.schemas.documents import CollectionStats, Embedding
from app.api.schemas.status import Diagnostics, Health, LibraryDiagnostics, Live, ModelHost, Ready
from app.api.services import ServicePort
from app.core.release import checkout_sha, package_version
from app.core.types import Library
from app.index.files.disk import bytes_by_store

router = APIRouter(tags=["health"])

_ENGINES = ("database ", "search engine ", "object store ")
"""How the names of parts begin that another process serves."""

_LOOKS = CapacityLimiter(2)
"""Threads that look at the disk for readiness probes."""


@router.get("/health/live", operation_id="live", response_model=Live)
async def live() -> Live:
    """Confirm that the process runs.

    Answered without the thread pool, also during the start and at full load.
    """
    return Live()


@router.get(
    "/health/ready",
    operation_id="ready",
    response_model=Ready,
    responses={503: {"model": Ready, "description": "not yet"}},
)
async def ready(edge: AtEdge, response: Response) -> Ready:
    """Report whether requests will be answered; 503 names what is missing."""
    startup = edge.startup
    if startup.failure:
        response.status_code = 503
        return Ready(status="failed", missing=list(startup.missing), detail=startup.failure)
    if startup.missing:
        response.status_code = 503
        return Ready(status="starting", missing=list(startup.missing))
    # Not by the pool of the routes: a probe does not wait behind questions.
    if missing := await to_thread.run_sync(startup.services().missing, limiter=_LOOKS):
        response.status_code = 503
        return Ready(status="failed", missing=list(missing), detail=_explained(missing))
    return Ready(status="ready", missing=[])


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


@router.get("/health", operation_id="health", response_model=Health)
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
        )
    services = startup.services()
    parts = services.status()
    hosts = [
        ModelHost(name=h.name, url=h.url, reachable=h.reachable, detail=h.detail)
        for h in parts.hosts
    ]
    return Health(
        status="starting" if startup.missing else "ready",
        version=package_version(),
        embedder=parts.embedding[edge.settings.library.value].embedder,
        generator=services.generator.name,
        generator_why=parts.answers_why,
        embedding={
            library.value: Embedding.of(parts.embedding[library.value]) for library in Library
        },
        hosts=hosts,
        libraries=[library_stats(services, library) for library in Library]
        if edge.key.accepts(request.scope)
        else None,
    )


def library_stats(services: ServicePort, library: Library) -> CollectionStats:
    """Return the counts of one library."""
    counts = services.catalog.counts(library)
    return CollectionStats(
        library=library.value,
        documents=counts.documents,
        chunks=counts.chunks,
        embedded=counts.embedded,
        by_type=dict(counts.by_type),
    )


@router.get(
    "/api/v1/diagnostics",
    operation_id="diagnostics",
    response_model=Diagnostics,
    responses=declared(),
)
def diagnostics(services: Composition, edge: AtEdge) -> Diagnostics:
    """Return everything that support needs; no secrets, no questions."""
    settings, status = edge.settings, services.status()
    libraries = []
    for library in Library:
        counts = services.catalog.counts(library)
        libraries.append(
            LibraryDiagnostics(
                library=library.value,
                documents=counts.documents,
                chunks=counts.chunks,
                embedded=counts.embedded,
                bytes=counts.bytes,
                fingerprint=services.catalog.fingerprint(library),
            )
        )
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
        libraries=libraries,
        retrieval={
            "top_k_results": settings.top_k_results,
            "fusion": settings.fusion,
            "relevance_threshold": settings.relevance_threshold,
            "public_relevance_threshold": settings.public_relevance_threshold,
            "keyword_rerank_weight": settings.keyword_rerank_weight,
            "public_keyword_rerank_weight": settings.public_keyword_rerank_weight,
            "enable_fallback_retrieval": settings.enable_fallback_retrieval,
            "fallback_top_n": settings.fallback_top_n,
            "grounding_min_similarity": settings.grounding_min_similarity,
            "embed_on_query_budget_ms": settings.embed_on_query_budget_ms,
        },
        acting={library: dict(constants) for library, constants in status.acting.items()},
        inert=list(status.inert),
        chunking={"chunk_size": settings.chunk_size, "chunk_overlap": settings.chunk_overlap},
        disk=bytes_by_store(settings.data_dir, settings.chroma_dir),
        limits={
            "max_file_size_bytes": settings.max_file_size_mb * 2**20,
            "thread_pool_size": settings.thread_pool_size,
            "max_streams": settings.max_streams,
            "max_model_calls": settings.max_model_calls,
            "rate_limit_per_minute": settings.rate_limit_per_minute,
            "max_dense_vectors": settings.index().max_dense_vectors,
        },
        watermarks=dict(status.watermarks),
        lags=dict(services.projections.lags()),
        active_streams=edge.streams.taken,
        jobs=dict(Counter(job.state for job in services.jobs.list(1000))),
    )
