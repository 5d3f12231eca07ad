"""A workload whose process ends at write step 1, 2, 3 ..., and what a fresh process finds afterwards.

Trials are forked from one process that has imported everything and opened nothing, so that hundreds take minutes. The probe of
the vector store is forked too, instead of being started anew: it still is a child that may die.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import chromadb  # noqa: F401  # so that forked trials have it

from app.index import chroma_keeper
from app.index.probe import Expected, Finding, examine
from app.index.steps import CRASH_STATUS
from tests.crash.workload import check, recover, run


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


def forked_probe(
    chroma: Path, catalog: Path, expected: list[Expected], *, compare_all: bool = False, open_store: bool = True
) -> Finding:
    """What `app.index.probe.probe` does, in a forked child."""
    status, said = in_child(partial(examine, chroma, catalog, expected, compare_all=compare_all, open_store=open_store))
    return Finding(()) if (status, said) == (0, "[]") else Finding((said or f"ended with {status}",))


@dataclass(frozen=True, slots=True)
class Trial:
    """One step at which the workload ended."""

    step: int
    in_recovery: int
    """The step at which the recovery was ended, when it had so many."""
    failure: str
    """What was broken; empty when every promise held."""


def steps_of(directory: Path) -> int:
    """Run the whole workload once and return how many steps it reaches.

    Raises:
        RuntimeError: It failed.
    """
    vars(chroma_keeper)["probe"] = forked_probe
    status, said = in_child(partial(run, directory / "whole", directory / "whole.log", None))
    if status != 0:
        raise RuntimeError(said)
    status, broken = in_child(partial(check, directory / "whole", directory / "whole.log"))
    if (status, broken) != (0, "[]"):
        raise RuntimeError(f"without any crash: {broken}")
    return int(said)


def try_steps(directory: Path, steps: Iterable[int]) -> Iterable[Trial]:
    """End the workload at each step, end the recovery of a fresh process too, recover in another one and check."""
    vars(chroma_keeper)["probe"] = forked_probe
    data, log = directory / "data", directory / "journal"
    for step in steps:
        status, said = in_child(partial(run, data, log, step))
        failure = "" if status == CRASH_STATUS else f"the process ended with {status}: {said[-2000:]}"
        # The recovery is cut short too, at one of its own first writes.
        again = random.Random(step).randrange(1, 20)
        status, said = in_child(partial(recover, data, again))
        if status not in (0, CRASH_STATUS):
            failure += f"the recovery ended with {status} at its step {again}: {said[-2000:]}"
        status, said = in_child(partial(check, data, log))
        if (status, said) != (0, "[]"):
            failure += f"after recovery: {said[-2000:]}"
        shutil.rmtree(data, ignore_errors=True)
        log.unlink(missing_ok=True)
        yield Trial(step, again, failure)
