"""Send server-sent events from a pump.

Queued events leave in one write, and a comment is sent in silence. A reader that leaves cancels the
token at once, also before the first item: the reply starts immediately, so there is a connection to
watch.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.errors import ProblemDict, internal_problem, problem_of
from app.api.pump import Pump, close_early
from app.core.cancel import CancelToken
from app.core.errors import DocuMindError

logger = logging.getLogger(__name__)

HEARTBEAT_S = 10.0
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

T = TypeVar("T")
Made = TypeVar("Made")


async def cancel_on_disconnect(receive: Receive, cancel: CancelToken) -> None:
    """Cancel the token when the client disconnects; runs until cancelled itself."""
    while (await receive())["type"] != "http.disconnect":
        pass
    cancel.cancel()


class EventStream(Response):
    """A reply of server-sent events fed by a pump."""

    def __init__(
        self,
        pump: Pump[bytes],
        request_id: str,
        heartbeat_s: float = HEARTBEAT_S,
        end: Callable[[BaseException | None], bytes] | None = None,
    ) -> None:
        """Bind a pump.

        Args:
            pump: Yields the bytes of events, made in its thread (see `each`): the event loop only
                passes them on. Not yet started.
            request_id: For the `error` event.
            heartbeat_s: Seconds of silence after which a comment is sent.
            end: Returns the last bytes, given what ended the iterator; None sends an `error` event,
                or nothing.
        """
        super().__init__(
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        del self.headers["content-length"]
        self._pump = pump
        self._request_id = request_id
        self._heartbeat_s = heartbeat_s
        self._end = end or self._problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI
        """Send events until the iterator or the reader ends."""
        pump = self._pump
        watcher = asyncio.create_task(cancel_on_disconnect(receive, pump.cancel))
        try:
            await pump.start()
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            await send(
                {"type": "http.response.body", "body": b": connected\n\n", "more_body": True}
            )
            while (batch := await pump.next_batch(self._heartbeat_s)) is not None:
                if body := b"".join(batch) if batch else b": heartbeat\n\n":
                    await send({"type": "http.response.body", "body": body, "more_body": True})
            await send(
                {"type": "http.response.body", "body": self._end(pump.error), "more_body": False}
            )
        finally:
            pump.cancel.cancel()
            watcher.cancel()

    def _problem(self, error: BaseException | None) -> bytes:
        return b"" if error is None else error_event(error, self._request_id)


def each(items: Iterator[T], make: Callable[[T], Made]) -> Generator[Made, None, None]:
    """Yield what is made of each item; leaving early closes the items."""
    try:
        for item in items:
            yield make(item)
    finally:
        close_early(items)


def event(name: str, data: object) -> bytes:
    """Return one event with a JSON body on one line, in UTF-8."""
    return f"event: {name}\ndata: {_ENCODER.encode(data)}\n\n".encode("utf-8", "replace")


def error_event(error: BaseException, request_id: str) -> bytes:
    """Return a failed stream's closing event: the same problem body as a reply."""
    return event("error", stream_problem(error, request_id))


def stream_problem(error: BaseException, request_id: str) -> ProblemDict:
    """Return the problem of a stream that failed; what is not ours goes to the log."""
    if isinstance(error, DocuMindError):
        return problem_of(error, request_id)
    logger.error("a stream failed unexpectedly", exc_info=error, extra={"request_id": request_id})
    return internal_problem(request_id)
