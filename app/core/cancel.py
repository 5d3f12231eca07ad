"""A cancel token: one side asks for a stop, the other notices or is woken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from app.core.errors import Cancelled


class CancelToken:
    """Signal cancellation to callbacks; thread-safe.

    Each callback runs once, in the thread that cancels; at once if already cancelled.
    """

    def __init__(self) -> None:
        """Start out not cancelled."""
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """True once `cancel` was called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Ask for a stop; later calls do nothing."""
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
