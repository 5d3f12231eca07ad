"""Cancel tokens, periodic threads, work in spare threads."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Self, TypeVar

from app.core.errors import Cancelled


class CancelToken:
    """Signal cancellation to callbacks; thread-safe.

    Each callback runs once, in the thread that cancels; at once if already cancelled.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Run `callback` when cancelled, for example to shut a socket down."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Run `callback` if cancelled inside the block; forget it afterwards.

        For tokens that outlive the caller who waits.
        """
        self.on_cancel(callback)
        try:
            yield
        finally:
            with self._lock, suppress(ValueError):  # it was called
                self._callbacks.remove(callback)

    def raise_if_cancelled(self) -> None:
        """Stop here when asked to.

        Raises:
            Cancelled: `cancel` was called.
        """
        if self._event.is_set():
            raise Cancelled("the work was cancelled")

    def wait(self, timeout_s: float) -> bool:
        """Sleep up to `timeout_s` seconds, less when cancelled; return whether it was."""
        return self._event.wait(timeout_s)


class Periodic:
    """A thread that calls `look` until the block is left; that waits for a call under way."""

    def __init__(self, name: str, look: Callable[[], float], first_s: float = 0.0) -> None:
        """`look` returns after how many seconds it is called again, first after `first_s`."""
        self._look = look
        self._first_s = first_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        wait_s = self._first_s
        while not self._stop.wait(wait_s):
            wait_s = self._look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


S = TypeVar("S")
T = TypeVar("T")


def patiently(
    work: Callable[[], T],
    passing: Callable[[Exception], bool],
    stopped: threading.Event,
    patience_s: float,
    look_s: float = 1.0,
) -> T:
    """Return what `work` does; try again, from its first failure on, while that may pass by itself.

    Raises:
        Exception: What it fails with, at the end, at once where it does not pass, or when stopped.
    """
    until_s: float | None = None
    while True:
        try:
            return work()
        except Exception as error:
            until_s = until_s or time.monotonic() + patience_s
            if time.monotonic() >= until_s or not passing(error) or stopped.wait(look_s):
                raise


def in_order(
    pool: Executor, work: Callable[[S], T], items: Iterable[S], most: int
) -> Iterator[Future[T]]:
    """Yield the work on each item, in order; at most `most` items are taken and not yet yielded."""
    under_way: deque[Future[T]] = deque()
    for item in items:
        under_way.append(pool.submit(work, item))
        if len(under_way) == most:
            yield under_way.popleft()
    yield from under_way


THREADS = max(1, (os.cpu_count() or 1) - 1)
"""More would take turns on the cores: such work runs without the interpreter for the most part."""
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="concurrent")
_free = threading.Semaphore(THREADS)


@contextmanager
def run_concurrently(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Run `work` in a spare thread during the block; yield a getter of its result.

    Leaving the block waits for the work. Without a spare thread the work runs when its result is
    asked for, or never. Meant for milliseconds of work that mostly runs without the interpreter.
    """
    if not _free.acquire(blocking=False):
        yield work
        return

    def run() -> T:
        try:
            return work()
        finally:
            _free.release()

    future: Future[T] = _pool.submit(contextvars.copy_context().run, run)
    try:
        yield future.result
    finally:
        wait([future])
