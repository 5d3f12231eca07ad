"""Catch unexpected exceptions: 500 with a request id and a logged traceback.

A shutdown becomes a 503.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import internal_problem, problem_response, response_of
from app.core.errors import Busy
from app.core.system_errors import refusal

logger = logging.getLogger(__name__)


class RequestEdge:
    """Innermost layer: catches every foreign exception.

    So the headers of the outer layers are on its reply too.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an app."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        def watched(message: Message) -> Awaitable[None]:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            return send(message)

        try:
            await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            if started:
                raise
            stops = Busy(
                "the server is stopping; send this again when it has started: what it accepted is"
                " kept",
                retry_after_s=5,
            )
            await response_of(stops, scope.get("request_id", ""))(scope, receive, send)
        except Exception as error:
            request_id = scope.get("request_id", "")
            refused = refusal(error)
            if refused is not None:
                logger.warning(
                    "%s %s: %s",
                    scope["method"],
                    scope["path"],
                    refused.message,
                    extra={"request_id": request_id},
                )
            else:
                logger.exception(
                    "%s %s failed", scope["method"], scope["path"], extra={"request_id": request_id}
                )
            if started:
                raise  # too late for a reply of ours; the server closes the connection
            reply = (
                problem_response(internal_problem(request_id))
                if refused is None
                else response_of(refused, request_id)
            )
            await reply(scope, receive, send)
