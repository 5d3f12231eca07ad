"""Serve models and the bulk ledger to the status page and the CLI."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app.api.deps import Composition
from app.api.errors import declared
from app.api.schemas.jobs import JobReply
from app.api.schemas.models import (
    ChoiceRequest,
    ModelList,
    ModelOnDisk,
    ModelTest,
    ModelTests,
    PullRequest,
    TestRequest,
)
from app.jobs.kinds import PULL

router = APIRouter(prefix="/api/v1", tags=["models"])


@router.get("/models", operation_id="list_models", response_model=ModelList, responses=declared())
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


@router.put(
    "/models/answering",
    operation_id="choose_model",
    response_model=ModelList,
    responses=declared("model_not_installed", "conflict", "provider_unreachable", "disk_full"),
)
def choose_model(services: Composition, wanted: ChoiceRequest) -> ModelList:
    """Choose which of Ollama's models answers, from the next question on.

    Refused while LLM_MODEL or LLM_PROVIDER names one.
    """
    services.choose_model(wanted.model or "")
    return list_models(services)


@router.post(
    "/models/pull",
    operation_id="pull_model",
    status_code=202,
    response_model=JobReply,
    responses=declared("disk_full"),
)
def pull_model(services: Composition, wanted: PullRequest) -> Response:
    """Fetch a model into Ollama as a job; an interrupted fetch resumes."""
    job = services.jobs.submit(PULL, {"model": wanted.model}, unit="bytes")
    return JSONResponse(JobReply.of(job).model_dump(), status_code=202)


@router.post(
    "/models/test",
    operation_id="test_model",
    status_code=202,
    response_model=JobReply,
    responses=declared("model_not_installed", "disk_full"),
)
def test_model(services: Composition, wanted: TestRequest) -> Response:
    """Test a model on 24 built-in questions with both prompts, as a job.

    The result decides how the model is asked.
    """
    return JSONResponse(
        JobReply.of(services.model_tests.start(wanted.model)).model_dump(), status_code=202
    )


@router.get(
    "/models/tests",
    operation_id="list_model_tests",
    response_model=ModelTests,
    responses=declared(),
)
def list_model_tests(services: Composition) -> ModelTests:
    """List results of model tests, newest first, with a summary line."""
    return ModelTests.of(services.model_tests.results())
