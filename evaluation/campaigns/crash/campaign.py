"""Kill a server repeatedly under load, restart it, and check every promise."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from app.client import DocuMindClient
from app.core.errors import ProviderUnreachable
from evaluation.campaigns.crash.checks import (
    check_acknowledged,
    check_everything,
    check_files,
    observe,
    settle,
)
from evaluation.campaigns.crash.load import Load
from evaluation.campaigns.crash.promises import Promises
from evaluation.lib.served import Served

WHILE_STARTING = 0.1
"""Share of kills that hit a server before it is ready."""

EARLIER = 10
"""Documents of earlier runs looked at after every restart; all of them are at the end."""

START_ATTEMPTS = 3
"""Another process may take a free port before the server binds it."""


@dataclass
class Tally:
    """Counts of a campaign so far; seconds."""

    kills: int = 0
    kills_in_open_writes: int = 0
    """Kills with at least one upload, replacement or deletion sent and not answered."""
    kills_while_starting: int = 0
    open_requests: int = 0
    """Changes that had no answer when the server was killed."""
    became: dict[str, int] = field(default_factory=dict)
    """What became of those: `done` or `nothing`."""
    searches: int = 0
    ready_s: list[float] = field(default_factory=list)
    """From the start of a process after a kill until it was ready."""
    settled_s: list[float] = field(default_factory=list)
    """From ready until every accepted job was done."""
    stores_remade: int = 0
    """Vector stores that were found damaged at a start, moved aside and rebuilt."""
    broken: list[str] = field(default_factory=list)


class Campaign:
    """One data directory that is killed repeatedly; resumable in another process."""

    def __init__(
        self,
        directory: Path,
        *,
        seed: int,
        longest_load_s: float,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Work in `directory`: a campaign that was begun there goes on.

        Args:
            directory: Holds `data`, the server's log and what was promised.
            seed: Of all choices.
            longest_load_s: A server is killed at a random moment up to so many seconds after the
                first upload was sent.
            settings: Of the server, by their names in the environment.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.data_dir = directory / "data"
        self._seed = seed
        self._settings = dict(settings or {})
        self._longest_load_s = longest_load_s
        self._state = directory / "promises.json"
        self._tally_path = directory / "tally.json"
        resumed = self._state.exists()
        self._fresh: set[str] = set()
        """Documents that were touched before the last kill."""
        self.promises = Promises.load(self._state) if resumed else Promises()
        self.tally = (
            Tally(**json.loads(self._tally_path.read_text("utf-8"))) if resumed else Tally()
        )

    def run(self, kills: int, *, until: float | None = None) -> None:
        """Continue until `kills` in total, or until a moment of `time.monotonic`."""
        while self.tally.kills < kills and (until is None or time.monotonic() < until):
            self._round()
            self._save()
            if self.tally.kills % 10 == 0:
                acknowledged = sum(self.promises.acknowledged.values())
                sys.stderr.write(
                    f"{self.tally.kills} kills, {self.tally.kills_in_open_writes} in open writes,"
                    f" {acknowledged} acknowledged,"
                    f" {len(self.tally.broken)} broken\n"
                )
                sys.stderr.flush()

    def finish(self) -> tuple[int, int]:
        """Start once more and check everything; return counts of checked chunks.

        Over HTTP, and in Chroma's files.
        """
        with closing(self._started(ready=True)) as server:
            self._check_restart(server, list(self.promises.settled))
            broken, asked = check_everything(server.client, self.promises)
            self.tally.broken += broken
        broken, vectors = check_files(self.data_dir)
        self.tally.broken += broken
        self.tally.stores_remade = self._remade()
        self._save()
        return asked, vectors

    def _round(self) -> None:
        """Start the server, check it, let clients use it, kill it."""
        rng = random.Random(f"{self._seed}/{self.tally.kills}")
        if rng.random() < WHILE_STARTING and self.tally.ready_s:
            server = self._started(ready=False)
            time.sleep(rng.uniform(0, self.tally.ready_s[-1]))
            self._kill(server)
            self.tally.kills_while_starting += 1
            return
        server = self._started(ready=True)
        try:
            self._check_restart(server, self._worth_a_look(rng))
            load = Load(
                server.url,
                self.promises,
                self._directory / "files",
                seed=f"{self._seed}/{self.tally.kills}",
            )
            load.start()
            load.begun.wait()
            time.sleep(rng.uniform(0, self._longest_load_s))
        finally:
            self._kill(server)
        load.join()
        self._fresh = load.touched
        self.tally.searches += load.searches
        self.tally.broken += load.wrong
        self.tally.open_requests += len(self.promises.in_flight)
        self.tally.kills_in_open_writes += bool(self.promises.in_flight)

    def _worth_a_look(self, rng: random.Random) -> list[str]:
        earlier = sorted(self.promises.settled)
        return [*self._fresh, *rng.sample(earlier, min(EARLIER, len(earlier)))]

    def _started(self, *, ready: bool) -> Served:
        """Start a server on the data; with `ready` wait until it is ready."""
        for attempt in range(START_ATTEMPTS):
            server = Served(self.data_dir, **self._settings)
            server.start()
            if not ready:
                return server
            try:
                server.wait_ready()
            except SystemExit as error:
                if attempt + 1 < START_ATTEMPTS and "address already in use" in str(error):
                    continue
                self.tally.broken.append(f"the server did not start: {str(error)[-300:]}")
                self._save()
                raise
            if self.tally.kills:
                self.tally.ready_s.append(round(server.start_s, 3))
            return server
        raise SystemExit("no free port")

    def _kill(self, server: Served) -> None:
        """Kill the server; one that ended before by itself broke a promise."""
        if (status := server.process.poll()) is not None:
            self.tally.broken.append(
                f"the server ended by itself with {status}: {self._last_words()}"
            )
        server.kill()
        self.tally.kills += 1

    def _last_words(self) -> str:
        log = Served.log_of(self.data_dir)
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""

    def _check_restart(self, server: Served, keys: list[str]) -> None:
        """Check a server that was started again.

        Raises:
            SystemExit: It does not answer any more.
        """
        try:
            self._hold_to_promises(server.client, keys)
        except ProviderUnreachable as error:
            with suppress(subprocess.TimeoutExpired):
                server.process.wait(10)
            status = server.process.poll()
            ended = "it lives" if status is None else f"it ended with {status}"
            self.tally.broken.append(
                f"the server stopped answering while it was checked, and {ended}:"
                f" {self._last_words()}"
            )
            self._save()
            raise SystemExit(self.tally.broken[-1]) from error

    def _hold_to_promises(self, client: DocuMindClient, keys: list[str]) -> None:
        """Check what must exist now, await accepted jobs, compare the list, learn more.

        It learns what became of the rest.
        """
        self.tally.broken += check_acknowledged(client, self.promises, keys)
        self.tally.settled_s.append(round(settle(client), 3))
        broken, became = observe(client, self.promises)
        self.tally.broken += broken
        self.tally.became = dict(Counter(self.tally.became) + became)

    def _remade(self) -> int:
        """Count stores moved aside for a fault, not those that a purge rebuilt."""
        log = Served.log_of(self.data_dir)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return sum(
            "made again from the catalog" in line and "a purge" not in line for line in lines
        )

    def _save(self) -> None:
        self.promises.save(self._state)
        self._tally_path.write_text(json.dumps(asdict(self.tally)), "utf-8")
