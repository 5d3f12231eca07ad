"""Work beside one's own: in another thread while one is free, or else in its turn."""

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
"""More would take turns on the cores, and what is done beside is done without the interpreter for the most part."""
_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="beside")
_free = threading.Semaphore(THREADS)


@contextmanager
def beside(work: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """Begin work beside what the block does; what is yielded returns its result. When the block is left, the work has ended.

    Without a free thread nothing begins: the work is done when its result is asked for, and not at all when it is not. For work of
    milliseconds that mostly runs without the interpreter and gives back nothing that needs closing.
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
