"""Answers and events from blocking iterators, and waits that hold no thread.

A thread runs the iterator and fills a bounded queue; the event loop takes all queued items at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import asdict
from functools import partial
from typing import Generic, Protocol, TypeVar

from anyio import to_thread
from fastapi import Response
from starlette.types import Receive, Scope, Send

from app.answer.records import Source
from app.api.errors import ProblemDict, internal_problem, problem_of
from app.api.metrics import Measured
from app.api.schemas.questions import QueryResponse
from app.core.cancel import CancelToken
from app.core.errors import Busy, Cancelled, DocuMindError
from app.core.serialization import adapter, json_values
from app.core.types import (
    Answer,
    AnswerEvent,
    FinalEvent,
    Job,
    MetaEvent,
    Question,
    QuoteEvent,
    ReadingEvent,
    SourcesEvent,
    TokenEvent,
)
from app.jobs.runner import JobRunner, is_finished

_LONG_S = 3600.0
"""Of silence, for readers that ask for no heartbeat."""
QUEUE_LIMIT = 256
"""Items a slow reader may be behind before the producer has to wait."""

T = TypeVar("T")
Produce = Callable[[CancelToken], Iterator[T]]


class StreamSlots:
    """Counts answers and event streams under way against a limit; thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self.taken = 0

    def take(self) -> None:
        """Take a slot; never wait for one.

        Raises:
            Busy: All are taken.
        """
        with self._lock:
            if self.taken >= self._limit:
                raise Busy(
                    f"{self._limit} answers are being written already; try again in a moment",
                    retry_after_s=2,
                )
            self.taken += 1

    def release(self) -> None:
        with self._lock:
            self.taken -= 1


class Pump(Generic[T]):
    """Runs a blocking iterator in its own thread for one reader on the event loop."""

    def __init__(self, produce: Produce[T], slots: StreamSlots) -> None:
        """Take a slot for the work; the thread gives it back when it ends.

        Raises:
            Busy: All slots are taken.
        """
        slots.take()
        self.cancel = CancelToken()
        self.error: BaseException | None = None
        """What ended the iterator, once `next_batch` returned None; None for a regular end or a
        cancel."""
        self._produce = produce
        self._slots = slots
        self._items: deque[T] = deque()
        self._space = threading.Condition()
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrived = asyncio.Event()

    async def start(self) -> None:
        """Start the thread; its reader's event loop is the one that runs now.

        Raises:
            Busy: The system lets this process have no more threads.
        """
        self._loop = asyncio.get_running_loop()
        self.cancel.on_cancel(self._wake_producer)
        around = contextvars.copy_context()  # the request's span surrounds what the thread does
        thread = threading.Thread(target=around.run, args=(self._run,), name="stream", daemon=True)
        # Starting waits until the thread runs, for as long as others compute: not on the event
        # loop.
        try:
            await asyncio.shield(self._loop.run_in_executor(None, thread.start))
        except RuntimeError as error:
            self._slots.release()
            raise Busy(
                "no more threads can be started now; try again in a moment", retry_after_s=2
            ) from error

    async def next_batch(self, timeout_s: float) -> list[T] | None:
        """Return the items that came since the last call.

        Returns:
            An empty list after `timeout_s` seconds of silence, None at the end.
        """
        while True:
            self._arrived.clear()
            with self._space:
                batch, ended = list(self._items), self._ended
                self._items.clear()
                self._space.notify()
            if batch:
                return batch
            if ended:
                return None
            try:
                async with asyncio.timeout(timeout_s):
                    await self._arrived.wait()
            except TimeoutError:
                return []

    def _wake_producer(self) -> None:
        with self._space:
            self._space.notify()

    def _wake_reader(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: no reader is left
                self._loop.call_soon_threadsafe(self._arrived.set)

    def _run(self) -> None:
        """Drain the iterator. An edge: any exception is kept for the reader."""
        try:
            self._drain(self._produce(self.cancel))
        except Cancelled as error:
            # A shutdown cancels too; then the reader is still there and is told.
            self.error = None if self.cancel.cancelled else error
        # edge of the stream: kept in `error`, told to the reader
        except Exception as error:  # noqa: BLE001
            self.error = error
        finally:
            self._slots.release()
            with self._space:
                self._ended = True
            self._wake_reader()

    def _drain(self, items: Iterator[T]) -> None:
        """Queue every item; close a generator that is left early. Closing it shuts its socket."""
        try:
            for item in items:
                if not self._put(item):
                    return
        finally:
            close_early(items)

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
    """Start a pump and return its last item, None without one; cancelled with its caller.

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


def close_early(items: Iterator[T]) -> None:
    """Let an iterator that is left early shut its socket."""
    if isinstance(items, Generator):
        items.close()


logger = logging.getLogger(__name__)

HEARTBEAT_S = 10.0
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Made = TypeVar("Made")


async def cancel_on_disconnect(receive: Receive, cancel: CancelToken) -> None:
    """Cancel the token when the client disconnects; runs until cancelled itself."""
    while (await receive())["type"] != "http.disconnect":
        pass
    cancel.cancel()


class Feed(Protocol):
    """What an event stream sends: bytes of events, in batches."""

    cancel: CancelToken
    error: BaseException | None

    async def start(self) -> None: ...

    async def next_batch(self, timeout_s: float) -> list[bytes] | None: ...


class EventStream(Response):
    """A reply of server-sent events fed by a pump."""

    def __init__(
        self,
        pump: Feed,
        request_id: str,
        heartbeat_s: float = HEARTBEAT_S,
        end: Callable[[BaseException | None], bytes] | None = None,
    ) -> None:
        """Bind a pump that is not yet started.

        It yields the bytes of events, made in its thread (see `each`): the event loop only passes
        them on. A comment is sent after `heartbeat_s` of silence. `end` returns the last bytes,
        given what ended the iterator; None sends an `error` event, or nothing.
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        pump = self._pump
        watcher = asyncio.create_task(cancel_on_disconnect(receive, pump.cancel))
        try:
            await pump.start()
            head = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **head})
            part = {"type": "http.response.body", "more_body": True}
            await send({**part, "body": b": connected\n\n"})
            while (batch := await pump.next_batch(self._heartbeat_s)) is not None:
                if body := b"".join(batch) if batch else b": heartbeat\n\n":
                    await send({**part, "body": body})
            await send({**part, "body": self._end(pump.error), "more_body": False})
        finally:
            pump.cancel.cancel()
            watcher.cancel()

    def _problem(self, error: BaseException | None) -> bytes:
        if error is None:
            return b""
        return event("error", stream_problem(error, self._request_id))  # the same body as a reply


