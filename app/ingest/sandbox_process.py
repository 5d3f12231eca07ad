"""Start a parsing process in its confines, and talk to it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from app.core.errors import Busy
from app.ingest.options import IngestOptions
from app.ingest.sandbox_wire import (
    Header,
    receive_frame,
    send_frame,
)

_START_TIMEOUT_S = 60.0
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
    "from app.ingest.sandbox_child import main; main(int(sys.argv[2]), sys.argv[3])"
)
# One thread and one arena: the address space is limited, and each reserves tens of megabytes.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "LC_ALL": "C.UTF-8"}


class SandboxProcess:
    """One child process and our end of its socket."""

    def __init__(self, options: IngestOptions) -> None:
        self._options = options
        self.parses = 0
        self._control, theirs = socket.socketpair()
        paths = [str(Path(__file__).resolve().parents[2]), *(path for path in sys.path if path)]
        command = [
            sys.executable,
            "-I",
            "-S",
            "-B",
            "-c",
            _BOOT,
            json.dumps(paths),
            str(theirs.fileno()),
            json.dumps(asdict(options)),
        ]
        with theirs, ExitStack() as unless_started:
            unless_started.callback(self._control.close)
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_ENVIRONMENT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C in a terminal is for the server alone
            )
            unless_started.pop_all()
        self._ready = False

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether it still runs."""
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait until the child has its imports behind it.

        Raises:
            Busy: It did not start; too little memory, most likely.
        """
        if self._ready:
            return
        try:
            frame = receive_frame(self._control, deadline=time.monotonic() + _START_TIMEOUT_S)
        except OSError:
            frame = None
        if frame is None:
            self.kill()
            raise Busy(
                "the parsing process did not start (too little memory?); try again in a moment",
                retry_after_s=5,
            )
        self._ready = True

    def call(self, header: Mapping[str, object], body: bytes) -> tuple[Header, bytes] | None:
        """Send a request and return the answer, None when the child died over it.

        Raises:
            TimeoutError: The wall clock ran out.
            FrameTooLarge: The answer passes the output cap.
        """
        deadline = time.monotonic() + self._options.parse_wall_s
        self.parses += 1
        self._control.settimeout(self._options.parse_wall_s)
        try:
            send_frame(self._control, header, body)
            return receive_frame(
                self._control, limit_bytes=self._options.parse_output_bytes, deadline=deadline
            )
        except (BrokenPipeError, ConnectionResetError):
            return None

    def stop(self) -> None:
        """Make the child end; a call under way returns None."""
        self._process.kill()

    def kill(self) -> int:
        """End the child and return how it ended (a negative number is a signal)."""
        self._process.kill()
        self._control.close()
        return self._process.wait()

    def exit_code(self) -> int:
        """Return how a child that closed its socket ended."""
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return self.kill()
