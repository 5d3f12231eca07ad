"""Turns: where a thread that computes in Python lets others go on."""

from __future__ import annotations

import time


def let_others_run() -> None:
    """Yield the interpreter to waiting threads, then go on.

    A thread that computes keeps the interpreter for the switch interval (1 ms, see `app/api/serving.py`) against each thread that
    wakes, and the tokens of 64 answers wake two threads each: in 15 ms of work they queue up (docs/decisions/0115). Call it about
    every half millisecond of work that takes long, never while holding a lock. Without anybody waiting it takes a microsecond.
    """
    time.sleep(0)
