"""Checks of texts that someone brings."""

from __future__ import annotations

from fastapi import APIRouter

from app.api.deps import AtEdge, Composition
from app.api.errors import declared
from app.api.schemas.checks import CheckRequest, CheckResponse

router = APIRouter(prefix="/api/v1", tags=["questions"])


@router.post(
    "/check",
    operation_id="check",
    response_model=CheckResponse,
    responses=declared("index_damaged"),
)
def check(asked: CheckRequest, services: Composition, edge: AtEdge) -> CheckResponse:
    """Check every sentence of a text against documents, or against another text.

    Nothing is stored.
    """
    if asked.against is not None:
        return CheckResponse.of(services.checker.against(asked.text, asked.against))
    return CheckResponse.of(
        services.checker.in_libraries(asked.text, asked.library or edge.settings.default_library)
    )
