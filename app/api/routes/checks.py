"""Checks of texts that someone brings."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.api.deps import AtEdge, Composition, Edge
from app.api.errors import declared
from app.api.receiving import received
from app.api.schemas.checks import MOST_CHARACTERS, CheckRequest, CheckResponse, FileText
from app.api.services import ServicePort
from app.api.uploads import UploadReceiver
from app.client.check_report import ReportForm, written
from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, TooLarge
from app.ingest.names import display_name

router = APIRouter(prefix="/api/v1", tags=["questions"])

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}
_MEDIA: dict[ReportForm, tuple[str, str]] = {
    "markdown": ("text/markdown", "md"),
    "html": ("text/html", "html"),
}


@router.post(
    "/check",
    operation_id="check",
    response_model=CheckResponse,
    responses=declared(
        "index_damaged",
        "model_not_installed",
        "provider_unreachable",
        "provider_timeout",
        "provider_bad_response",
    ),
)
async def check(
    request: Request, asked: CheckRequest, services: Composition, edge: AtEdge
) -> Response:
    """Check every sentence of a text against documents, or against another text.

    Nothing is stored. Few checks run at once: over that, and after a wait, the reply is `busy`.
    """

    def work(cancel: CancelToken) -> Response:
        body = checked(services, edge, asked, cancel).model_dump_json()
        return Response(body, media_type="application/json")

    return await edge.checks.run(work, request.receive)


def checked(
    services: ServicePort, edge: Edge, asked: CheckRequest, cancel: CancelToken
) -> CheckResponse:
    """Return the checked text; `cancel` ends it between its steps, and the calls of the judge."""
    checker = services.checker
    if asked.against is not None:
        report = checker.against(asked.text, asked.against)
        cancel.raise_if_cancelled()
        if asked.library is not None:
            report = checker.with_better(report, asked.library)
    else:
        report = checker.in_libraries(asked.text, edge.asked(services, asked.library))
    cancel.raise_if_cancelled()
    if asked.judge is not None:
        report = services.second_opinion.on(report, asked.judge, cancel)
    return CheckResponse.of(report)


@router.post(
    "/check/text",
    operation_id="readText",
    response_model=FileText,
    openapi_extra=_FORM,
    responses=declared(
        "unsupported_type", "encrypted", "no_text_layer", "unreadable", "too_large", "disk_full"
    ),
)
async def read_text(  # async: the body is read as it arrives
    request: Request, services: Composition, edge: AtEdge
) -> FileText:
    """Return the text of a file to check (DOCX, PDF, Markdown, text); store nothing."""
    async with received(request, edge.settings) as (receiver, rest):
        return await edge.checks.run(partial(_read, receiver, rest, services), request.receive)


@router.post(
    "/check/report",
    operation_id="checkReport",
    response_class=Response,
    responses={
        200: {
            "description": "the report as a file",
            "content": {media: {"schema": {"type": "string"}} for media, _ in _MEDIA.values()},
        },
        **declared(),
    },
)
def check_report(
    report: CheckResponse,
    form: Annotated[ReportForm, Query(alias="format")] = "markdown",
) -> Response:
    """Return a checked text as a report for reading, to keep or to send on."""
    media, ending = _MEDIA[form]
    return Response(
        written(report.model_dump(mode="json"), form),
        media_type=media,
        headers={"Content-Disposition": f'attachment; filename="check.{ending}"'},
    )


def _read(
    receiver: UploadReceiver, rest: bytes, services: ServicePort, cancel: CancelToken
) -> FileText:
    receiver.feed(rest)
    files = receiver.finish().files
    if len(files) > 1:
        raise InvalidInput(f"{len(files)} files were sent; send one at a time")
    name = display_name(files[0].raw_name)
    text = services.parser.parse(files[0].path, name, cancel).text
    if len(text) > MOST_CHARACTERS:
        raise TooLarge(
            f"{name!r} has {len(text):,} characters, at most {MOST_CHARACTERS:,} are checked"
            " at a time; check it in parts"
        )
    return FileText(filename=name, text=text)
