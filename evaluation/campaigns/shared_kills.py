"""Kill servers and workers of one library during uploads; nothing acknowledged is lost.

Run: `.venv-shared/bin/python -m evaluation.campaigns.shared_kills --kills 50`

Two servers that run no jobs and two workers are processes of their own on one real PostgreSQL and
one double of Qdrant, which is the engine on one node. Each kill waits until the round has
acknowledged uploads, so no round is void. Kills come in turn: SIGKILL of a server, SIGKILL or
SIGTERM of a worker, the end of every database connection. Every other upload is not waited for: it
is acknowledged when it is accepted. Now and then a document gets a new revision that nobody waits for
and is deleted at once: it must not come back. It is no power cut: the page cache survives.
"""

from __future__ import annotations

import argparse
import re
import signal
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import requests

from app.core.errors import DocuMindError, NotFound
from evaluation.lib.served import Line, Served, write
from tests.fakes.postgres_server import PostgresServer, running_server
from tests.shared.engines import DoubleProcess, Working, data_of

DELETED_EACH = 6
"""Of so many uploads through a server one document is deleted."""
EACH_ROUND = 3
"""Uploads that a round has acknowledged before it kills."""
TIMEOUT_S = 60
WAIT_S = 0.02
_CUT = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = 'documind'"
)


@dataclass(slots=True)
class Campaign:
    """What was acknowledged, refused and killed so far; thread-safe."""

    servers: Sequence[Served]
    workers: Sequence[Working]
    database: PostgresServer
    acknowledged: list[str] = field(default_factory=list)
    """Names of uploads that were waited for and answered as stored."""
    accepted: dict[str, str] = field(default_factory=dict)
    """Job ids of uploads that nobody waited for, by name."""
    deleted: list[str] = field(default_factory=list)
    """Names whose deletion was acknowledged while a new revision waited."""
    failed: int = 0
    """Accepted uploads whose job ended otherwise than done."""
    refused: int = 0
    server_kills: int = 0
    worker_kills: int = 0
    cuts: int = 0
    cut_connections: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def upload(self, at: int) -> None:
        """Upload through one server until the end; a refused file is not sent again."""
        number, mine = 0, list[str]()
        with requests.Session() as session:
            session.trust_env = False
            while not self.stop.is_set():
                number += 1
                name, waits = f"w{at}x{number}", number % 2 == 0
                reply = self._send(session, at, name, waits=waits)
                if waits and reply is not None and reply.status_code == 201:
                    self.acknowledged.append(name)
                    mine.append(name)
                elif not waits and reply is not None and reply.status_code == 202:
                    self.accepted[name] = reply.json()["job_id"]
                else:
                    self.refused += 1
                    self.stop.wait(WAIT_S)
                if number % DELETED_EACH == 0 and mine:
                    self._replace_and_delete(session, at, mine.pop())

    def _send(
        self, session: requests.Session, at: int, name: str, *, waits: bool
    ) -> requests.Response | None:
        """Upload a file; return the reply, None without one."""
        try:
            return session.post(
                f"{self.servers[at].url}/api/v1/ingest?library=papers&wait={str(waits).lower()}",
                files={"file": (f"{name}.txt", f"{name} is a walrus that whistles.".encode())},
                timeout=TIMEOUT_S,
            )
        except requests.RequestException:
            return None

    def _replace_and_delete(self, session: requests.Session, at: int, name: str) -> None:
        """Send a document again, wait for nothing, and delete it.

        The text is the same: what is found of it is found by the same word.
        """
        self.acknowledged.remove(name)
        self._send(session, at, name, waits=False)
        try:
            self.servers[at].client.delete("papers", f"{name}.txt")
        except DocuMindError:
            return  # it may be gone or not
        self.deleted.append(name)

    def round(self, number: int) -> None:
        """Wait for progress, then kill a server or a worker, or end all connections."""
        wanted = len(self.acknowledged) + EACH_ROUND
        while len(self.acknowledged) < wanted:
            self.stop.wait(WAIT_S)
        turn, kind = divmod(number, 3)
        if kind == 0:
            server = self.servers[turn % len(self.servers)]
            server.kill()
            self.server_kills += 1
            server.start()
            server.wait_ready()
        elif kind == 1:
            worker = self.workers[turn % len(self.workers)]
            if turn % 2:
                worker.process.send_signal(signal.SIGTERM)
                worker.process.wait(TIMEOUT_S)
            worker.kill()
            self.worker_kills += 1
            worker.start()
        else:
            self.cut_connections += int(self.database.run(_CUT))
            self.cuts += 1

    def run(self, kills: int) -> None:
        """Kill so many times under an upload through each server."""
        writers = [
            threading.Thread(target=self.upload, args=(at,), daemon=True)
            for at in range(len(self.servers))
        ]
        for writer in writers:
            writer.start()
        try:
            for number in range(kills):
                self.round(number)
        finally:
            self.stop.set()
            for writer in writers:
                writer.join()

    def settle(self) -> None:
        """Wait until every accepted upload has ended, and count those that failed.

        A job that is forgotten by now has ended; what it brought is looked for in any case.
        """
        client = self.servers[0].client
        for job_id in self.accepted.values():
            with suppress(NotFound):
                self.failed += client.follow(job_id)["state"] != "done"

    def returned(self) -> list[str]:
        """Return deleted documents that a server finds."""
        return [name for one in self.servers for name in self.deleted if _finds(one, name)]

    def lost(self) -> list[str]:
        """Return acknowledged and accepted uploads that a server does not find by their words."""
        return [
            name
            for server in self.servers
            for name in (*self.acknowledged, *self.accepted)
            if not _finds(server, name)
        ]


