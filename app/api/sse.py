"""Server-sent events from blocking iterators.

A thread runs the iterator and fills a bounded queue; the event loop sends what is there, several events in one write when the
reader is slow, and a comment when nothing happens. The reader's leaving cancels the token at once, also before the first item:
the reply starts immediately, so there is a connection to watch (facts/security.md 4.3, SSE disconnect).
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.errors import ProblemDict, internal_problem, problem_of
from app.core.cancel import CancelToken
from app.core.errors import Busy, Cancelled, DocuMindError

logger = logging.getLogger(__name__)

HEARTBEAT_S = 10.0
_LONG_S = 3600.0
"""Of silence, where nobody is told of it."""
QUEUE_LIMIT = 256
"""Items a slow reader may be behind before the producer has to wait."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

T = TypeVar("T")
Made = TypeVar("Made")
Produce = Callable[[CancelToken], Iterator[T]]


class StreamSlots:
    """How many answers and event streams may be under way at once; thread-safe."""

    def __init__(self, limit: int) -> None:
        """Allow `limit` at once."""
        self._limit = limit
        self._lock = threading.Lock()
        self._taken = 0

    @property
    def taken(self) -> int:
        """How many are under way."""
        return self._taken

    def take(self) -> None:
        """Take a slot.

        Raises:
            Busy: All are taken; nobody waits for one.
        """
        with self._lock:
            if self._taken >= self._limit:
                raise Busy(f"{self._limit} answers are being written already; try again in a moment", retry_after_s=2)
            self._taken += 1

    def release(self) -> None:
        """Give a slot back."""
        with self._lock:
            self._taken -= 1