def each(items: Iterator[T], make: Callable[[T], Made]) -> Generator[Made, None, None]:
    """Yield what is made of each item; leaving early closes the items."""
    try:
        for item in items:
            yield make(item)
    finally:
        close_early(items)


def event(name: str, data: object) -> bytes:
    """Return one event with a JSON body on one line, in UTF-8; it may have no name."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {_ENCODER.encode(data)}\n\n".encode("utf-8", "replace")


def stream_problem(error: BaseException, request_id: str) -> ProblemDict:
    """Return the problem of a stream that failed; what is not ours goes to the log."""
    if isinstance(error, DocuMindError):
        return problem_of(error, request_id)
    logger.error("a stream failed unexpectedly", exc_info=error, extra={"request_id": request_id})
    return internal_problem(request_id)


async def reply(
    rag: Measured, question: Question, slots: StreamSlots, request_id: str, *, stream: bool
) -> Response:
    """Return the response to a question.

    A search without an answer is quick and runs in the loop's own pool (0.24 ms there and back;
    FastAPI's takes 0.33). Everything else may wait for a model: it runs in a thread of its own, so
    that answers use up no pool, and stops when the client leaves.

    Raises:
        Busy: As many answers as are allowed are being written.
    """
    if question.retrieve_only and not stream:
        found = await asyncio.to_thread(lambda: body(rag.answer(question), request_id))
        return Response(found, media_type="application/json")

    def make(cancel: CancelToken) -> Iterator[bytes]:
        events = rag.stream(question, cancel)
        if stream:
            return each(events, lambda item: render(item, request_id))
        return finals(events, lambda answer: body(answer, request_id))

    pump = Pump(make, slots)
    return EventStream(pump, request_id) if stream else AnswerReply(pump)


def finals(events: Iterator[AnswerEvent], make: Callable[[Answer], Made]) -> Iterator[Made]:
    """Yield only the final answer's reply: one piece need not wake the loop for every token."""
    with closing(
        each(events, lambda item: make(item.answer) if isinstance(item, FinalEvent) else None)
    ) as found:
        yield from (made for made in found if made is not None)


class AnswerReply(Response):
    """A JSON answer that is given up when the client leaves before it is ready."""

    def __init__(self, pump: Pump[bytes]) -> None:
        super().__init__()
        self._pump = pump

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watcher = asyncio.create_task(cancel_on_disconnect(receive, self._pump.cancel))
        try:
            found = await last_item(self._pump)
        finally:
            watcher.cancel()
        if found is not None:
            await Response(found, media_type="application/json")(scope, receive, send)


def body(answer: Answer, request_id: str) -> bytes:
    found: bytes = adapter(QueryResponse).dump_json(QueryResponse.of(answer, request_id=request_id))
    return found


