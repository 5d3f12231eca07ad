"""Serve Prometheus metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from app.api.deps import AtEdge
from app.api.metrics import CONTENT_TYPE

router = APIRouter(tags=["health"])


@router.get("/metrics", operation_id="metrics", response_class=PlainTextResponse)
def metrics(request: Request, edge: AtEdge) -> Response:
    """Return metrics of requests, answers, stages, models, jobs and projections.

    Counts of documents only for callers who may see them.
    """
    startup = edge.startup
    readable = not startup.missing and edge.key.accepts(request.scope)
    services = startup.services() if readable else None
    return Response(edge.metrics.exposition(services, edge.streams.taken), media_type=CONTENT_TYPE)