class Pump(Generic[T]):
    """Runs a blocking iterator in a thread of its own for one reader on the event loop."""

    def __init__(self, produce: Produce[T], slots: StreamSlots) -> None:
        """Take a slot for the work; it is given back when the thread has ended, whatever happens.

        Raises:
            Busy: All slots are taken.
        """
        slots.take()
        self.cancel = CancelToken()
        self.error: BaseException | None = None
        """What ended the iterator, once `next_batch` returned None; None for a regular end or a cancel."""
        self._produce = produce
        self._slots = slots
        self._items: deque[T] = deque()
        self._space = threading.Condition()
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._silent_until_s = 0.0

    async def start(self) -> None:
        """Start the thread; its reader's event loop is the one that runs now.

        Raises:
            Busy: The system lets this process have no more threads.
        """
        self._loop = asyncio.get_running_loop()
        self.cancel.on_cancel(self._wake_producer)
        around = contextvars.copy_context()  # the request's span surrounds what the thread does
        thread = threading.Thread(target=around.run, args=(self._run,), name="stream", daemon=True)
        # Starting waits until the thread runs, for as long as others compute: not on the event loop.
        try:
            await asyncio.shield(self._loop.run_in_executor(None, thread.start))
        except RuntimeError as error:
            self._slots.release()
            raise Busy("no more threads can be started now; try again in a moment", retry_after_s=2) from error

    async def next_batch(self, timeout_s: float) -> list[T] | None:
        """Return what has come since the last call; an empty list after `timeout_s` seconds of silence, None at the end."""
        loop = asyncio.get_running_loop()
        self._silent_until_s = loop.time() + timeout_s
        try:
            while True:
                with self._space:
                    batch, ended = list(self._items), self._ended
                    self._items.clear()
                    self._space.notify()
                if batch:
                    return batch
                if ended:
                    self._end_timer()
                    return None
                # Every token comes by here: a future, and one timer for all of them, cost a fraction of asyncio.Event and
                # asyncio.timeout.
                self._waiter = loop.create_future()
                self._timer = self._timer or loop.call_at(self._silent_until_s, self._look_at_clock)
                if not await self._waiter:
                    return []
        except BaseException:  # the reader has left
            self._end_timer()
            raise
        finally:
            self._waiter = None

    def _look_at_clock(self) -> None:
        """End a silence that has lasted long enough; nobody waiting, the next wait sets a timer anew."""
        self._timer = None
        if self._loop is None or self._waiter is None:
            return
        if self._loop.time() >= self._silent_until_s:
            self._wake(False)
        else:
            self._timer = self._loop.call_at(self._silent_until_s, self._look_at_clock)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self, something: bool) -> None:
        """Let the reader look again, or know that nothing has come."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(something)

    def _wake_producer(self) -> None:
        with self._space:
            self._space.notify()

    def _wake_reader(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody reads any more
                self._loop.call_soon_threadsafe(self._wake, True)

    def _run(self) -> None:
        """Drain the iterator. An edge: whatever it raises is kept for the reader."""
        try:
            self._drain(self._produce(self.cancel))
        except Cancelled as error:
            # A shutdown cancels too; then the reader is still there and is told.
            self.error = None if self.cancel.cancelled else error
        except Exception as error:  # noqa: BLE001  # edge of the stream: kept in `error`, told to the reader
            self.error = error
        finally:
            self._slots.release()
            with self._space:
                self._ended = True
            self._wake_reader()

    def _drain(self, items: Iterator[T]) -> None:
        """Queue every item; close a generator that is left early, so that it shuts its socket."""
        try:
            for item in items:
                if not self._put(item):
                    return
        finally:
            _close(items)

    def _put(self, item: T) -> bool:
        """Queue an item, waiting for space; return False when the reader has left."""
        with self._space:
            while len(self._items) >= QUEUE_LIMIT and not self.cancel.cancelled:
                self._space.wait()
            if self.cancel.cancelled:
                return False
            first = not self._items
            self._items.append(item)
        if first:
            self._wake_reader()
        return True


async def last_item(pump: Pump[T]) -> T | None:
    """Start a pump and return its last item, None without one; the work is told to stop when the caller is cancelled.

    Raises:
        BaseException: What ended the iterator.
    """
    found: T | None = None
    try:
        await pump.start()
        while (batch := await pump.next_batch(_LONG_S)) is not None:
            found = batch[-1] if batch else found
    finally:
        pump.cancel.cancel()
    if pump.error is not None:
        raise pump.error
    return found


async def cancel_on_disconnect(receive: Receive, cancel: CancelToken) -> None:
    """Cancel the token when the client goes away; runs beside the reply until cancelled itself."""
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
            pump: Yields the bytes of events, made in its thread (see `each`): the event loop only passes them on. Not yet started.
            request_id: For the `error` event.
            heartbeat_s: Seconds of silence after which a comment is sent.
            end: Returns the last bytes, given what ended the iterator; None sends an `error` event, or nothing.
        """
        super().__init__(media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._pump = pump
        self._request_id = request_id
        self._heartbeat_s = heartbeat_s
        self._end = end or self._problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's signature
        """Send events until the iterator or the reader ends."""
        pump = self._pump
        watcher = asyncio.create_task(cancel_on_disconnect(receive, pump.cancel))
        try:
            await pump.start()
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b": connected\n\n", "more_body": True})
            while (batch := await pump.next_batch(self._heartbeat_s)) is not None:
                if body := b"".join(batch) if batch else b": heartbeat\n\n":
                    await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": self._end(pump.error), "more_body": False})
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
        _close(items)


def _close(items: Iterator[T]) -> None:
    """Let an iterator that is left early shut its socket."""
    if isinstance(items, Generator):
        items.close()


def event(name: str, data: object) -> bytes:
    """Return one event with a JSON body on one line, in UTF-8."""
    return f"event: {name}\ndata: {_ENCODER.encode(data)}\n\n".encode("utf-8", "replace")


def error_event(error: BaseException, request_id: str) -> bytes:
    """Return the closing event of a stream that failed: a problem body, the same as a reply would have."""
    return event("error", stream_problem(error, request_id))


def stream_problem(error: BaseException, request_id: str) -> ProblemDict:
    """Return the problem of a stream that failed; what is not ours goes to the log."""
    if isinstance(error, DocuMindError):
        return problem_of(error, request_id)
    logger.error("a stream failed unexpectedly", exc_info=error, extra={"request_id": request_id})
    return internal_problem(request_id)
