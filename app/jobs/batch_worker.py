"""A thread that processes queued keys in batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self


class BatchWorker:
    """A background thread that processes queued keys in batches, in order.

    Leaving the context waits for the thread. An error that leaves the block lets the running call
    end and starts no other.
    """

    def __init__(self, work: Callable[[Sequence[str]], None]) -> None:
        """Store the function to call with waiting keys; the first key starts the thread."""
        self._work = work
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._ended = False
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def add(self, keys: Sequence[str]) -> None:
        """Queue keys; returns at once."""
        if not keys:
            return
        with self._changed:
            self._waiting += keys
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="batch-worker", daemon=True)
                self._thread.start()
            self._changed.notify()

    def finish(self) -> None:
        """Wait until everything queued is done.

        Raises:
            BaseException: What the work raised; the keys after that were not tried.
        """
        self._join()
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        """Begin a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for the thread."""
        with self._changed:
            if error is not None:
                self._waiting.clear()
        self._join()

    def _join(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                keys, self._waiting = self._waiting, []
            if not keys:
                return
            try:
                self._work(keys)
            except BaseException as error:  # noqa: BLE001  # raised again by finish, in the thread that asked
                self._failure = error
                return
