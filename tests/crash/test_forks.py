"""Forked children say how they ended, also when they do not end by themselves."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial

from tests.crash.forks import Forks, call


def wait_for_ever() -> None:
    threading.Event().wait()


def test_a_child_that_hangs_says_where(forks: Forks) -> None:
    status, said = forks.run(wait_for_ever, deadline_s=0.5)
    assert status == 1
    assert said.startswith("did not end within")
    assert "in wait_for_ever" in said


def test_what_a_child_returns_raises_and_dies_of(forks: Forks) -> None:
    assert forks.run(partial(divmod, 7, 2)) == (0, "(3, 1)")
    assert "ZeroDivisionError" in forks.run(partial(divmod, 7, 0))[1]
    assert forks.run(partial(signal.raise_signal, signal.SIGKILL)) == (-signal.SIGKILL, "")
    assert forks.run(partial(os._exit, 137)) == (137, "")


def test_a_child_can_have_one(forks: Forks) -> None:
    assert forks.run(partial(call, forks.address, partial(divmod, 7, 2))) == (0, "(0, '(3, 1)')")
