"""Recognising and ending processes, with real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import up
from app.cli.up import Background, UpState, last_lines, start, start_time

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf])
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_process_is_known_by_pid_and_start(sleeper: subprocess.Popen[bytes]) -> None:
    found = Background.of(sleeper.pid)
    assert found is not None
    assert found.runs()
    assert found.started == start_time(sleeper.pid) != ""
    sleeper.kill()
    for _ in range(1000):  # killed but not waited for: its entry is still there
        if not found.runs():
            break
        time.sleep(0.01)
    assert not found.runs()
    assert Path(f"/proc/{sleeper.pid}").exists()
    assert Background.of(sleeper.pid) is None


def test_another_process_with_the_pid_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    stranger = Background(sleeper.pid, "boot:1")
    assert not stranger.runs()
    assert stranger.stop(5) is False
    assert sleeper.poll() is None


def test_a_process_that_will_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    log = tmp_path / "log"
    handle, found = start([sys.executable, "-c", STUBBORN], log, {"MARK": "1"})
    assert found is not None
    while not (printed := log.read_text().strip()):
        time.sleep(0.01)
    child = Background.of(int(printed))
    assert child is not None
    try:
        assert os.getpgid(found.pid) == found.pid != os.getpgid(0)
        assert found.stop(0.2) is True
        assert not found.runs()
        for _ in range(1000):
            if not child.runs():
                break
            time.sleep(0.01)
        assert not child.runs()
    finally:
        handle.wait(10)


def test_logs_keep_the_run_before(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for word in ("first", "second"):
        handle, _ = start(
            [
                sys.executable,
                "-c",
                f"print({word!r}); import sys; print('to stderr', file=sys.stderr)",
            ],
            log,
            {},
        )
        handle.wait(20)
    assert "second" in last_lines(log)
    assert "to stderr" in last_lines(log)
    assert "first" in last_lines(tmp_path / "log.1")
    assert last_lines(tmp_path / "none") == ""


@pytest.mark.parametrize(
    "content",
    ["", "[]", "null", '{"server": {"pid": 1}}', '{"server": 7, "ollama": []}', "\x00\xff"],
)
def test_a_state_that_cannot_be_read_ends_nothing(tmp_path: Path, content: str) -> None:
    state = UpState(tmp_path)
    state.directory.mkdir()
    (state.directory / "up.json").write_text(content)
    with state.held() as started:
        assert started == {}


def test_the_state_survives_and_forgets_the_dead(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    alive = Background.of(sleeper.pid)
    state = UpState(tmp_path)
    with state.held() as started:
        assert started == {}
        assert alive is not None
        state.save({"server": alive, "ollama": Background(sleeper.pid, "boot:1")})
    with UpState(tmp_path).held() as found:
        assert found == {"server": alive}


def test_where_there_is_no_proc_ps_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "_PROC", tmp_path / "none")
    ps = tmp_path / "ps"
    ps.write_text(
        '#!/bin/sh\n[ "$1 $2 $3" = "-o stat=,lstart= -p" ] || exit 2\n'
        'case $4 in 7) echo "Ss   Sat Nov 21 23:12:53 2026";; 8) echo "Z    Sat Nov 21 23:12:54'
        ' 2026";; *) exit 1;; esac\n'
    )
    ps.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert Background.of(7) == Background(7, "Sat Nov 21 23:12:53 2026")
    assert Background.of(8) is None
    assert Background.of(9) is None
    assert Background(7, "Sat Nov 21 20:00:00 2026").runs() is False
