"""Kill, freeze and cut off what serves one library during uploads; nothing acknowledged is lost.

Run: `.venv-shared/bin/python -m evaluation.campaigns.shared_kills --kills 60`

Two servers that run no jobs and two workers are processes of their own on one real PostgreSQL and
one double of Qdrant, which is the engine on one node; or on a cluster of your own on this machine:
`--search-url http://127.0.0.1:6333,http://127.0.0.1:6343 --node-pids 4711,4712 --replicas 2`, whose
collections of ours it removes first and whose nodes it freezes.

Each disturbance waits until the round has acknowledged uploads, so no round is void, and lasts some
seconds at most. They come in turn: SIGKILL of a server, SIGKILL or SIGTERM of a worker, the end of
every database connection, a worker frozen by SIGSTOP, a node of the engine frozen, the engine
killed, PostgreSQL stopped at once. Every other upload is not waited for: it is acknowledged when it
is accepted. Now and then a document gets a new revision that nobody waits for and is deleted at
once: it must not come back. It is no power cut: the page cache survives.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

import requests

from app.core.errors import DocuMindError, NotFound
from app.shared.qdrant import SearchEngine
from evaluation.lib.reports import Line, options, write
from evaluation.lib.served import Served
from tests.fakes.postgres_server import PostgresServer, running_server
from tests.shared.engines import DoubleProcess, Working, several

DELETED_EACH = 6
"""Of so many uploads through a server one document is deleted."""
EACH_ROUND = 3
"""Uploads that a round has acknowledged before it kills."""
TIMEOUT_S = 60
FROZEN_S = 8
"""How long a process is frozen, or PostgreSQL away."""
ROUND_S = 180
"""How long a round waits for progress; without it the round counts as stuck."""
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
    engine: DoubleProcess | None
    """None where the engine is not ours."""
    nodes: Sequence[int]
    """Processes of the engine that may be frozen."""
    acknowledged: list[str] = field(default_factory=list)
    """Names of uploads that were waited for and answered as stored."""
    accepted: dict[str, str] = field(default_factory=dict)
    """Job ids of uploads that nobody waited for, by name."""
    deleted: list[str] = field(default_factory=list)
    """Names whose deletion was acknowledged while a new revision waited."""
    failed: int = 0
    """Accepted uploads whose job ended otherwise than done."""
    refused: int = 0
    stuck: int = 0
    """Rounds that acknowledged too little in ROUND_S."""
    done: Counter[str] = field(default_factory=Counter)
    """How often each thing was done."""
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
        """Wait for progress, then do the next thing of the list."""
        wanted, left_s = len(self.acknowledged) + EACH_ROUND, float(ROUND_S)
        while len(self.acknowledged) < wanted and left_s > 0:
            self.stop.wait(WAIT_S)
            left_s -= WAIT_S
        self.stuck += left_s <= 0
        kinds: list[Callable[[int], str]] = [
            self._kill_server, self._end_worker, self._cut, self._freeze_worker, self._stop_database,
        ]  # fmt: skip
        kinds += [self._freeze_node] if self.engine or self.nodes else []
        kinds += [self._kill_engine] if self.engine else []
        turn, kind = divmod(number, len(kinds))
        self.done[kinds[kind](turn)] += 1

    def _kill_server(self, turn: int) -> str:
        server = self.servers[turn % len(self.servers)]
        server.kill()
        server.start()
        server.wait_ready()
        return "kills of a server"

    def _end_worker(self, turn: int) -> str:
        worker = self.workers[turn % len(self.workers)]
        if turn % 2:
            worker.process.send_signal(signal.SIGTERM)
            worker.process.wait(TIMEOUT_S)
        worker.kill()
        worker.start()
        return "kills of a worker"

    def _cut(self, turn: int) -> str:  # noqa: ARG002  # as the others
        self.cut_connections += int(self.database.run(_CUT))
        return "times that every connection to PostgreSQL was ended"

    def _freeze_worker(self, turn: int) -> str:
        self._freeze(self.workers[turn % len(self.workers)].process.pid)
        return "workers frozen"

    def _freeze_node(self, turn: int) -> str:
        nodes = [self.engine.pid] if self.engine else self.nodes
        self._freeze(nodes[turn % len(nodes)])
        return "nodes of the engine frozen"

    def _kill_engine(self, turn: int) -> str:  # noqa: ARG002  # as the others
        assert self.engine is not None
        self.engine.kill()
        self.engine.start()
        return "kills of the engine"

    def _stop_database(self, turn: int) -> str:  # noqa: ARG002  # as the others
        self.database.stop(kill=True)
        self.stop.wait(FROZEN_S)
        self.database.start()
        return "times that PostgreSQL was stopped at once"

    def _freeze(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        try:
            self.stop.wait(FROZEN_S)
        finally:
            os.kill(pid, signal.SIGCONT)

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
        kept = (*self.acknowledged, *self.accepted)
        return [name for one in self.servers for name in kept if not _finds(one, name)]


def _finds(server: Served, name: str) -> bool:
    hits = str(server.client.search(quote(name), "papers", limit=5)["hits"])
    return re.search(rf"\b{name}\b", hits) is not None


def campaign(
    folder: Path, kills: int, search_url: str = "", nodes: Sequence[int] = (), replicas: int = 1
) -> tuple[Campaign, list[str], list[str]]:
    """Start all, disturb so often, and return what was done, what was lost and what came back.

    `search_url` names nodes of a running engine, empty for a double of our own; `nodes` are its
    processes that may be frozen, and `replicas` the copies of every point.
    """
    engine = None if search_url else DoubleProcess(folder / "engine")
    with running_server() as database:
        if engine is not None:
            engine.start()
        else:
            running = SearchEngine(search_url)
            for name in running.collections():
                running.drop(name)
            running.close()
        settings = {
            "DATABASE_URL": database.url(), "SEARCH_URL": engine.url if engine else search_url,
            "SEARCH_REPLICAS": str(replicas), "EMBEDDING_PROVIDER": "minilm", "RATE_LIMIT_PER_MINUTE": "0",
        }  # fmt: skip
        try:
            with several(folder, 2, 2, **settings) as (servers, workers):
                done = Campaign(servers, workers, database, engine, nodes)
                done.run(kills)
                done.settle()
                return done, done.lost(), done.returned()
        finally:
            if engine is not None:
                engine.kill()


def main() -> int:
    given = options(
        __doc__,
        kills=(50, "disturbances"),
        search_url=("", "nodes of a running engine, with commas"),
        node_pids=("", "its processes, to freeze, with commas"),
        replicas=(1, "copies of every point"),
    )
    urls = filter(None, given.search_url.split(","))
    if any(urlsplit(url).hostname != "127.0.0.1" for url in urls):
        print("--search-url: only nodes on 127.0.0.1, whose collections are removed")
        return 2
    nodes = [int(pid) for pid in given.node_pids.split(",") if pid]
    with tempfile.TemporaryDirectory(prefix="documind-kills-") as folder:
        done, lost, returned = campaign(
            Path(folder), given.kills, given.search_url, nodes, given.replicas
        )
    print(*(f"lost: {name}" for name in lost), *(f"back: {name}" for name in returned), sep="\n")
    engine = (
        f"Qdrant at {given.search_url}, {given.replicas} copies"
        if given.search_url
        else "one double of Qdrant (the engine on one node, no replication)"
    )
    return write(
        "shared_kills",
        "Kills and freezes of what serves one library",
        [
            f"Two servers that run no jobs, two workers, one PostgreSQL, {engine}. Uploads go through",
            "both servers; every other one waits until a worker has done it, and each disturbance came"
            f" after {EACH_ROUND} more of those were acknowledged. A frozen process is stopped for"
            f" {FROZEN_S} s. A file that is refused is not sent again.",
        ],
        [
            Line("acknowledged or accepted uploads that a server does not find", len(lost)),
            Line("deleted documents that a server finds", len(returned)),
            Line("accepted uploads whose job failed", done.failed),
            Line("rounds without progress in three minutes", done.stuck),
            Line("disturbances", done.done.total(), given.kills, at_most=False),
        ],
        {
            "acknowledged uploads, waited for": len(done.acknowledged),
            "accepted uploads, not waited for": len(done.accepted),
            "deletions while a new revision waited": len(done.deleted),
            "refused or broken uploads": done.refused,
            **done.done,
            "connections ended": done.cut_connections,
        },
        f"python -m evaluation.campaigns.shared_kills --kills {given.kills}",
    )


if __name__ == "__main__":
    raise SystemExit(main())
