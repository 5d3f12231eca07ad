"""Models, the bulk account, replays: what the status page and the command line ask."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import JSONResponse, Response

from app.api.deps import Composition
from app.api.errors import declared
from app.api.schemas.jobs import Job
from app.api.schemas.models import InstalledModel, ModelList, PullRequest
from app.jobs.kinds import PULL, REPLAY

router = APIRouter(prefix="/api/v1", tags=["models"])


@router.get("/models", operation_id="list_models", response_model=ModelList, responses=declared())
def list_models(services: Composition) -> ModelList:
    """What Ollama has installed and loaded, and what is in use; empty lists when there is no Ollama."""
    report = services.model_report()
    return ModelList(
        installed=[InstalledModel(name=name, size_bytes=size) for name, size in report.installed],
        loaded=list(report.loaded),
        in_use=dict(report.in_use),
        fit=report.fit,
    )


@router.post(
    "/models/pull",
    operation_id="pull_model",
    status_code=202,
    response_model=Job,
    responses=declared("disk_full"),
)
def pull_model(services: Composition, wanted: PullRequest) -> Response:
    """Fetch a model into Ollama, as a job; one that was cut off goes on where it was."""
    job = services.jobs.submit(PULL, {"model": wanted.model}, unit="bytes")
    return JSONResponse(Job.of(job).model_dump(), status_code=202)


@router.post(
    "/replay/{answer_id}",
    operation_id="replay_answer",
    status_code=202,
    response_model=Job,
    responses=declared("not_found", "disk_full"),
)
def replay_answer(services: Composition, answer_id: Annotated[str, Path(min_length=1, max_length=64)]) -> Response:
    """Search again for a stored answer's question, as a job whose result says what would change now, and why."""
    services.answers.get(answer_id)  # an unknown answer is a 404, not a failed job
    return JSONResponse(Job.of(services.jobs.submit(REPLAY, {"answer_id": answer_id})).model_dump(), status_code=202)
