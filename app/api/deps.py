"""Provide the dependencies of routes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Query, Request

from app.answer.library_state import asked_by_default
from app.api.errors import request_id_of
from app.api.metrics import Measured, Metrics
from app.api.middleware.auth import KeyCheck
from app.api.pump import StreamSlots
from app.api.services import ServicePort
from app.api.startup import Startup
from app.api.waiting import Places
from app.core.cancel import CancelToken
from app.core.errors import Busy
from app.core.spans import SILENT, Spans
from app.core.types import Library, LibraryName, Scope
from app.settings import Settings


def _check_places() -> Places:
    return Places(4, most_waiting=16, wait_s=10.0)


@dataclass(frozen=True, slots=True)
class Edge:
    """State of the app before its services exist; in `app.state.edge`."""

    settings: Settings
    startup: Startup
    streams: StreamSlots
    key: KeyCheck
    metrics: Metrics = field(default_factory=Metrics)
    checks: Places = field(default_factory=_check_places)
    """Of what checks a text or reads a file to check, through any door."""
    stopping: CancelToken = field(default_factory=CancelToken)
    """Cancelled when the server was told to stop: what waits for a job says then that it was
    accepted."""
    started_s: float = field(default_factory=time.monotonic)

    def uptime_s(self) -> float:
        """Return the seconds since the app was made."""
        return time.monotonic() - self.started_s

    def spans(self) -> Spans:
        """Return where spans begin; silence while the server starts."""
        try:
            return self.startup.services().spans
        except Busy:
            return SILENT

    def answering(self, services: ServicePort) -> Measured:
        """Return the query use case that counts its answers; every route uses this one."""
        return Measured(services.rag, self.metrics)

    def asked(
        self, services: ServicePort, named: Scope | None, doc_ids: Sequence[str] = ()
    ) -> Scope:
        """Return where a question looks; reads the catalog unless a library is named."""
        configured = self.settings.default_library
        return named or asked_by_default(services.catalog, configured, doc_ids).library


# These are async so that FastAPI calls them in place: a plain def would cost each request a trip
# through the thread pool.


async def _edge(request: Request) -> Edge:
    edge: Edge = request.app.state.edge
    return edge


async def _services(request: Request) -> ServicePort:
    edge: Edge = request.app.state.edge
    return edge.startup.services()


async def _request_id(request: Request) -> str:
    return request_id_of(request)


@dataclass(frozen=True, slots=True)
class Door:
    """Edge, services and request id at once, for routes that answer.

    Each dependency costs FastAPI 0.05 ms.
    """

    edge: Edge
    services: ServicePort
    request_id: str

    def answering(self) -> Measured:
        """Return the query use case with its answers counted."""
        return self.edge.answering(self.services)

    async def asked(self, named: Scope | None, doc_ids: Sequence[str] = ()) -> Scope:
        """Return where a question looks, found out in a thread unless a library is named."""
        if named is not None:
            return named
        return await asyncio.to_thread(self.edge.asked, self.services, None, doc_ids)


async def _door(request: Request) -> Door:
    edge: Edge = request.app.state.edge
    return Door(edge, edge.startup.services(), request_id_of(request))


AtDoor = Annotated[Door, Depends(_door)]
AtEdge = Annotated[Edge, Depends(_edge)]
Composition = Annotated[ServicePort, Depends(_services)]
RequestIdentity = Annotated[str, Depends(_request_id)]


async def _one_library(
    request: Request,
    library: Annotated[LibraryName | None, Query(description="default: public")] = None,
) -> Library:
    edge: Edge = request.app.state.edge
    return Library(library) if library else edge.settings.library


def _scope(
    edge: AtEdge,
    services: Composition,
    library: Annotated[Scope | None, Query(description="default: DEFAULT_LIBRARY")] = None,
) -> Scope:
    return edge.asked(services, library)


OneLibrary = Annotated[Library, Depends(_one_library)]
AnyLibrary = Annotated[Scope, Depends(_scope)]
