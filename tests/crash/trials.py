"""A workload whose process ends at write step 1, 2, 3 ..., and what a fresh process finds afterwards.

Trials are forked (`tests.crash.forks`), so that hundreds take minutes. The process that owns Chroma
is forked too, instead of being started: it has imported Chroma, and nothing else of it differs.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

from app.storage.files.durable import CRASH_STATUS
from app.storage.vectors import chroma as chroma_store
from app.storage.vectors.chroma import Child, Pipeline
from app.storage.vectors.chroma_child import ChromaProcess, serve
from tests.crash.forks import Forks
from tests.crash.workload import check, recover, run


def launch_forked(path: Path, ef_search: int) -> Child:
    """Do what `app.storage.vectors.chroma.launch` does, with a forked process instead of a new one."""
    (searches, theirs), (writes, others) = Pipe(), Pipe()
    pid = os.fork()
    if pid == 0:
        kept = {0, 1, 2, theirs.fileno(), others.fileno()}
        for handle in {
            int(entry.name) for entry in Path("/proc/self/fd").iterdir()
        } - kept:  # the trial's locks and pipes
            with suppress(OSError):
                os.close(handle)
        process = ChromaProcess(path, ef_search, chroma_store.OPEN_S, chroma_store.WORK_S)
        serve(process, theirs, others)
        os._exit(0)
    theirs.close()
    others.close()

    def end(timeout_s: float) -> str:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until and os.waitpid(pid, os.WNOHANG)[0] == 0:
            time.sleep(0.005)
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return "ended"

    return Child(Pipeline(searches), Pipeline(writes), end)


def use_forks() -> None:
    """Let this process fork the one that owns Chroma."""
    vars(chroma_store)["launch"] = launch_forked


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
            # It came to its end: a run has some steps fewer where Chroma left no garbage to
            # overwrite. The next one may reach it.
            _forget(data, log)
        failure = (
            "" if status == CRASH_STATUS else f"the process ended with {status}: {said[-2000:]}"
        )
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
