"""Follow a job of the server to its end, in a terminal or for a program."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIGHUP, SIGTERM
from typing import NoReturn, cast

from app.cli.output import err, job_progress
from app.client import FINISHED, DocuMindClient, Json, error_from
from app.core.errors import DocuMindError

INTERRUPTED = 130
PAUSE_TIMEOUT_S = 120.0
"""A batch that is being written ends before a run pauses, seconds."""


def run_job(
    client: DocuMindClient, job: Json, title: str, again: str = "", *, as_json: bool = False
) -> Json:
    """Follow a job to its end and return it; Ctrl-C, or an end from outside, pauses it.

    Without `again`, the command that goes on with it, the job is cancelled.

    Raises:
        DocuMindError: The job failed, or it was paused or cancelled elsewhere.
    """
    job_id = str(job["id"])
    try:
        with _ended_like_ctrl_c(), job_progress(title, quiet=as_json) as changed:

            def tell(now: Json) -> None:
                if as_json:
                    _print_line(now)
                else:
                    changed(now)
                if now["state"] == "paused":
                    raise DocuMindError(f"job {job_id} was paused; go on with: {again}")

            done = client.follow(job_id, tell)
    except KeyboardInterrupt:
        _pause_and_exit(client, job_id, again)
    if done["state"] == "done":
        return done
    problem = cast("Json | None", done["result"]) or {}
    if "error" in problem:
        raise error_from(cast("Json", problem["error"]))
    raise DocuMindError(
        f"job {job_id} was {done['state']}; what it has done stays. Go on with: {again}"
    )


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, so that no job goes on unseen."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, interrupt) for number in (SIGTERM, SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pause_and_exit(client: DocuMindClient, job_id: str, again: str) -> NoReturn:
    """Pause a job, wait until it stands still, and end the command."""
    job = client.pause(job_id) if again else client.cancel(job_id)
    deadline = time.monotonic() + PAUSE_TIMEOUT_S
    while job["state"] not in {"paused", *FINISHED} and time.monotonic() < deadline:
        time.sleep(0.1)
        job = client.job(job_id)
    if job["state"] == "paused":
        err.print(
            f"paused at {job['done']} {job['unit']}; what is indexed can be searched. Go on with:"
            f" {again}",
            markup=False,
        )
    sys.exit(INTERRUPTED)


def _print_line(job: Json) -> None:
    """Print what a program wants to know of a job, on one line."""
    shown = {name: job[name] for name in ("id", "kind", "state", "done", "total", "unit", "eta_s")}
    if job["state"] in FINISHED:
        shown["result"] = job["result"]
    sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
    sys.stdout.flush()
