"""A property that is computed once, without one lock for all."""

from __future__ import annotations

import threading

from app.core.lazy import lazy


class Slow:
    def __init__(self, begun: threading.Event, go_on: threading.Event) -> None:
        self.begun, self.go_on, self.computed = begun, go_on, 0

    @lazy
    def value(self) -> int:
        """What it is."""
        self.computed += 1
        self.begun.set()
        assert self.go_on.wait(10)
        return 7


def test_it_is_computed_once_and_keeps_its_docstring() -> None:
    event = threading.Event()
    event.set()
    slow = Slow(event, event)
    assert (slow.value, slow.value, slow.computed) == (7, 7, 1)
    assert Slow.value.__doc__ == "What it is."


def test_one_object_does_not_wait_for_another() -> None:
    begun, go_on, free = threading.Event(), threading.Event(), threading.Event()
    free.set()
    held = Slow(begun, go_on)
    thread = threading.Thread(target=lambda: held.value)
    thread.start()
    assert begun.wait(10)
    other = Slow(threading.Event(), free)
    found: list[int] = []
    asker = threading.Thread(target=lambda: found.append(other.value), daemon=True)
    asker.start()
    asker.join(5)
    go_on.set()
    thread.join()
    assert found == [7], "the first is still being computed"
