"""Kill, freeze and cut off what serves one library during uploads; nothing acknowledged is lost.

Run: `.venv-shared/bin/python -m evaluation.campaigns.shared_kills --kills 60`

Two servers that run no jobs and two workers are processes of their own on one real PostgreSQL and
one double of Qdrant, which is the engine on one node; or on a cluster of your own on this machine:
`--search-url http://127.0.0.1:6333,http://127.0.0.1:6343 --node-pids 4711,4712 --replicas 2`, whose
collections of ours it removes first and whose nodes it freezes.

Each disturbance waits until the round has acknowledged uploads, so no round is void, and lasts some
seconds at most. All come once in a random order, then again in another: SIGKILL of a server,
SIGKILL or SIGTERM of a worker, the end of every database connection, a worker frozen by SIGSTOP, a
node of the engine frozen, the engine killed, PostgreSQL stopped at once, half of the points removed
from the engine before a server starts whose connections are ended while it fills the engine, and a
restore: a dump is taken, uploads and deletions go on, every process is killed, the dump is put
back. What came after the dump is then gone, and what was deleted after it is there again. Every other upload is not waited for: it is acknowledged when it
is accepted. Now and then a document gets a new revision that nobody waits for and is deleted at
once: it must not come back. It is no power cut: the page cache survives.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import quote, urlsplit

import requests

from app.core.errors import DocuMindError, NotFound
from app.shared.qdrant import SearchEngine
from app.storage.catalog.epochs import Epoch, epoch_in
from app.storage.maintenance.start import SEEN_NAME
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
SETTLED_S = 180
"""How long the engine may take at the end to hold what the catalog has, and nothing without an
owner."""
SCHEMA = "library"
ROUND_S = 180
"""How long a round waits for progress; without it the round counts as stuck."""
WAIT_S = 0.02
_MARKS = f"SELECT projection FROM {SCHEMA}.watermarks WHERE projection NOT IN ('lexical', 'qdrant')"
_EPOCH = f"SELECT value FROM {SCHEMA}.meta WHERE key = 'epoch'"
_LIVE = (
    f"SELECT c.chunk_id FROM {SCHEMA}.chunks c JOIN {SCHEMA}.documents d"
    " ON d.doc = c.doc AND d.revision = c.revision WHERE d.state = 'live' AND d.library = 'papers'"
)
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
    order: Sequence[Callable[[int], str]] = ()
    """Of the disturbances that come next."""
    done: Counter[str] = field(default_factory=Counter)
    """How often each thing was done."""
    cut_connections: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    chance: Random = field(default_factory=Random)
    turns: Sequence[threading.Lock] = field(
        default_factory=lambda: [threading.Lock() for _ in "ab"]
    )
    """Each held by the writer of a server while it sends a file."""
    go: threading.Event = field(default_factory=threading.Event)
    """Cleared: no writer begins to send."""
    dumped: bool = False
    """Whether a dump waits to be put back: the uploaders delete nothing then."""

    def upload(self, at: int) -> None:
        """Upload through one server until the end; a refused file is not sent again."""
        number = 0
        with requests.Session() as session:
            session.trust_env = False
            while not self.stop.is_set():
                self.go.wait()
                with self.turns[at]:
                    number += 1
                    self._send_next(session, at, number)

    def _send_next(self, session: requests.Session, at: int, number: int) -> None:
        name, waits = f"w{at}x{number}", number % 2 == 0
        reply = self._send(session, at, name, waits=waits)
        if waits and reply is not None and reply.status_code == 201:
            self.acknowledged.append(name)
        elif not waits and reply is not None and reply.status_code == 202:
            self.accepted[name] = reply.json()["job_id"]
        else:
            self.refused += 1
            self.stop.wait(WAIT_S)
        if number % DELETED_EACH == 0 and not self.dumped:
            mine = [one for one in self.acknowledged if one.startswith(f"w{at}x")]
            if mine:
                self._replace_and_delete(session, at, mine[-1])

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Let no upload be under way in the block."""
        self.go.clear()
        try:
            with ExitStack() as held:
                for turn in self.turns:
                    held.enter_context(turn)
                yield
        finally:
            self.go.set()

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
        self._progress()
        kinds: list[Callable[[int], str]] = [
            self._kill_server, self._end_worker, self._cut, self._freeze_worker, self._stop_database,
            self._restore, self._empty_engine,
        ]  # fmt: skip
        kinds += [self._freeze_node] if self.engine or self.nodes else []
        kinds += [self._kill_engine] if self.engine else []
        turn, kind = divmod(number, len(kinds))
        if kind == 0:
            self.order = self.chance.sample(kinds, len(kinds))
        self.done[self.order[kind](turn)] += 1

    def _progress(self) -> None:
        """Wait until further uploads were acknowledged."""
        wanted, left_s = len(self.acknowledged) + EACH_ROUND, float(ROUND_S)
        while len(self.acknowledged) < wanted and left_s > 0:
            self.stop.wait(WAIT_S)
            left_s -= WAIT_S
        self.stuck += left_s <= 0

    def _restore(self, turn: int) -> str:  # noqa: ARG002  # as the others
        with self._quiet():
            dump, self.dumped = self.database.dump(SCHEMA), True
            of = epoch_in(self.database.run(_EPOCH).strip())
            kept = list(self.acknowledged), dict(self.accepted), list(self.deleted)
        self._progress()
        gone = self.chance.sample(kept[0], min(2, len(kept[0])))
        for name in gone:
            with suppress(DocuMindError):
                self.servers[0].client.delete("papers", f"{name}.txt")
        self._wait_for_epoch(of)
        with self._quiet():
            processes = (*self.workers, *self.servers)
            for process in processes:
                process.kill()
            self.database.restore(SCHEMA, dump)
            self.acknowledged[:], self.accepted, self.deleted[:] = kept
            self.dumped = False
            for process in processes:
                (Path(process.settings["DATA_DIR"]) / SEEN_NAME).unlink(missing_ok=True)
                process.start()
            for server in self.servers:
                server.wait_ready()
        return "dumps put back"

    def _wait_for_epoch(self, dumped: Epoch) -> None:
        """Wait until each collection is of an epoch that a dump does not know.

        One that is put back sooner is not told from the catalog that it replaces.
        """
        left_s = float(ROUND_S)
        with closing(SearchEngine(self.servers[0].settings["SEARCH_URL"])) as engine:
            while left_s > 0 and any(map(dumped.knows, engine.epochs().values())):
                self.stop.wait(1)
                left_s -= 1
        self.stuck += left_s <= 0

    def _empty_engine(self, turn: int) -> str:
        server = self.servers[turn % len(self.servers)]
        with self._quiet(), closing(SearchEngine(server.settings["SEARCH_URL"])) as engine:
            for name in engine.collections():
                engine.delete(name, sorted(engine.ids(name))[::2])
            server.kill()
            server.start()
            for _ in range(3):
                self.stop.wait(1)
                self._cut(turn)
            server.wait_ready()
        return "starts that fill half of the engine and are cut off"

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
        self.go.set()
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

    def left(self, search_url: str) -> list[str]:
        """Return marks and collections that nobody owns, and ids that engine and catalog differ in.

        What goes within SETTLED_S is no fault.
        """
        until_s = time.monotonic() + SETTLED_S
        with closing(SearchEngine(search_url)) as engine:
            while (found := self._left(engine)) and time.monotonic() < until_s:
                self.stop.clear()
                self.stop.wait(1)
        return found

    def _left(self, engine: SearchEngine) -> list[str]:
        marks = self.database.run(_MARKS).splitlines()
        live = set(map(int, self.database.run(_LIVE).splitlines()))
        named = engine.collections()
        serving = {engine._serving(name) for name in named}
        unserved = sorted(set(engine._made()) - serving)
        differing = [
            f"{name}: missing {sorted(live - held)[:9]}, without a chunk {sorted(held - live)[:9]}"
            for name in named
            if "papers" in name and (held := engine.ids(name)) != live
        ]
        return [*marks, *unserved, *differing]

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
    folder: Path,
    kills: int,
    search_url: str = "",
    nodes: Sequence[int] = (),
    replicas: int = 1,
    seed: int = 0,
) -> tuple[Campaign, list[str], list[str], list[str]]:
    """Start all, disturb so often; return what was done, lost, came back and is left over.

    `search_url` names nodes of a running engine, empty for a double of our own; `nodes` are its
    processes that may be frozen, and `replicas` the copies of every point. `seed` sets the order.
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
        database.run(f"CREATE SCHEMA {SCHEMA}")
        search_url = engine.url if engine else search_url
        settings = {
            "DATABASE_URL": database.url(SCHEMA), "SEARCH_URL": search_url,
            "SEARCH_REPLICAS": str(replicas), "EMBEDDING_PROVIDER": "minilm", "RATE_LIMIT_PER_MINUTE": "0",
        }  # fmt: skip
        try:
            with several(folder, 2, 2, **settings) as (servers, workers):
                done = Campaign(servers, workers, database, engine, nodes, chance=Random(seed))
                done.run(kills)
                done.settle()
                left = done.left(search_url)
                return done, done.lost(), done.returned(), left
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
        seed=(0, "of the order"),
    )
    urls = filter(None, given.search_url.split(","))
    if any(urlsplit(url).hostname != "127.0.0.1" for url in urls):
        print("--search-url: only nodes on 127.0.0.1, whose collections are removed")
        return 2
    nodes = [int(pid) for pid in given.node_pids.split(",") if pid]
    with tempfile.TemporaryDirectory(prefix="documind-kills-") as folder:
        done, lost, returned, left = campaign(
            Path(folder), given.kills, given.search_url, nodes, given.replicas, given.seed
        )
    for word, names in (("lost", lost), ("back", returned), ("left", left)):
        print(*(f"{word}: {name}" for name in names), sep="\n")
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
            Line("marks and collections without an owner, indexes that differ", len(left)),
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
        f"python -m evaluation.campaigns.shared_kills --kills {given.kills} --seed {given.seed}",
    )


if __name__ == "__main__":
    raise SystemExit(main())
