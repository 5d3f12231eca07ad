"""Provide the dependencies of routes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_args

from fastapi import Depends, FastAPI, Query, Request, Security, params
from fastapi.openapi.models import APIKey
from fastapi.security import SecurityScopes
from fastapi.security.base import SecurityBase
from starlette.routing import compile_path

from app.answer.service import asked_by_default
from app.api.errors import PROBLEM_TYPE, declared, request_id_of
from app.api.metrics import Measured, Metrics
from app.api.middleware.access import SAFE_METHODS, THIS_MACHINE, KeyCheck, caller_of, changed
from app.api.startup import Startup
from app.api.streaming import Places, StreamSlots
from app.core.access import Caller, KeyScope
from app.core.cancel import CancelToken
from app.core.errors import Busy, Forbidden, InvalidInput
from app.core.trace import SILENT, Spans
from app.core.types import Library, LibraryName, Scope
from app.settings import Settings

if TYPE_CHECKING:
    from app.bootstrap.services import Services
else:  # most of a second to import, so a thread does it (`app.open_services`)
    Services = Any


@dataclass(frozen=True, slots=True)
class AppState:
    """State of the app before its services exist; in `app.state.edge`."""

    settings: Settings
    startup: Startup
    streams: StreamSlots
    key: KeyCheck
    metrics: Metrics = field(default_factory=Metrics)
    checks: Places = field(default_factory=lambda: Places(4, most_waiting=16, wait_s=10.0))
    """Of what checks a text or reads a file to check, through any door."""
    stopping: CancelToken = field(default_factory=CancelToken)
    """Cancelled when the server was told to stop: what waits for a job says then that it was
    accepted."""
    started_s: float = field(default_factory=time.monotonic)

    def uptime_s(self) -> float:
        return time.monotonic() - self.started_s

    def spans(self) -> Spans:
        """Return where spans begin; silence while the server starts."""
        try:
            return self.startup.services().spans
        except Busy:
            return SILENT


# These are async so that FastAPI calls them in place: a plain def would cost each request a trip
# through the thread pool.


async def _edge(request: Request) -> AppState:
    edge: AppState = request.app.state.edge
    return edge


async def _services(request: Request) -> Services:
    edge: AppState = request.app.state.edge
    return edge.startup.services()


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What routes that answer need, at once: each dependency costs FastAPI 0.05 ms."""

    edge: AppState
    services: Services
    request_id: str
    caller: Caller

    def answering(self) -> Measured:
        return Measured(self.services.rag, self.edge.metrics)

    def scope(self, named: Scope | None, doc_ids: Sequence[str] = ()) -> Scope:
        """Return where a question looks; reads the catalog unless a library is named.

        Raises:
            Forbidden: The caller may not look there.
        """
        if named is not None or not self.caller.sees_all:
            return self.caller.within(named or "all")
        default = self.edge.settings.default_library
        return asked_by_default(self.services.catalog, default, doc_ids).library

    async def asked(self, named: Scope | None, doc_ids: Sequence[str] = ()) -> Scope:
        """Return the same, found out in a thread unless a library is named."""
        if named is not None:
            return self.scope(named)
        return await asyncio.to_thread(self.scope, None, doc_ids)


async def _context(request: Request) -> RequestContext:
    edge: AppState = request.app.state.edge
    caller = caller_of(request.scope)
    return RequestContext(edge, edge.startup.services(), request_id_of(request), caller)


async def _caller(request: Request) -> Caller:
    return caller_of(request.scope)


ContextDep = Annotated[RequestContext, Depends(_context)]
AtEdge = Annotated[AppState, Depends(_edge)]
AtCaller = Annotated[Caller, Depends(_caller)]
Composition = Annotated[Services, Depends(_services)]


async def _one_library(
    request: Request,
    library: Annotated[LibraryName | None, Query(description="default: public")] = None,
) -> Library:
    edge: AppState = request.app.state.edge
    return one_library(caller_of(request.scope), library, edge.settings.library)


def one_library(caller: Caller, named: LibraryName | None, default: Library) -> Library:
    """Return the library that a request names, else the default or the one the caller may use.

    Raises:
        Forbidden: The caller may not use it.
    """
    return caller.library(Library(named)) if named else caller.default(default)


async def _seen(
    request: Request,
    library: Annotated[LibraryName | None, Query(description="default: both")] = None,
) -> Library | None:
    found = caller_of(request.scope).within(library or "all")
    return None if found == "all" else Library(found)


OneLibrary = Annotated[Library, Depends(_one_library)]
SeenLibrary = Annotated[Library | None, Depends(_seen)]
"""The library that is named or the only one the caller may see; None: both."""


