"""Store what `documind up` started, so that `documind down` ends only that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from app.cli.processes import Background
from app.core.errors import Locked
from app.index.files.lock import DirectoryLock, owner


@dataclass(slots=True)
class Started:
    """Processes that `up` started and that may still run; None for each other."""

    server: Background | None = None
    ollama: Background | None = None

    def forget_the_dead(self) -> None:
        """Drop processes that have ended."""
        self.server = self.server if self.server and self.server.runs() else None
        self.ollama = self.ollama if self.ollama and self.ollama.runs() else None


class UpState:
    """The folder `run` of a data directory: a state file, and logs."""

    def __init__(self, data_dir: Path) -> None:
        """Point at the folder; nothing is made yet."""
        self.directory = data_dir / "run"
        self._file = self.directory / "up.json"

    def log(self, name: str) -> Path:
        """Return where a process writes."""
        return self.directory / f"{name}.log"

    @contextmanager
    def held(self) -> Iterator[Started]:
        """Yield what runs, for one command at a time.

        Raises:
            Locked: Another `up` or `down` is at work on this directory.
        """
        try:
            lock = DirectoryLock([self.directory])
        except Locked as error:
            busy = owner(self.directory)
            who = f"process {busy.pid}" if busy else "another process"
            raise Locked(
                f"{who} is starting or stopping this server (documind up or down); wait for it and"
                " try again"
            ) from error
        with lock:
            started = self._load()
            started.forget_the_dead()
            yield started

    def save(self, started: Started) -> None:
        """Store what was started, at once, so that an interruption loses nothing."""
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(asdict(started)), encoding="utf-8")
        part.replace(self._file)

    def _load(self) -> Started:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return Started(_process(found.get("server")), _process(found.get("ollama")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # No file yet, or not ours to read: then nothing can be recognised, and nothing is
            # ended.
            return Started()


def _process(record: object) -> Background | None:
    return (
        Background(int(record["pid"]), str(record["started"])) if isinstance(record, dict) else None
    )
