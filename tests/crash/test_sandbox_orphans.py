"""A server that is killed leaves no parsing child behind, idle or busy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

_SERVER = """
import sys, threading
from app.ingest.options import IngestOptions
from app.ingest.sandbox import SandboxedParser
parser = SandboxedParser(IngestOptions(parse_processes=1))
parser.parse(b"warm", "a.txt")
if sys.argv[1] == "busy":
    threading.Thread(target=parser.parse, args=(b"word " * 3_000_000, "a.txt"), daemon=True).start()
print(parser.pids[0], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_children_die_with_a_killed_server(state: str) -> None:
    root = Path(__file__).resolve().parents[2]
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, state],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    child = psutil.Process(int(server.stdout.readline()))
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    assert server.stdin is not None
    server.stdin.close()
    _, alive = psutil.wait_procs([child], timeout=10)
    assert alive == []