def render(item: AnswerEvent, request_id: str) -> bytes:
    match item:
        case MetaEvent():
            names = ("answer_id", "conversation_id", "generator", "embedder")
            said = {name: getattr(item, name) for name in names}
            return event("meta", {**said, "request_id": request_id})
        case SourcesEvent():
            sources = [json_values(Source.of(evidence)) for evidence in item.evidence]
            return event("sources", {"sources": sources})
        case QuoteEvent():
            return event("quote", asdict(item.quote))
        case ReadingEvent():
            return event("reading", asdict(item))
        case TokenEvent():
            return event("token", {"text": item.text})
        case FinalEvent():
            answer = QueryResponse.of(item.answer, request_id=request_id)
            return event("final", json_values(answer))


class Places:
    """Threads for requests that may work for minutes: few, so that the others are served.

    A place is free again when its work has ended, not when its client has left.
    """

    def __init__(self, places: int, *, most_waiting: int, wait_s: float) -> None:
        """Let `places` work at once, and up to `most_waiting` wait `wait_s` seconds for that."""
        self._places = places
        self._free = asyncio.Semaphore(places)
        self._most_waiting = most_waiting
        self._waiting = 0
        self._wait_s = wait_s

    async def run(self, work: Callable[[CancelToken], T], receive: Receive | None = None) -> T:
        """Return what `work` returns in a thread of its own.

        Its token is cancelled when this call is, and when `receive` says that the client left.

        Raises:
            Busy: No place became free in time, or too many wait for one.
            Cancelled: The client left before the work began.
        """
        cancel = CancelToken()
        leaving = receive and asyncio.ensure_future(cancel_on_disconnect(receive, cancel))
        try:
            await self._take()
            if cancel.cancelled:
                self._free.release()
                cancel.raise_if_cancelled()
            working = asyncio.ensure_future(to_thread.run_sync(work, cancel))
            working.add_done_callback(self._give_back)
            return await asyncio.shield(working)
        finally:
            cancel.cancel()
            if leaving:
                leaving.cancel()

    async def _take(self) -> None:
        busy = Busy(
            f"{self._places} texts are being checked or read already; try again in a moment",
            retry_after_s=max(1.0, self._wait_s),
        )
        if self._waiting >= self._most_waiting:
            raise busy
        self._waiting += 1
        try:
            await asyncio.wait_for(self._free.acquire(), self._wait_s)
        except TimeoutError:
            raise busy from None
        finally:
            self._waiting -= 1

    def _give_back(self, ended: asyncio.Future[T]) -> None:
        self._free.release()
        if not ended.cancelled():
            ended.exception()  # seen, though the client may have left


class PlacedWork:
    """The events of work in one of the places: what it tells on the way, and what it returns."""

    def __init__(
        self, places: Places, work: Callable[[CancelToken, Callable[[bytes], None]], bytes]
    ) -> None:
        """Keep work that is given a token and a function that takes its events."""
        self.cancel = CancelToken()
        self.error: BaseException | None = None
        self._places = places
        self._work = work
        self._told: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def start(self) -> None:
        """Begin the work, once a place is free."""
        loop = asyncio.get_running_loop()

        def tell(said: bytes) -> None:
            with suppress(RuntimeError):  # the loop is closed: no reader is left
                loop.call_soon_threadsafe(self._told.put_nowait, said)

        task = loop.create_task(self._run(tell))
        self.cancel.on_cancel(lambda: loop.call_soon_threadsafe(task.cancel))

    async def next_batch(self, timeout_s: float) -> list[bytes] | None:
        """Return the next event, nothing after `timeout_s` seconds of silence, None at the end."""
        try:
            said = await asyncio.wait_for(self._told.get(), timeout_s)
        except TimeoutError:
            return []
        return None if said is None else [said]

    async def _run(self, tell: Callable[[bytes], None]) -> None:
        """Do the work. An edge: any exception is kept for the reader."""
        try:
            last = await self._places.run(lambda _: self._work(self.cancel, tell))
            self._told.put_nowait(last)
        except Exception as error:  # noqa: BLE001
            self.error = error
        finally:
            self._told.put_nowait(None)


async def settled(
    jobs: JobRunner, job_id: str, until: Callable[[Job], bool], stopping: CancelToken
) -> Job | None:
    """Return the job once `until` holds or it has ended; None if the server stops.

    After a stop, the next start continues the job. Many uploads may wait at once, each for minutes;
    a blocked thread for each would use up the pool that all requests share.

    Raises:
        NotFound: No such job.
    """
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def look() -> Job | None:
        job = jobs.get(job_id)
        return job if until(job) or is_finished(job) else None

    def wake() -> None:
        # In the job's thread: a job changes hundreds of times; wake the loop only for waiters.
        if look() is not None:
            loop.call_soon_threadsafe(woken.set)

    with (
        jobs.subscribe(job_id, wake),
        stopping.calling(partial(loop.call_soon_threadsafe, woken.set)),
    ):
        while True:
            woken.clear()
            job = await to_thread.run_sync(look)
            if job is not None or stopping.cancelled:
                return job
            await woken.wait()
