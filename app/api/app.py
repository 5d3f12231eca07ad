"""Build the HTTP application: routes, middleware in order, fast start.

Run it with `uvicorn app.api.app:create_app --factory` or `documind serve`.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from app.api import openai, openai_responses
from app.api.deps import AppState, allowed_methods, publish
from app.api.errors import problem, problem_response, request_id_of, response_of, status_of
from app.api.mcp import McpDoor
from app.api.middleware.access import ApiKey, HostAndOrigin, KeyCheck, SecurityHeaders
from app.api.middleware.limits import BodyLimit, Concurrency, Dialect, RateLimit, route_path
from app.api.middleware.observing import Observed, ProxyPrefix, RequestEdge, shown_path
from app.api.page import add_docs, add_page
from app.api.routes import corrections, documents, ingest, jobs, keys, questions, shares, status
from app.api.startup import Startup
from app.api.streaming import StreamSlots
from app.core import errors
from app.core.access import Caller
from app.core.ids import package_version
from app.core.text import fault_in_words
from app.settings import Settings, check_start

if TYPE_CHECKING:
    from app.bootstrap.services import Services

_BY_HTTP_STATUS = {
    401: "unauthorized",
    403: "host_refused",
    404: "not_found",
    413: "too_large",
    415: "unsupported_type",
}
"""Codes for what the framework refuses by itself; anything else of the 4xx is invalid_input."""


def install(app: FastAPI) -> None:
    """Answer our errors, validation errors and framework refusals as problems."""

    @app.exception_handler(errors.DocuMindError)
    def ours(request: Request, error: errors.DocuMindError) -> Response:
        if status_of(type(error)) >= 500:
            path = shown_path(request.scope)
            logger.warning("%s %s: %s: %s", request.method, path, error.code, error.message)
        caller: Caller | None = request.scope.get("caller")
        return response_of(caller.heard(error) if caller else error, request_id_of(request))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        detail = "; ".join(_lines(error.errors()[:20]))
        return response_of(errors.InvalidInput(detail), request_id_of(request))

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # a body that cannot be read, which is 422 here
            return response_of(errors.InvalidInput(str(error.detail)), request_id_of(request))
        code = _BY_HTTP_STATUS.get(
            error.status_code, "invalid_input" if error.status_code < 500 else "internal"
        )
        detail = f"{request.method} {request.scope['path']!r}: {error.detail}"
        body = problem(
            status=error.status_code, code=code, detail=detail, request_id=request_id_of(request)
        )
        response = problem_response(body)
        response.headers.update(error.headers or {})
        if error.status_code == 405 and (
            methods := allowed_methods(app, route_path(request.scope))
        ):
            response.headers["Allow"] = ", ".join(methods)
        return response


def _lines(found: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield validation findings; the unknown field that is most like a missing one names it."""
    of = {
        kind: [_where(item) for item in found if item.get("type") == kind]
        for kind in ("missing", "extra_forbidden")
    }
    meant = {}
    for name in of["missing"] if of["extra_forbidden"] else ():
        (nearest,) = get_close_matches(name, of["extra_forbidden"], n=1, cutoff=0.0)
        meant[nearest] = name
    for item in found:
        name = meant.get(_where(item), "")
        yield f"{_line(item)}; did you mean {name!r}?" if name else _line(item)


def _where(item: Mapping[str, object]) -> str:
    location = item.get("loc")
    parts = location if isinstance(location, tuple) else ()
    source = 1 if parts and parts[0] in {"body", "query", "path", "header"} else 0
    return ".".join(map(str, parts[source:]))


def _line(item: Mapping[str, object]) -> str:
    """Return one validation finding: the field, what is wrong, and the value."""
    where = _where(item) or "request"
    got = item.get("input")
    shown = f" (got {got!r:.80})" if isinstance(got, str | int | float | bool) else ""
    limits = item.get("ctx")
    said = fault_in_words(
        str(item.get("type")), limits if isinstance(limits, Mapping) else {}, str(item.get("msg"))
    )
    return f"{where}{said}{shown}"


logger = logging.getLogger(__name__)

Build = Callable[[Settings], AbstractContextManager["Services"]]

_JSON_BYTES = 4 * 2**20
"""Cap of an ordinary body: 200 history messages of 20,000 characters fit."""
_CHECK_BYTES = 8 * 2**20
"""Two texts of the most characters that a check takes, in UTF-8."""
_FILES_PER_REQUEST = 40
"""An upload may hold this many files of the largest size."""
_GZIP_BYTES = 1024
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  # compared, not bound

_DESCRIPTION = (
    "Two libraries, `public` and `papers`; answers whose every citation points at exact characters"
    " of a stored document. "
    "Offsets are Unicode code points, half-open. Errors are problem+json with a stable `code`."
)


