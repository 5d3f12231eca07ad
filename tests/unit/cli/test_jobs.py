"""A job that is followed: into a file line by line, and ended with its command."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from app.cli.connection import run_job
from app.client import DocuMindClient, Json

JOB: Json = {"id": "j1", "kind": "model_test", "state": "running", "total": 40, "unit": "questions"}


class Followed(DocuMindClient):
    """A client whose server has one job."""

    def __init__(self, *, ends: bool) -> None:
        super().__init__("http://127.0.0.1:9")
        self._ends = ends
        self.cancelled: list[str] = []

    def follow(self, job_id: str, changed: Callable[[Json], None] | None = None) -> Json:
        assert changed is not None
        for done in range(41):
            changed({**JOB, "done": done})
        if not self._ends:
            os.kill(os.getpid(), signal.SIGTERM)
        return {**JOB, "state": "done", "result": {}}

    def cancel(self, job_id: str) -> Json:
        self.cancelled.append(job_id)
        return {**JOB, "state": "cancelled"}


def test_progress_goes_into_a_file_by_tenths(capsys: pytest.CaptureFixture[str]) -> None:
    run_job(Followed(ends=True), JOB, "testing")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"testing: {n} of 40 questions" for n in range(4, 41, 4)]


class Waiting(Followed):
    """A client whose server tries the job again, twice for one reason."""

    def follow(self, job_id: str, changed: Callable[[Json], None] | None = None) -> Json:
        assert changed is not None
        for state in ("queued", "running", "queued", "running"):
            changed({**JOB, "state": state, "errors": ["provider_down: cannot reach the host"]})
        return super().follow(job_id, changed)


def test_what_a_job_waits_for_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    run_job(Waiting(ends=True), JOB, "testing")
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first == "testing: waiting, and trying again: provider_down: cannot reach the host"
    assert second == "testing: 4 of 40 questions"


def test_a_command_that_is_ended_ends_its_job() -> None:
    client = Followed(ends=False)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        run_job(client, JOB, "testing")
    assert (ended.value.code, client.cancelled) == (130, ["j1"])
    assert signal.getsignal(signal.SIGTERM) is before
