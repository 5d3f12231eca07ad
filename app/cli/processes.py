"""Start, recognise and end processes that outlive their command.

The system reuses a pid after its process has ended. So a process is recognised by pid and start
time together, and only a recognised one is signalled.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PROC = Path("/proc")
_POLL_S = 0.05
_TAIL_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Background:
    """A process by its pid and by when it started, as the operating system tells it."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Background | None:
        """Return the running process with this pid; None if there is none.

        A zombie does not count.
        """
        started = start_time(pid)
        return cls(pid, started) if started else None

    def runs(self) -> bool:
        """True while this very process runs; false for another one that was given its pid."""
        return start_time(self.pid) == self.started

    def stop(self, grace_s: float) -> bool:
        """End the process, by force after `grace_s` seconds; return whether it ran.

        Force ends its process group, which `start` made its own, so that no runner of a model host
        stays behind.
        """
        if not self._signal(signal.SIGTERM):
            return False
        if not self._gone_within(grace_s) and self._signal(signal.SIGKILL, group=True):
            self._gone_within(grace_s)
        return True

    def _signal(self, number: signal.Signals, *, group: bool = False) -> bool:
        if not self.runs():
            return False
        try:
            if group and os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.runs():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True


def start_time(pid: int) -> str:
    """Return a process's start time in the system's words; empty if not running.

    On Linux the boot's id and field 22 of /proc/PID/stat, clock ticks since that boot (proc(5));
    elsewhere what `ps` prints.
    """
    if not _PROC.joinpath("self").exists():
        return _start_time_by_ps(pid)
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        boot = _PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    fields = stat[
        stat.rindex(")") + 2 :
    ].split()  # the name, field 2, may hold anything; field 3 is the state
    # A leader that is gone while other threads of it still run (field 20 counts them) holds its
    # files and locks.
    ended = fields[0] == "X" or (fields[0] == "Z" and int(fields[17]) <= 1)
    return "" if ended else f"{boot}:{fields[19]}"


def _start_time_by_ps(pid: int) -> str:
    ps = shutil.which("ps") or "/bin/ps"
    shown = subprocess.run(  # noqa: S603
        [ps, "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, started = shown.stdout.strip().partition(" ")
    return "" if not state or state.startswith("Z") else started.strip()


def start(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], Background | None]:
    """Start a program in its own session that outlives this one.

    No Ctrl-C here reaches it.

    Args:
        command: Program and arguments.
        log: Where both its outputs go; an earlier run's log is kept as `.1`.
        environment: Added to this process's.

    Returns:
        The handle for this process, and how later ones recognise it; None when it has ended
        already.
    """
    if log.exists():
        log.replace(log.with_name(f"{log.name}.1"))
    with log.open("wb") as sink:
        process = _spawn(command, sink, environment)
    return process, Background.of(process.pid)


def _spawn(
    command: Sequence[str], sink: IO[bytes], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # the command is ours
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def last_lines(log: Path, count: int = 12) -> str:
    """Return the end of a log; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-count:])