def end_process(error: BaseException) -> None:
    """Ask the server around us to stop: without its services it would only refuse."""
    del error
    signal.raise_signal(signal.SIGTERM)


def open_services(settings: Settings) -> AbstractContextManager[Services]:
    # Chroma, ONNX Runtime and tantivy take most of a second to import. A thread imports them,
    # so that probes are answered.
    from app.bootstrap import build_services  # noqa: PLC0415

    return build_services(settings)


def create_app(
    settings: Settings | None = None,
    *,
    build: Build | None = None,
    local_key: str = "",
    on_failure: Callable[[BaseException], None] = end_process,
    on_ready: Callable[[], None] | None = None,
) -> FastAPI:
    """Return the application; nothing is opened before its lifespan begins.

    Args:
        settings: None reads the environment.
        build: Makes the services; runs in a thread while probes are already answered. None is
            `app.bootstrap.build_services`.
        local_key: Opens everything to commands that may read the data directory; empty: none.
        on_failure: Called in that thread when the services cannot be built.
        on_ready: Called in that thread when requests are answered and the embedder is warm.

    Raises:
        InvalidInput: The settings listen beyond this machine without a key.
    """
    settings = settings or Settings()
    check_start(settings)
    startup = Startup(
        partial(build or open_services, settings), on_failure, on_ready, settings.start_patience_s
    )
    check = KeyCheck(
        lambda: startup.services().store.keys, key=settings.api_key, local_key=local_key
    )
    edge = AppState(settings, startup, StreamSlots(settings.max_streams), check)
    tools = McpDoor(edge, package_version())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = settings.thread_pool_size
        asyncio.get_running_loop().set_default_executor(
            ThreadPoolExecutor(settings.thread_pool_size, "search")
        )
        # uploads that an earlier process had not taken over when it ended
        orphans = settings.data_dir / "uploads"
        await to_thread.run_sync(partial(shutil.rmtree, orphans, ignore_errors=True))
        startup.begin()
        try:
            async with tools.open():
                yield
        finally:
            await to_thread.run_sync(startup.close)

    app = FastAPI(
        title="DocuMind",
        version=package_version(),
        description=_DESCRIPTION,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
        openapi_url=None if settings.disable_openapi else "/openapi.json",
        middleware=_middleware(settings, edge),
    )
    app.state.edge = edge
    install(app)
    for router in (
        questions.router,  # first, because routes are tried in this order
        questions.checks_router,
        status.router,
        status.metrics_router,
        status.libraries_router,
        ingest.router,
        ingest.sync_router,
        ingest.collect_router,
        ingest.bulk_router,
        jobs.router,
        documents.papers_router,
        documents.labels_router,
        documents.router,
        corrections.router,
        jobs.evaluations_router,
        questions.conversations_router,
        status.models_router,
        jobs.maintenance_router,
        keys.router,
        shares.router,
        shares.open_router,
    ):
        app.include_router(router)
    app.include_router(openai.router)
    app.include_router(openai_responses.router)
    app.router.routes.append(Route("/mcp", tools, methods=["POST"], include_in_schema=False))
    if not settings.disable_openapi:
        publish(app)
        add_docs(app)
    add_page(app)
    return app


def _middleware(settings: Settings, edge: AppState) -> list[Middleware]:
    """Return the layers, outermost first (docs/architecture.md)."""
    upload_bytes = _FILES_PER_REQUEST * settings.max_file_size_mb * 2**20
    limits = {"/api/v1/ingest": upload_bytes, "/api/v1/check": _CHECK_BYTES}
    layers = [
        Middleware(ProxyPrefix, prefix=settings.root_path),
        Middleware(Observed, metrics=edge.metrics, spans=edge.spans),
        Middleware(SecurityHeaders, hsts=settings.app_env == "production"),
        Middleware(Dialect),
        Middleware(
            HostAndOrigin,
            trusted=(*settings.trusted_hosts, *({settings.api_host} - _EVERY_ADDRESS)),
            origins=settings.cors_origins,
            any_origin=settings.cors_allow_all,
            loopback_only=not settings.api_key and not settings.allow_insecure_bind,
        ),
        Middleware(
            CORSMiddleware,
            allow_origins=["*"] if settings.cors_allow_all else list(settings.cors_origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        ),
        Middleware(BodyLimit, limit_of=lambda path: limits.get(path, _JSON_BYTES)),
        Middleware(Concurrency, limit=settings.thread_pool_size),
    ]
    if settings.rate_limit_per_minute:
        layers.append(Middleware(RateLimit, per_minute=settings.rate_limit_per_minute))
    layers.append(Middleware(ApiKey, check=edge.key))
    if settings.enable_response_gzip:
        layers.append(Middleware(GZipMiddleware, minimum_size=_GZIP_BYTES, compresslevel=5))
    layers.append(Middleware(RequestEdge))
    return layers
