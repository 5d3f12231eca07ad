"""Map errors to problem+json: the only table of error class to HTTP status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NotRequired, TypedDict

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from app.core import errors


class Problem(BaseModel):
    """RFC 9457 problem details, with a stable code."""

    type: str = Field(
        description="a URI that names the kind of problem", examples=["urn:documind:not_found"]
    )
    title: str = Field(description="the status's own phrase")
    status: int
    detail: str = Field(description="the wrong value, the expected one, and what to do")
    code: str = Field(description="stable, for programs", examples=["not_found"])
    retryable: bool = Field(description="whether the same request may succeed later")
    request_id: str = Field(description="as in the X-Request-ID header and the server's log")


PROBLEM_TYPE = "application/problem+json"
PROVIDER = tuple(
    "model_not_installed provider_unreachable provider_timeout provider_bad_response".split()
)
"""Codes of a model host that fails."""
ANSWERING = (*PROVIDER, "not_found", "index_damaged", "disk_full")
"""Codes of what answers a question."""

STATUS: Mapping[type[errors.DocuMindError], int] = {
    errors.DocuMindError: 500,
    errors.InputError: 422,
    errors.UnsupportedType: 415,
    errors.TooLarge: 413,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Unauthorized: 401,
    errors.AccessError: 403,
    errors.ModelNotInstalled: 503,
    errors.ProviderTimeout: 504,
    errors.ProviderError: 502,
    errors.RateLimited: 429,
    errors.Overload: 503,
    errors.DiskFull: 507,
    errors.Locked: 409,
    errors.StorageError: 503,
    errors.Superseded: 409,
    errors.Cancelled: 503,  # a shutdown cut the request short; a client that left never sees it
}
"""Looked up along the class's MRO, so that a new class answers like its parent."""


class ProblemDict(TypedDict):
    """The body of every error, as JSON values."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    request_id: str
    documents: NotRequired[list[Mapping[str, object]]]
    """Outcomes per file, when an ingest failed for all of them."""


def status_of(error: type[errors.DocuMindError]) -> int:
    return next(STATUS[cls] for cls in error.__mro__ if cls in STATUS)


def status_of_code(code: str) -> int:
    """Return the HTTP status of a stable code, 500 when it is not one of ours."""
    return status_of(errors.class_of(code))


def problem(
    *,
    code: str,
    detail: str,
    request_id: str,
    status: int | None = None,
    retryable: bool | None = None,
) -> ProblemDict:
    """Return a problem body; without a status, or whether to retry, those of the code."""
    status = status_of_code(code) if status is None else status
    retryable = errors.class_of(code).retryable if retryable is None else retryable
    return ProblemDict(
        type=f"urn:documind:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        retryable=retryable,
        request_id=request_id,
    )


def problem_of(error: errors.DocuMindError, request_id: str) -> ProblemDict:
    return problem(
        status=status_of(type(error)),
        code=error.code,
        detail=error.message,
        retryable=error.retryable,
        request_id=request_id,
    )


def internal_problem(request_id: str) -> ProblemDict:
    """Return the body for an error that is not ours: nothing of it leaves the log."""
    detail = (
        "something failed that should not have; the server's log has the details under"
        f" request id {request_id}"
    )
    return problem(status=500, code="internal", detail=detail, request_id=request_id)


def problem_response(body: ProblemDict, retry_after_s: float | None = None) -> Response:
    """Return the response of a problem body; overload, and what is away, say when to come back."""
    headers = {}
    if retry_after_s is None:
        retry_after_s = errors.class_of(body["code"]).retry_after_s
    if retry_after_s is not None:
        headers["Retry-After"] = str(max(1, round(retry_after_s)))
    if body["status"] == 401:
        headers["WWW-Authenticate"] = "Bearer"
    # ASCII only: a detail may quote lone surrogates from the request, which UTF-8 cannot carry.
    return Response(
        json.dumps(body), status_code=body["status"], headers=headers, media_type=PROBLEM_TYPE
    )


def response_of(error: errors.DocuMindError, request_id: str) -> Response:
    return problem_response(problem_of(error, request_id), error.retry_after_s)


_OF_MIDDLEWARE = "invalid_input unauthorized forbidden host_refused rate_limited busy".split()


def declared(*codes_: str) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI `responses` for stable codes and for the middleware's own."""
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys((*codes_, *_OF_MIDDLEWARE)):
        by_status.setdefault(status_of_code(code), []).append(code)
    by_status.setdefault(403, []).append("origin_refused")
    by_status.setdefault(431, []).append("too_large")  # request line and headers
    return {
        status: {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(names)}",
            "model": Problem,
        }
        for status, names in sorted(by_status.items())
    }


def request_id_of(request: Request) -> str:
    return str(request.scope.get("request_id", ""))
