"""Limit concurrent calls; waiters have a deadline and can be cancelled."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.cancel import CancelToken
from app.core.errors import Busy


class CallSlots:
    """At most `size` holders; thread-safe.

    Ollama queues requests for a loaded model without limit and without an error, so the limit has
    to be here.
    """

    def __init__(self, size: int, wait_s: float, name: str) -> None:
        """Start with all slots free.

        Args:
            size: Holders at once, at least 1.
            wait_s: Longest wait for a slot, seconds.
            name: What is waited for, for the message.
        """
        self._free = max(1, size)
        self._wait_s = wait_s
        self._name = name
        self._changed = threading.Condition()
        self._calls = itertools.count()
        self._under_way: frozenset[int] = frozenset()

    def under_way(self) -> frozenset[int]:
        """Return the numbers of the calls that hold a slot now; no number comes twice."""
        return self._under_way

    @contextmanager
    def hold(self, cancel: CancelToken) -> Iterator[None]:
        """Hold a slot.

        Raises:
            Busy: None became free in time.
            Cancelled: The token was cancelled while waiting.
        """
        cancel.on_cancel(self._wake)
        deadline = time.monotonic() + self._wait_s
        with self._changed:
            while self._free == 0 and not cancel.cancelled:
                if (
                    not self._changed.wait(max(0.0, deadline - time.monotonic()))
                    and self._free == 0
                ):
                    raise Busy(
                        f"all slots of {self._name} are taken; try again, or raise MAX_MODEL_CALLS",
                        retry_after_s=self._wait_s,
                    )
            cancel.raise_if_cancelled()
            self._free -= 1
            number = next(self._calls)
            self._under_way |= {number}
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._under_way -= {number}
                self._changed.notify()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
