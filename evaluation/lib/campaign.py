"""What campaigns against a real server share: clients in threads, texts with words of their own, a killer."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from app.client import Json
from evaluation.lib.served import Served

Client = TypeVar("Client")
Step = Callable[[Client, str, random.Random], None]
"""Does one thing with a client of its own; gets a name that no other step of the run had."""


class Clients(Generic[Client]):
    """Threads that each repeat a step until they are stopped or the step raises StopIteration."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[Client]],
        steps: Mapping[str, Step[Client]],
        seed: str,
    ) -> None:
        self.stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(opened, step, name, random.Random(f"{seed}/{name}")),
                daemon=True,
            )
            for name, step in steps.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Stop, and wait until every client has its last answer or lost its server."""
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def _run(
        self,
        opened: Callable[[], AbstractContextManager[Client]],
        step: Step[Client],
        name: str,
        rng: random.Random,
    ) -> None:
        number = 0
        with opened() as client:
            while not self.stop.is_set():
                try:
                    step(client, f"{name}n{number}", rng)
                except StopIteration:
                    return
                number += 1


def own_words(rng: random.Random, count: int = 60) -> str:
    """Return made-up words: passages of the same few would be collapsed as near-duplicates."""
    return " ".join("".join(rng.choices("aeioulmnrst", k=rng.randint(4, 9))) for _ in range(count))


def checked(server: Served) -> list[Json]:
    """Return the faults that fsck finds in a running server's store."""
    job = server.client.follow(str(server.client.post("/api/v1/fsck")["id"]))
    faults: list[Json] = job["result"]["faults"]
    return faults


class Killer:
    """Starts servers on one data directory and kills them; notes what it should not have seen."""

    START_ATTEMPTS = 3
    """Another process may take a free port before the server binds it."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str], broken: list[str]) -> None:
        self._data_dir, self._settings, self.broken = data_dir, settings, broken

    def started(self, *, ready: bool) -> Served:
        """Start a server on the data; with `ready` wait until it is ready.

        Raises:
            SystemExit: It does not become ready.
        """
        for attempt in range(self.START_ATTEMPTS):
            server = Served(self._data_dir, **self._settings)
            server.start()
            if not ready:
                return server
            try:
                server.wait_ready()
            except SystemExit as error:
                if attempt + 1 < self.START_ATTEMPTS and "address already in use" in str(error):
                    continue
                self.broken.append(f"the server did not start: {str(error)[-300:]}")
                raise
            return server
        raise SystemExit("no free port")

    def kill(self, server: Served) -> None:
        """Kill the server; one that ended before by itself broke a promise."""
        if (status := server.process.poll()) is not None:
            self.broken.append(f"the server ended by itself with {status}: {self.log()[-2000:]}")
        server.kill()

    def log(self) -> str:
        """Return what servers on the data wrote."""
        path = Served.log_of(self._data_dir)
        return path.read_text(errors="replace") if path.exists() else ""


@contextmanager
def working_in(given: Path | None, name: str) -> Iterator[Path]:
    """Yield the folder that a resumable campaign was given, or one that goes afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"documind-{name}-") as temporary:
        folder = given or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


def deadline(minutes: float) -> float:
    """Return the moment of `time.monotonic` at which a part ends; 0 minutes are all of it."""
    return time.monotonic() + 60 * minutes if minutes else float("inf")
