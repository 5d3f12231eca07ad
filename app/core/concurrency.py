"""Run a function in a spare thread; if none is free, run it inline."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

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