def _finds(server: Served, name: str) -> bool:
    hits = str(server.client.search(quote(name), "papers", limit=5)["hits"])
    return re.search(rf"\b{name}\b", hits) is not None


def campaign(folder: Path, kills: int) -> tuple[Campaign, list[str], list[str]]:
    """Start all, kill, and return what was done, what was lost and what came back."""
    engine = DoubleProcess(folder / "engine")
    with running_server() as database:
        engine.start()
        settings = {
            "DATABASE_URL": database.url(), "SEARCH_URL": engine.url,
            "EMBEDDING_PROVIDER": "minilm", "RATE_LIMIT_PER_MINUTE": "0",
        }  # fmt: skip
        servers = [
            Served(data_of(folder, f"server-{number}"), **settings, JOB_LANES="none")
            for number in (1, 2)
        ]
        workers = [
            Working(data_of(folder, f"worker-{number}"), **settings, LOG_LEVEL="INFO")
            for number in (1, 2)
        ]
        try:
            for process in (*workers, *servers):
                process.start()
            for server in servers:
                server.wait_ready()
            for worker in workers:
                worker.wait_said("DocuMind works")
            done = Campaign(servers, workers, database)
            done.run(kills)
            done.settle()
            return done, done.lost(), done.returned()
        finally:
            for process in (*servers, *workers):
                process.close()
            engine.kill()


def main() -> int:
    """Run the campaign and write the report; return 1 if an upload was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    kills = parser.parse_args().kills
    with tempfile.TemporaryDirectory(prefix="documind-kills-") as folder:
        done, lost, returned = campaign(Path(folder), kills)
    print(*(f"lost: {name}" for name in lost), *(f"back: {name}" for name in returned), sep="\n")
    return write(
        "shared_kills",
        "Kills of servers that share one library",
        [
            "Two servers that run no jobs, two workers, one PostgreSQL, one double of Qdrant (the"
            " engine on one node, no replication). Uploads",
            "go through both servers; every other one waits until a worker has done it, and each kill"
            f" came after {EACH_ROUND} more of those were acknowledged. A file that is refused is not"
            " sent again.",
        ],
        [
            Line("acknowledged or accepted uploads that a server does not find", len(lost), 0, ""),
            Line("deleted documents that a server finds", len(returned), 0, ""),
            Line("accepted uploads whose job failed", done.failed, 0, ""),
            Line(
                "kills", done.server_kills + done.worker_kills + done.cuts, kills, "", at_most=False
            ),
        ],
        {
            "acknowledged uploads, waited for": len(done.acknowledged),
            "accepted uploads, not waited for": len(done.accepted),
            "deletions while a new revision waited": len(done.deleted),
            "refused or broken uploads": done.refused,
            "kills of a server": done.server_kills,
            "kills of a worker": done.worker_kills,
            "times that every connection to PostgreSQL was ended": done.cuts,
            "connections ended": done.cut_connections,
        },
        f"python -m evaluation.campaigns.shared_kills --kills {kills}",
    )


if __name__ == "__main__":
    raise SystemExit(main())
