"""Kill a workload at every write step; write crash_points.{json,md}.

make crash-points                                           # CRASH_EVERY=1: all of them
python -m evaluation.campaigns.crash_points --dir D --minutes 5       # a part; the same command
goes on
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from evaluation.lib.campaign import deadline, working_in
from evaluation.lib.reports import PARTS, Line, options, say, write
from tests.crash.forks import Forks
from tests.crash.trials import Trial, steps_of, try_steps
from tests.crash.workload import Journal


def main() -> int:
    args = options(__doc__, **PARTS)
    logging.disable(logging.CRITICAL)  # rebuilt stores are logged, hundreds of times
    every = int(os.environ.get("CRASH_EVERY", "1"))
    with working_in(args.dir, "points") as directory, Forks() as forks:
        done = directory / "trials.jsonl"
        kept = done.read_text("utf-8").splitlines() if done.exists() else []
        trials = [Trial(**json.loads(line)) for line in kept]
        with tempfile.TemporaryDirectory(dir=directory) as whole:
            steps = steps_of(forks, Path(whole))
            names = Journal.read(Path(whole) / "whole.log").steps
        wanted = range(1, steps + 1, every)
        tried = {trial.step for trial in trials}
        until = deadline(args.minutes)
        with done.open("a", encoding="utf-8") as log:
            for trial in try_steps(forks, directory, [one for one in wanted if one not in tried]):
                trials.append(trial)
                log.write(json.dumps(asdict(trial)) + "\n")
                log.flush()
                if time.monotonic() > until:
                    break
    say(f"{len(trials)} steps tried so far")
    if len(trials) < len(wanted):
        return 0
    broken = [f"- step {trial.step}: {trial.failure[:300]}" for trial in trials if trial.failure]
    figures = {"steps of the workload": float(steps), "steps tried": float(len(trials))}
    figures["names of writes"] = float(len(names))
    times = {f"times {name} is written": float(count) for name, count in sorted(names.items())}
    return write(
        "crash_points",
        "Every write step can be the last",
        [*REMARKS, *broken[:100]],
        [Line("broken promises", len(broken))],
        figures,
        "make crash-points",
        aside=times,
    )


REMARKS = (
    "Uploads, a replacement, corrections, deletions with and without grace, a bulk batch with its"
    " ledger, vectors for both libraries, a rebuild and a purge. The process ends before and after"
    " each named write; the next one ends too, at one of its first nineteen writes; a third"
    " recovers and is checked: texts, originals, a search for a word of every chunk, every vector"
    " in the cache and in Chroma at rank 1, counters, the ledger, no phantom, no duplicate; and it"
    " goes on writing. A step is counted before and after its write.",
)


if __name__ == "__main__":
    sys.exit(main())
