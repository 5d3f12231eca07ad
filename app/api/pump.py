"""Read blocking iterators on the event loop.

A thread runs the iterator and fills a bounded queue; the event loop takes all queued items at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

from app.core.cancel import CancelToken
from app.core.errors import Busy, Cancelled

_LONG_S = 3600.0
"""Of silence, for readers that ask for no heartbeat."""
QUEUE_LIMIT = 256
"""Items a slow reader may be behind before the producer has to wait."""

T = TypeVar("T")
Produce = Callable[[CancelToken], Iterator[T]]


class StreamSlots:
    """Counts answers and event streams under way against a limit; thread-safe."""

    def __init__(self, limit: int) -> None:
        """Allow `limit` at once."""
        self._limit = limit
        self._lock = threading.Lock()
        self._taken = 0

    @property
    def taken(self) -> int:
        """Return the number under way."""
        return self._taken

    def take(self) -> None:
        """Take a slot; never wait for one.

        Raises:
            Busy: All are taken.
        """
        with self._lock:
            if self._taken >= self._limit:
                raise Busy(
                    f"{self._limit} answers are being written already; try again in a moment",
                    retry_after_s=2,
                )
            self._taken += 1

    def release(self) -> None:
        """Give a slot back."""
        with self._lock:
            self._taken -= 1


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
        except Exception as error:  # noqa: BLE001  # edge of the stream: kept in `error`, told to the reader
            self.error = error
        finally:
            self._slots.release()
            with self._space:
                self._ended = True
            self._wake_reader()

    def _drain(self, items: Iterator[T]) -> None:
        """Queue every item; close a generator that is left early.

        Closing it shuts its socket.
        """
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
    """Start a pump and return its last item, None without one.

    Cancelling the caller stops the work.

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
