"""The server works with no network, and sends nothing.

A whole main job runs under a guard, and in a network namespace of its own where one can be had.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUARD = ROOT / "tests" / "fakes" / "silence"


def namespaces() -> bool:
    """Whether this user may have a network namespace (Linux; some distributions forbid it)."""
    try:
        return (
            subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode
            == 0
        )
    except FileNotFoundError:
        return False


def test_the_main_job_needs_no_network_and_tries_none(tmp_path: Path) -> None:
    apart = namespaces()
    command = [sys.executable, "-m", "tests.fakes.silence.scenario", str(tmp_path / "data")]
    command = ["unshare", "-rn", *command, "--namespace"] if apart else command
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    seen = json.loads(made.stdout)
    assert seen["documents"] == 4
    assert seen["status"] in {"answered", "abstained"}
    assert seen["statuses"] == [200] * 9
    assert seen["hits"]
    attempts = tmp_path / "data.attempts"
    assert not attempts.exists(), attempts.read_text()
    if apart:
        assert seen["lost"] == 0
        assert seen["control"] > 0, "the kernel's count would have told"


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('192.0.2.1', 80))",
        "socket.getaddrinfo('example.org', 443)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "urllib.request.urlopen('http://192.0.2.1/')",
        "requests.get('https://example.org/')",
    ],
)
def test_the_guard_sees_and_refuses(tmp_path: Path, attempt: str) -> None:
    log = tmp_path / "attempts"
    made = subprocess.run(
        [sys.executable, "-c", f"import socket, urllib.request, requests; {attempt}"],
        env={**os.environ, "PYTHONPATH": str(GUARD), "SILENCE_LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode != 0
    assert log.read_text().strip()
