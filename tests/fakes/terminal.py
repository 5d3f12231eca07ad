"""A real process on a pseudo-terminal: type, read what is on the screen, press Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")
CTRL_C = "\x03"
CTRL_D = "\x04"


class Terminal:
    """Runs a command on a pseudo-terminal of 100 columns; use as a context manager."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        self._screen, theirs = pty.openpty()
        self.process = subprocess.Popen(
            # A new session's leader takes the first terminal it opens as its own: only so does
            # Ctrl-C become a signal.
            ["/bin/sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(theirs), *command],
            stdin=subprocess.DEVNULL,
            cwd=cwd,
            env={**os.environ, **env, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"},
            start_new_session=True,
        )
        self._theirs = theirs  # held open until the child has opened it
        self._raw = b""
        self._read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._screen)
        if self._theirs >= 0:
            os.close(self._theirs)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._screen, text.encode())

    def line(self, text: str) -> None:
        """Type a line."""
        self.type(f"{text}\n")

    @property
    def seen(self) -> str:
        """Everything printed so far, without colours and cursor movements."""
        return _ESCAPES.sub("", self._raw.decode("utf-8", "replace"))

    def expect(self, text: str, timeout_s: float = 30.0) -> str:
        """Read until a text has been printed after what was expected last; return what came up to its end."""
        deadline = time.monotonic() + timeout_s
        while (at := self.seen.find(text, self._read)) < 0:
            if time.monotonic() > deadline or not self._more(deadline - time.monotonic()):
                raise AssertionError(
                    f"{text!r} was not printed; since the last expected text:"
                    f" {self.seen[self._read :]!r}"
                )
        before, self._read = self._read, at + len(text)
        return self.seen[before : self._read]

    def press(self, key: str, until: str, timeout_s: float = 30.0) -> str:
        """Press a key, once more each second, until a text has been printed.

        CPython's readline sees a signal that comes between two of its reads at the next key only.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            self.type(key)
            try:
                return self.expect(until, 1.0)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise

    def end(self, timeout_s: float = 20.0) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self._more(deadline - time.monotonic()):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def _more(self, timeout_s: float) -> bool:
        """Read what is there, waiting for something; return False at the end of output."""
        if self._raw and self._theirs >= 0:
            os.close(self._theirs)
            self._theirs = -1
        ready, _, _ = select.select([self._screen], [], [], max(0.0, timeout_s))
        if not ready:
            return True
        try:
            piece = os.read(self._screen, 65_536)
        except OSError:  # Linux's way to say that the other side is closed
            return False
        self._raw += piece
        return bool(piece)
