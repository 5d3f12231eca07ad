"""A workload whose process ends at write step 1, 2, 3 ..., and what a fresh process finds afterwards.

Trials are forked (`tests.crash.forks`), so that hundreds take minutes. The probe of the vector store is forked too, instead of
being started anew: it still is a child that may die.
"""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.index.dense import keeper as chroma_keeper
from app.index.dense.chroma.probe import ProbeFinding, examine
from app.index.dense.chroma.resting_store import Expected
from app.index.files.steps import CRASH_STATUS
from app.index.maintenance import fsck_chroma
from tests.crash.forks import Forks, call
from tests.crash.workload import check, recover, run


def use_forked_probe(address: str) -> None:
    """Let this process, and what is forked from it, ask the server at `address` for the children that look at vector stores."""
    for module in (chroma_keeper, fsck_chroma):
        vars(module)["probe"] = partial(forked_probe, address)


def forked_probe(
    address: str,
    chroma: Path,
    catalog: Path,
    expected: list[Expected],
    *,
    compare_all: bool = False,
    open_store: bool = True,
    stop: threading.Event | None = None,
) -> ProbeFinding:
    """What `app.index.dense.chroma.probe.probe` does, in a forked child."""
    del stop  # a trial's deadline is its call's
    work = partial(examine, chroma, catalog, expected, compare_all=compare_all, open_store=open_store)
    status, said = call(address, work)
    return ProbeFinding(()) if (status, said) == (0, "[]") else ProbeFinding((said or f"ended with {status}",))


ATTEMPTS = 10
"""How often the workload is run until it reaches a step."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One step at which the workload ended."""

    step: int
    in_recovery: int
    """The step at which the recovery was ended, when it had so many."""
    failure: str
    """What was broken; empty when every promise held."""


def steps_of(forks: Forks, directory: Path) -> int:
    """Run the whole workload once and return how many steps it reaches.

    Raises:
        RuntimeError: It failed.
    """
    status, said = forks.run(partial(run, directory / "whole", directory / "whole.log", None))
    if status != 0:
        raise RuntimeError(said)
    status, broken = forks.run(partial(check, directory / "whole", directory / "whole.log"))
    if (status, broken) != (0, "[]"):
        raise RuntimeError(f"without any crash: {broken}")
    return int(said)


def try_steps(forks: Forks, directory: Path, steps: Iterable[int]) -> Iterable[Trial]:
    """End the workload at each step, end the recovery of a fresh process too, recover in another one and check."""
    data, log = directory / "data", directory / "journal"
    for step in steps:
        for _ in range(ATTEMPTS):
            status, said = forks.run(partial(run, data, log, step))
            if status != 0:
                break
            # It came to its end: a run has some steps fewer where Chroma left no garbage to overwrite. The next one may reach it.
            _forget(data, log)
        failure = "" if status == CRASH_STATUS else f"the process ended with {status}: {said[-2000:]}"
        # The recovery is cut short too, at one of its own first writes.
        again = random.Random(step).randrange(1, 20)
        status, said = forks.run(partial(recover, data, again))
        if status not in (0, CRASH_STATUS):
            failure += f"the recovery ended with {status} at its step {again}: {said[-2000:]}"
        status, said = forks.run(partial(check, data, log))
        if (status, said) != (0, "[]"):
            failure += f"after recovery: {said[-2000:]}"
        _forget(data, log)
        yield Trial(step, again, failure)


def _forget(data: Path, log: Path) -> None:
    shutil.rmtree(data, ignore_errors=True)
    log.unlink(missing_ok=True)