class _Key(SecurityBase):
    """Lets a request through whose key has the scope that its route declares."""

    def __init__(self, scheme_name: str, description: str, *, every_library: bool) -> None:
        self.model = APIKey(**{"in": "header"}, name="X-API-Key", description=description)
        self.scheme_name = scheme_name
        self._every_library = every_library

    async def __call__(self, request: Request, declared: SecurityScopes) -> None:
        caller = caller_of(request.scope)
        for scope in get_args(KeyScope):
            if scope in declared.scopes:
                caller.require(scope, every_library=self._every_library)
        if request.method not in SAFE_METHODS and {"write", "admin"} & set(declared.scopes):
            changed(request, *filter(None, [request.path_params.get("doc_id")]))


_KEY = _Key("key", "a key that has the scope", every_library=False)
_KEY_OF_ALL = _Key(
    "key_of_every_library", "a key that has the scope, and every library", every_library=True
)


Node = dict[str, Any]
"""A JSON object of the document, whose shape FastAPI decides."""
Responses = dict[int | str, Node]


class Gate(TypedDict):
    """The access and the failures that a route or a router declares."""

    dependencies: Sequence[params.Depends]
    responses: Responses


def needs(
    scope: KeyScope,
    *codes: str,
    also: Responses | None = None,
    describe: Callable[..., Responses] = declared,
    every_library: bool = False,
) -> Gate:
    """Declare the one scope that a route needs, and the codes of its errors.

    With `every_library`, keys that are limited to some are refused; else the route itself shows
    and changes nothing of a library that its caller may not use. `also` are other replies, and
    `describe` turns codes into OpenAPI `responses`.
    """
    key = Security(_KEY_OF_ALL if every_library else _KEY, scopes=[scope])
    return Gate(dependencies=[key], responses={**(also or {}), **describe(*codes)})


needs_all = partial(needs, every_library=True)


async def settings_open(request: Request) -> None:
    """Let a request pass that changes models, hosts or keys.

    Raises:
        Forbidden: ALLOW_SETTINGS is false, and it is not of this machine.
    """
    edge: AppState = request.app.state.edge
    if not edge.settings.allow_settings and caller_of(request.scope).name != THIS_MACHINE:
        raise Forbidden(
            "settings of this server cannot be changed over HTTP (ALLOW_SETTINGS=false); change"
            " its configuration, or run documind models or documind keys on its machine"
        )


def changes_settings(*codes: str) -> Gate:
    """Declare what routes need that change models, hosts or keys."""
    gate = needs_all("admin", *codes)
    return {**gate, "dependencies": [*gate["dependencies"], Depends(settings_open)]}


_PROBLEM = "#/components/schemas/Problem"


def publish(app: FastAPI) -> None:
    """Correct the media type of errors in OpenAPI: FastAPI only knows that of successes."""
    generate: Callable[[], Node] = app.openapi

    def document() -> Node:
        fresh = app.openapi_schema is None
        found = generate()
        operations = [one for path in found["paths"].values() for one in path.values()]
        for response in chain(*(one["responses"].values() for one in operations if fresh)):
            content = response.get("content", {})
            if content.get("application/json", {}).get("schema", {}).get("$ref") == _PROBLEM:
                content[PROBLEM_TYPE] = content.pop("application/json")
        return found

    # FastAPI's documented way to change the document
    app.openapi = document  # type: ignore[method-assign]


_EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "data": {"type": "string", "description": "a JSON object"},
    },
}


def events(description: str) -> Responses:
    """Return OpenAPI `responses` of a route that streams events."""
    return {200: {"description": description, "content": {"text/event-stream": {"schema": _EVENT}}}}


def files(description: str, media: Iterable[str]) -> Responses:
    """Return OpenAPI `responses` of a route that sends text as a file."""
    content = {one: {"schema": {"type": "string"}} for one in media}
    return {200: {"description": description, "content": content}}


def allowed_methods(app: FastAPI, path: str) -> list[str]:
    """Return all methods of a path within the app; the framework names one route's."""
    found: set[str] = set()
    for template, operations in app.openapi()["paths"].items():
        if compile_path(template)[0].match(path):
            found.update(method.upper() for method in operations)
    return sorted(found)


def server_path(value: str) -> Path:
    """Return a path the system can look up; the caller checks that it exists.

    Raises:
        InvalidInput: The system does not take it for a path (a name too long, links in a circle),
            or does not let us look.
    """
    path = Path(value)
    try:
        path.exists()
    except OSError as exc:
        raise InvalidInput(
            f"path {value[:80]!r} cannot be used ({exc.strerror}); give another one"
        ) from exc
    return path
