"""Turn exceptions of the framework and the use cases into problem replies."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from app.api.contract import allowed_methods
from app.api.errors import problem, problem_response, request_id_of, response_of, status_of
from app.api.middleware.scope import route_path
from app.core import errors

logger = logging.getLogger(__name__)

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

    def ours(request: Request, error: Exception) -> Response:
        if not isinstance(error, errors.DocuMindError):
            raise error
        if status_of(type(error)) >= 500:
            logger.warning(
                "%s %s: %s: %s", request.method, request.scope["path"], error.code, error.message
            )
        return response_of(error, request_id_of(request))

    def invalid(request: Request, error: Exception) -> Response:
        if not isinstance(error, RequestValidationError):
            raise error
        detail = "; ".join(_line(item) for item in error.errors()[:20])
        return response_of(errors.InvalidInput(detail), request_id_of(request))

    def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        if (
            error.status_code == 400
        ):  # the framework's word for a body that cannot be read; ours is 422
            return response_of(errors.InvalidInput(str(error.detail)), request_id_of(request))
        code = _BY_HTTP_STATUS.get(
            error.status_code, "invalid_input" if error.status_code < 500 else "internal"
        )
        detail = f"{request.method} {request.scope['path']!r}: {error.detail}"
        body = problem(
            status=error.status_code,
            code=code,
            detail=detail,
            retryable=False,
            request_id=request_id_of(request),
        )
        response = problem_response(body)
        response.headers.update(error.headers or {})
        if error.status_code == 405 and (
            methods := allowed_methods(app, route_path(request.scope))
        ):
            response.headers["Allow"] = ", ".join(methods)
        return response

    app.add_exception_handler(errors.DocuMindError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)


def _line(item: Mapping[str, object]) -> str:
    """Return one validation finding as `field: what is wrong (got value)`."""
    location = item.get("loc")
    parts: Iterable[object] = location if isinstance(location, tuple) else ()
    where = (
        ".".join(str(part) for part in parts if part not in {"body", "query", "path"}) or "request"
    )
    got = item.get("input")
    shown = f" (got {got!r:.80})" if isinstance(got, str | int | float | bool) else ""
    return f"{where}: {str(item.get('msg')).removeprefix('Value error, ')}{shown}"
