"""Evaluations: start one as a job, list the reports, read one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from starlette.responses import JSONResponse, Response

from app.api.deps import AtEdge, Composition
from app.api.errors import declared
from app.api.schemas.evaluations import (
    EvaluationBody,
    EvaluationList,
    EvaluationReport,
    EvaluationSummary,
)
from app.api.schemas.jobs import JobReply
from app.core.types import Library

router = APIRouter(prefix="/api/v1/evaluations", tags=["evaluations"])

ReportId = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
_MEDIA = {
    "json": "application/json",
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
}


@router.get(
    "", operation_id="list_evaluations", response_model=EvaluationList, responses=declared()
)
def list_evaluations(services: Composition) -> EvaluationList:
    """Finished reports, newest first; runs under way are jobs of kind `evaluation`."""
    return EvaluationList(
        evaluations=[
            EvaluationSummary(**asdict(entry)) for entry in services.evaluations.reports.list()
        ]
    )


@router.post(
    "",
    operation_id="start_evaluation",
    status_code=202,
    response_model=JobReply,
    responses=declared("disk_full"),
)
def start_evaluation(services: Composition, edge: AtEdge, asked: EvaluationBody) -> Response:
    """Compare settings on judged questions, as a job whose id is that of the report."""
    scope = asked.library or edge.asked(services, None)
    library = services.settings.library if scope == "all" else Library(scope)
    job = services.evaluations.start(asked.request(library))
    return JSONResponse(JobReply.of(job).model_dump(), status_code=202)


@router.get(
    "/{report_id}",
    operation_id="get_evaluation",
    response_model=EvaluationReport,
    responses=declared("not_found"),
)
def get_evaluation(services: Composition, report_id: ReportId) -> EvaluationReport:
    """A finished report with every question's outcome."""
    return EvaluationReport.model_validate(services.evaluations.reports.read(report_id))


@router.get(
    "/{report_id}/report.{kind}",
    operation_id="download_evaluation",
    response_class=Response,
    responses={
        200: {
            "description": "the file",
            "content": {media: {"schema": {"type": "string"}} for media in _MEDIA.values()},
        },
        **declared("not_found"),
    },
)
def download_evaluation(
    services: Composition, report_id: ReportId, kind: Literal["json", "md", "csv", "html"]
) -> Response:
    """Send a finished report as a file: JSON, Markdown, table or standalone page."""
    text = services.evaluations.reports.text(report_id, kind)
    return Response(
        text,
        media_type=_MEDIA[kind],
        headers={"Content-Disposition": f'attachment; filename="evaluation-{report_id}.{kind}"'},
    )
