"""The process ends at write step 1, 2, 3 ... of a workload; after each, a fresh one keeps every promise and can go on.

Trials are forked from one process that has imported everything and opened nothing, so that hundreds take a minute.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import chromadb  # noqa: F401  # so that forked trials have it
import pytest

from app.index.steps import CRASH_STATUS
from tests.crash.workload import check, run

EVERY = int(os.environ.get("CRASH_EVERY", "16"))
"""Try every n-th step; the whole campaign sets 1."""


def in_child(work: Callable[[], object]) -> tuple[int, str]:
    """Run `work` in a forked child; return its exit status and what it returned, as text."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)

    def target() -> None:
        try:
            sending.send(repr(work()))
        except BaseException:
            sending.send(traceback.format_exc())
            os._exit(1)
        os._exit(0)

    child = context.Process(target=target)
    child.start()
    sending.close()
    try:
        said = str(receiving.recv())
    except EOFError:
        said = ""
    child.join()
    return child.exitcode if child.exitcode is not None else -1, said


@pytest.mark.timeout(1800)
def test_every_step_can_be_the_last(tmp_path: Path) -> None:
    status, said = in_child(partial(run, tmp_path / "whole", tmp_path / "whole.log", None))
    assert status == 0, said
    steps = int(said)
    assert steps > 100
    failures: list[str] = []
    tried = 0
    for n in range(1, steps + 1, EVERY):
        data, log = tmp_path / "data", tmp_path / "journal"
        status, said = in_child(partial(run, data, log, n))
        if status != CRASH_STATUS:
            failures.append(f"step {n}: the process ended with {status}: {said[-2000:]}")
        tried += 1
        status, said = in_child(partial(check, data, log))
        if (status, said) != (0, "[]"):
            failures.append(f"step {n}: after recovery: {said[-2000:]}")
        shutil.rmtree(data, ignore_errors=True)
        log.unlink(missing_ok=True)
    sys.stderr.write(f"\n{tried} of {steps} steps tried, {len(failures)} broke a promise\n")
    assert failures == []
