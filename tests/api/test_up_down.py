"""`documind up` and `down` with real processes; the fake `ollama` on the PATH starts the protocol double."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.cli.up import Background, start_time
from app.client import DocuMindClient
from app.storage.files.lock import DirectoryLock

ROOT = Path(__file__).parents[2]
FAKE_OLLAMA = f"""#!{sys.executable}
import os, sys
assert sys.argv[1:] == ["serve"], sys.argv
assert os.environ["OLLAMA_NO_CLOUD"] == "1"
host, _, port = os.environ["OLLAMA_HOST"].rpartition(":")
assert host == "127.0.0.1"
os.execv(sys.executable, [sys.executable, "-m", "tests.fakes.ollama_double", "--empty", "--port", port])
"""
HANGING_OLLAMA = "#!/bin/sh\nexec sleep 600\n"
BROKEN_OLLAMA = "#!/bin/sh\necho no such graphics card\nexit 3\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Machine:
    """A data directory, two ports, and a PATH with or without Ollama."""

    directory: Path
    env: dict[str, str]

    def install(self, program: str) -> None:
        path = self.directory / "bin" / "ollama"
        path.write_text(program)
        path.chmod(0o755)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "app", *arguments]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            self.command(*arguments),
            env=self.env,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def json(self, *arguments: str) -> dict[str, Any]:
        code, printed, complaint = self.run(*arguments, "--json")
        assert code == 0, complaint
        found: dict[str, Any] = json.loads(printed)
        return found

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "data/run/up.json").read_text())
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    (tmp_path / "bin").mkdir()
    browser = tmp_path / "bin" / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/opened"\n')
    browser.chmod(0o755)
    env = {
        **{
            name: value
            for name, value in os.environ.items()
            if name not in {"WAYLAND_DISPLAY", "PATH"}
        },
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "DATA_DIR": str(tmp_path / "data"),
        "API_PORT": str(free_port()),
        "OLLAMA_BASE_URL": f"http://127.0.0.1:{free_port()}",
        "SAMPLES": "0",
        "DISPLAY": ":9",
        "BROWSER": f"{browser} %s",
    }
    machine = Machine(tmp_path, env)
    yield machine
    if (tmp_path / "data/run/up.json").exists():
        machine.run("down")


def gone(pid: int) -> bool:
    return start_time(pid) == ""


def test_up_starts_everything_and_down_ends_just_that(machine: Machine) -> None:
    machine.install(FAKE_OLLAMA)
    first = machine.json("up", "--pull")
    assert (first["server"], first["ollama"], first["missing_models"]) == ("started", "started", [])
    assert (machine.directory / "opened").read_text().split() == [first["url"]]
    with DocuMindClient(first["url"]) as client:
        assert client.health()["generator"] == "ollama:llama3.2"
    started = machine.state()
    assert started["server"]["pid"] == first["pid"]

    code, printed, _ = machine.run("up", "--no-open")  # again: nothing new, nothing forgotten
    assert code == 0
    assert "runs already" in printed
    assert machine.state() == started

    ended = machine.json("down")
    assert ended == {
        "ended": {name: process["pid"] for name, process in started.items()},
        "still_running": None,
    }
    assert all(gone(process["pid"]) for process in started.values())
    assert machine.json("down")["ended"] == {}


def test_without_ollama_it_says_what_works_and_a_foreign_server_is_left_alone(
    machine: Machine,
) -> None:
    server = subprocess.Popen(
        machine.command("serve"),
        env=machine.env,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not (machine.directory / "data/.lock").exists():
            assert server.poll() is None
            time.sleep(0.02)
        code, printed, complaint = machine.run("up", "--no-open")
        assert code == 0, complaint
        assert "runs already" in printed
        assert "no program 'ollama'" in printed
        assert "answers are quotes" in printed
        assert not (machine.directory / "opened").exists()
        code, printed, _ = machine.run("down")
        assert code == 0
        assert f"process {server.pid}" in printed
        assert "was not started by" in printed
        assert server.poll() is None
    finally:
        server.send_signal(signal.SIGTERM)
        assert (
            server.wait(30) == -signal.SIGTERM
        )  # uvicorn closes everything and then lets the signal have its way


@contextmanager
def host_of_their_own(machine: Machine) -> Iterator[subprocess.Popen[bytes]]:
    port = machine.env["OLLAMA_BASE_URL"].rpartition(":")[2]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.ollama_double", "--port", port], cwd=ROOT
    ) as process:
        while True:
            try:
                socket.create_connection(("127.0.0.1", int(port)), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        try:
            yield process
        finally:
            process.terminate()


def test_an_ollama_that_was_there_is_used_and_left_running(machine: Machine) -> None:
    machine.install(BROKEN_OLLAMA)
    (machine.directory / "prompts").mkdir()
    (machine.directory / "prompts" / "rewrite.yml").write_text("mood: cheerful\n")
    with host_of_their_own(machine) as host:
        machine.env["PROMPTS_DIR"] = str(machine.directory / "prompts")
        code, _, complaint = machine.run("up", "--no-open")
        assert code == 6
        assert "the server ended while it started" in complaint
        assert "mood" in complaint  # why, out of its log
        assert machine.state() == {}
        assert host.poll() is None


def test_a_server_that_cannot_start_takes_the_ollama_it_came_with_along(machine: Machine) -> None:
    machine.install(FAKE_OLLAMA)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(machine.env["API_PORT"])))
        taken.listen()
        code, _, complaint = machine.run("up", "--no-open")
    assert code == 1
    assert f"port {machine.env['API_PORT']}" in complaint
    assert "API_PORT" in complaint
    assert machine.state() == {}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(
            ("127.0.0.1", int(machine.env["OLLAMA_BASE_URL"].rpartition(":")[2])), 1
        )


def test_an_interrupt_ends_what_was_started(machine: Machine) -> None:
    machine.install(HANGING_OLLAMA)
    command = subprocess.Popen(
        machine.command("up", "--no-open"), env=machine.env, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    state = machine.directory / "data/run/up.json"
    while not state.exists():
        assert command.poll() is None
        time.sleep(0.02)
    process = Background(**machine.state()["ollama"])
    assert process.runs()
    code, _, complaint = machine.run("down")
    assert code == 5
    assert "is starting or stopping" in complaint
    command.send_signal(signal.SIGINT)
    assert command.wait(30) == 130
    assert not process.runs()
    assert machine.state() == {}


def test_down_never_ends_a_process_that_was_given_the_pid(machine: Machine) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        try:
            folder = machine.directory / "data/run"
            folder.mkdir(parents=True)
            remembered = {"pid": stranger.pid, "started": "another boot:1"}
            (folder / "up.json").write_text(
                json.dumps({"server": remembered, "ollama": remembered})
            )
            code, printed, _ = machine.run("down")
            assert code == 0
            assert "nothing that `documind up` started is running" in printed
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_up_waits_for_no_command_that_holds_the_data(machine: Machine) -> None:
    with DirectoryLock([machine.directory / "data"]) as lock:
        lock.announce(
            "http://127.0.0.1:9", lasting=False
        )  # a command's own server, gone when the command is
        code, _, complaint = machine.run("up", "--no-open")
        assert code == 5
        assert f"process {os.getpid()} is working on" in complaint
        assert machine.state() == {}
