"""Kill the server at random under load; write evaluation/reports/crash.{json,md}.

make crash                                                    # 300 kills
python -m evaluation.campaigns.crash --dir D --kills 300 --minutes 5    # a part of it; the same
command goes on
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from app.client import DocuMindClient, FileToSend, Json, Wait
from app.core.errors import Busy, DocuMindError, NotFound, ProviderUnreachable
from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.campaign import Clients, Killer, Step, deadline, working_in
from evaluation.lib.reports import PARTS, Line, options, quantile, say, write
from evaluation.lib.served import Served
from evaluation.lib.vector_checks import differences

Level = Literal["accepted", "text", "vectors"]
"""How far a write was acknowledged: 202 (its bytes are kept, the job will run), found by words,
or found by vectors too."""

ABSENT = 0
"""The revision of a document that is not there."""

_FILLER = (
    "Glaciers carve valleys slowly while rivers carry gravel toward the warm delta.",
    "Sailors mend torn canvas before the autumn gales reach the narrow harbour.",
    "Beekeepers watch clover meadows because early nectar decides the honey harvest.",
    "Printers once cast lead letters by hand and set each column in mirrored lines.",
    "Astronomers compare faint spectra to learn how quickly distant clusters recede.",
    "Bakers fold cold butter into dough so that thin layers rise apart in the oven.",
)
_LETTERS = "bcdfghjklmnpqrtvwz"
"""No vowels and no s: the stemmer leaves such a word alone."""


def marker(key: str, revision: int, part: int = 0) -> str:
    """Return a word that only this part of this revision of this document holds."""
    rng = random.Random(f"{key}/{revision}/{part}")
    return "".join(rng.choices(_LETTERS, k=12))


def text_of(key: str, revision: int) -> str:
    """Return a revision's text; every fifth document has several chunks."""
    rng = random.Random(f"{key}/{revision}")
    parts = 6 if rng.random() < 0.2 else 1
    paragraphs = [
        f"{marker(key, revision, part)} stands first here. "
        + " ".join(rng.sample(_FILLER, 6 if parts > 1 else 2))
        for part in range(parts)
    ]
    return "\n\n".join(paragraphs)


@dataclass
class Promises:
    """Revisions of documents that must be found, or may be; one writer per key; thread-safe."""

    settled: dict[str, int] = field(default_factory=dict)
    """The revision that must be there; ABSENT when the document must be gone."""
    with_vectors: set[str] = field(default_factory=set)
    """Documents whose vectors were acknowledged too."""
    possible: dict[str, list[int]] = field(default_factory=dict)
    """Documents with an operation that was not acknowledged, or accepted and not done: the
    revisions they may end up with."""
    in_flight: set[str] = field(default_factory=set)
    """Documents with a request that has no answer yet."""
    last_revision: dict[str, int] = field(default_factory=dict)
    acknowledged: Counter[str] = field(default_factory=Counter)
    """How many operations were acknowledged, by how far."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_revision(self, key: str) -> int:
        """Return an unused revision number, and note that it may appear."""
        with self._lock:
            revision = self.last_revision.get(key, 0) + 1
            self.last_revision[key] = revision
            self._begin(key, revision)
            return revision

    def begin_delete(self, key: str) -> None:
        with self._lock:
            self._begin(key, ABSENT)

    def _begin(self, key: str, revision: int) -> None:
        before = self.possible.get(key, [self.settled.get(key, ABSENT)])
        self.possible[key] = [*before, revision]
        self.in_flight.add(key)

    def acknowledge(self, key: str, revision: int, level: Level) -> None:
        with self._lock:
            self.in_flight.discard(key)
            self.acknowledged["deleted" if revision == ABSENT else level] += 1
            if level == "accepted":
                self.possible[key] = [revision]
                return
            self._settle(key, revision, vectors=level == "vectors")

    def _settle(self, key: str, revision: int, *, vectors: bool) -> None:
        self.possible.pop(key, None)
        self.settled[key] = revision
        self.with_vectors.discard(key)
        if vectors:
            self.with_vectors.add(key)

    def observe(self, key: str, revision: int) -> None:
        """Record the outcome of an unanswered operation; from now on it has to stay."""
        with self._lock:
            self.in_flight.discard(key)
            self._settle(key, revision, vectors=False)

    def quiet(self, prefix: str) -> list[str]:
        """Return the documents of a client that are there and have nothing under way."""
        with self._lock:
            return [
                key
                for key, revision in self.settled.items()
                if revision != ABSENT and key not in self.possible and key.startswith(prefix)
            ]

    def save(self, path: Path) -> None:
        kept = {name: getattr(self, name) for name in _KEPT}
        path.write_text(json.dumps(kept | {"with_vectors": sorted(self.with_vectors)}), "utf-8")

    @classmethod
    def load(cls, path: Path) -> Promises:
        found = json.loads(path.read_text("utf-8"))
        found |= {"with_vectors": set(found["with_vectors"])}
        return cls(**found | {"acknowledged": Counter(found["acknowledged"])})


_KEPT = ("settled", "possible", "last_revision", "acknowledged")
LIBRARY = "papers"

_WAITS: Mapping[Wait, Level] = {"text": "text", "true": "vectors", "false": "accepted"}
_WAIT_SHARES = (0.5, 0.3, 0.2)
"""How uploaders wait, what they are promised then, and how often they do so."""

_DELETE, _REPLACE, _DELETE_ACCEPTED = 0.1, 0.3, 0.5
"""Shares of deletions among requests, of replacements among uploaded files, and of deletions among
replacements that were only accepted."""

_FILES = (1, 1, 1, 2, 3, 5)
"""How many files an upload may hold."""


def filename(key: str) -> str:
    return f"{key}.txt"


def hits_of(client: DocuMindClient, word: str) -> list[Json]:
    """Return the passages that a search by words finds and that hold the word."""
    hits = client.search(word, LIBRARY, fusion="lexical", limit=10)["hits"]
    return [hit for hit in hits if word in str(hit["text"])]


class Load:
    """Uploaders and a searcher against one run of the server."""

    def __init__(self, url: str, promises: Promises, folder: Path, *, seed: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._promises = promises
        self._folder = folder
        self._begun = threading.Event()
        self.wrong: list[str] = []
        """What clients saw that they should not have."""
        self.touched: set[str] = set()
        """Documents that were written or deleted, or may have been."""
        self.searches = 0
        steps: dict[str, Step[DocuMindClient]] = {
            **dict.fromkeys(("u0", "u1", "u2"), self._change),
            "s0": self._search,
        }
        guarded = {name: self._guarded(step) for name, step in steps.items()}
        self.clients = Clients(lambda: DocuMindClient(url, timeout_s=60), guarded, seed)

    def run(self, seconds: float) -> None:
        """Let them go, for so long after the first upload is on its way."""
        self.clients.start()
        self._begun.wait()
        time.sleep(seconds)

    def _guarded(self, step: Step[DocuMindClient]) -> Step[DocuMindClient]:
        def guarded(client: DocuMindClient, name: str, rng: random.Random) -> None:
            try:
                step(client, name, rng)
            except ProviderUnreachable as error:  # the server was killed
                raise StopIteration from error
            except Busy:
                time.sleep(0.05)
            except DocuMindError as error:
                self.wrong.append(f"{name}: {error.code}: {error.message}")
                raise StopIteration from error

        return guarded

    def _change(self, client: DocuMindClient, name: str, rng: random.Random) -> None:
        quiet = self._promises.quiet(name.partition("n")[0])
        if quiet and rng.random() < _DELETE:
            self._delete(client, rng.choice(quiet))
            return
        files = rng.choice(_FILES)
        replaced = rng.sample(
            quiet, sum(rng.random() < _REPLACE for _ in range(min(files, len(quiet))))
        )
        new = [f"{name}-{rng.randrange(1 << 48):012x}" for _ in range(files - len(replaced))]
        keys = [*replaced, *new]
        revisions = {key: self._promises.next_revision(key) for key in keys}
        self.touched.update(keys)
        paths = [self._folder / filename(key) for key in keys]
        for key, path in zip(keys, paths, strict=True):
            path.write_text(text_of(key, revisions[key]), "utf-8")
        wait = rng.choices(list(_WAITS), _WAIT_SHARES)[0]
        level = _WAITS[wait]
        self._begun.set()
        client.ingest([FileToSend(path) for path in paths], LIBRARY, wait=wait)
        for key, path in zip(keys, paths, strict=True):
            self._promises.acknowledge(key, revisions[key], level)
            path.unlink()
        if level == "accepted":
            for key in keys:
                there = self._promises.settled.get(key, ABSENT) != ABSENT
                if there and rng.random() < _DELETE_ACCEPTED:
                    self._delete(client, key)  # and with it the upload that waits

    def _delete(self, client: DocuMindClient, key: str) -> None:
        self._promises.begin_delete(key)
        self.touched.add(key)
        self._begun.set()
        client.delete(LIBRARY, filename(key))
        self._promises.acknowledge(key, ABSENT, "text")

    def _search(self, client: DocuMindClient, _: str, rng: random.Random) -> None:
        """Look for a document that is there, by its own word, while others change theirs."""
        quiet = self._promises.quiet("u")
        if not quiet:
            time.sleep(0.01)
            return
        key = rng.choice(quiet)
        revision = self._promises.settled[key]
        found = hits_of(client, marker(key, revision))
        self.searches += 1
        unchanged = self._promises.settled[key] == revision and key not in self._promises.possible
        if len(found) != 1 and unchanged:
            what = f"the word of {key} revision {revision} found {len(found)} passages"
            self.wrong.append(f"a search for {what} while others wrote")


SETTLE_S = 600.0
"""Longest wait for accepted jobs after a restart: they are seconds of work, on a busy machine
minutes."""


def check_acknowledged(
    client: DocuMindClient, promises: Promises, keys: Iterable[str]
) -> list[str]:
    """Return what is wrong with documents without an open request right after a restart."""
    broken: list[str] = []
    for key in keys:
        revision = promises.settled.get(key, ABSENT)
        if key in promises.possible:
            continue
        if revision == ABSENT:
            broken += _check_absent(client, key, promises.last_revision[key])
        else:
            broken += check_present(client, key, revision, vectors=key in promises.with_vectors)
    return broken


def check_present(client: DocuMindClient, key: str, revision: int, *, vectors: bool) -> list[str]:
    """Return what is wrong with a document that must be there in this revision."""
    wanted, word = text_of(key, revision), marker(key, revision)
    try:
        document = client.document(LIBRARY, filename(key))
        text = client.text(LIBRARY, str(document["doc_id"]))["text"]
    except NotFound:
        return [f"lost: {key} revision {revision} is not there"]
    broken: list[str] = []
    if text != wanted:
        broken.append(f"lost: {key} revision {revision} has another text: {str(text)[:60]!r}")
    found = hits_of(client, word)
    if len(found) != 1 or found[0]["doc_id"] != document["doc_id"]:
        broken.append(f"lexical: {word!r} of {key} revision {revision} finds {len(found)} passages")
    if vectors and document["embedded"] != document["chunks"]:
        broken.append(f"vectors: {key} has {document['embedded']} of {document['chunks']}")
    return broken


def _check_absent(client: DocuMindClient, key: str, last_revision: int) -> list[str]:
    broken: list[str] = []
    try:
        client.document(LIBRARY, filename(key))
        broken.append(f"phantom: {key} was deleted and is there")
    except NotFound:
        pass
    broken += [
        f"phantom: {key} was deleted and revision {revision} is found by its word"
        for revision in range(max(1, last_revision - 1), last_revision + 1)
        if hits_of(client, marker(key, revision))
    ]
    return broken


def settle(client: DocuMindClient) -> float:
    """Wait until no job is queued or running; return the seconds it took.

    Raises:
        TimeoutError: They do not end.
    """
    begun = time.perf_counter()
    while any(job["state"] in ("queued", "running") for job in client.jobs(50)["jobs"]):
        if time.perf_counter() - begun > SETTLE_S:
            raise TimeoutError(f"jobs do not end: {client.jobs(50)}")
        time.sleep(0.02)
    return time.perf_counter() - begun


def observe(client: DocuMindClient, promises: Promises) -> tuple[list[str], Counter[str]]:
    """Compare the documents with the promises; resolve unanswered requests.

    Returns:
        What is wrong, and how many unanswered requests came to `done` or `nothing`.
    """
    listed = list(client.documents(LIBRARY))
    held = Counter(str(document["source_key"]) for document in listed)
    broken = [
        f"duplicate: {name} is listed {count} times" for name, count in held.items() if count > 1
    ]
    became: Counter[str] = Counter()
    for key, revisions in list(promises.possible.items()):
        text = None
        if filename(key) in held:
            doc_id = str(client.document(LIBRARY, filename(key))["doc_id"])
            text = client.text(LIBRARY, doc_id)["text"]
        now = next((n for n in revisions if text == (text_of(key, n) if n else None)), None)
        if now is None:
            kind = "accepted" if len(revisions) == 1 else "lost"
            broken.append(f"{kind}: {key} may be at {revisions}, and is {str(text)[:60]!r}")
            now = ABSENT
        if len(revisions) > 1:
            became["done" if now == revisions[-1] else "nothing"] += 1
        promises.observe(key, now)
        if now != ABSENT:
            broken += check_present(client, key, now, vectors=False)
    wanted_names = {
        filename(key) for key, revision in promises.settled.items() if revision != ABSENT
    }
    broken += [f"phantom: {name} is listed" for name in held.keys() - wanted_names]
    broken += [f"lost: {name} is not listed" for name in wanted_names - held.keys()]
    return broken, became


def check_everything(client: DocuMindClient, promises: Promises) -> tuple[list[str], int]:
    """Check every document and search every chunk; return what is wrong and how many."""
    broken = check_acknowledged(client, promises, list(promises.settled))
    asked = 0
    for document in client.documents(LIBRARY):
        doc_id, name = str(document["doc_id"]), document["filename"]
        if document["embedded"] != document["chunks"]:
            broken.append(f"vectors: {name} has {document['embedded']} of {document['chunks']}")
        found = client.get(f"/api/v1/documents/{doc_id}/chunks", {"library": LIBRARY})
        for chunk in found["chunks"]:
            text = str(chunk["text"])
            hits = client.search(text, LIBRARY, fusion="dense", limit=3)["hits"]
            asked += 1
            if not hits or (hits[0]["doc_id"] != doc_id and hits[0]["text"] != text):
                what = f"chunk {chunk['chunk_index']} of {name}"
                broken.append(f"vectors: {what} is not the nearest to its own text")
    return broken, asked


def check_files(data_dir: Path) -> tuple[list[str], int]:
    """Check a stopped server's data directory: `fsck`, then every vector in Chroma.

    Returns:
        What is wrong, and how many vectors were asked for.
    """
    options = IndexOptions(data_dir, data_dir / "chroma")
    with IndexStore(options, vector_store="off", heal=False) as store:
        broken = [
            f"fsck: {fault.code}: {fault.detail}"
            for fault in store.fsck.run().faults
            if fault.code != "leftovers"
        ]
    library = Library(LIBRARY)
    with IndexStore(options, vector_store="foreground") as store:
        broken += [f"vectors: {line}" for line in differences(store, library)]
        return broken, store.catalog.counts(library).embedded


WHILE_STARTING = 0.1
"""Share of kills that hit a server before it is ready."""

EARLIER = 10
"""Documents of earlier runs looked at after every restart; all of them are at the end."""


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

        A server is killed at a random moment up to `longest_load_s` after the first upload.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.data_dir = directory / "data"
        self._seed = seed
        self._longest_load_s = longest_load_s
        self._state = directory / "promises.json"
        self._tally_path = directory / "tally.json"
        self._fresh: set[str] = set()
        """Documents that were touched before the last kill."""
        self.promises, self.tally = Promises(), Tally()
        if self._state.exists():
            self.promises = Promises.load(self._state)
            self.tally = Tally(**json.loads(self._tally_path.read_text("utf-8")))
        self._killer = Killer(self.data_dir, settings or {}, self.tally.broken)

    def run(self, kills: int, *, until: float = float("inf")) -> None:
        """Continue until `kills` in total, or until a moment of `time.monotonic`."""
        while self.tally.kills < kills and time.monotonic() < until:
            try:
                self._round()
            finally:
                self._save()
            if self.tally.kills % 10 == 0:
                acknowledged = sum(self.promises.acknowledged.values())
                say(
                    f"{self.tally.kills} kills, {self.tally.kills_in_open_writes} in open writes,"
                    f" {acknowledged} acknowledged, {len(self.tally.broken)} broken"
                )

    def finish(self) -> tuple[int, int]:
        """Start once more, check everything; return chunks checked over HTTP and in Chroma."""
        with closing(self._ready()) as server:
            self._check_restart(server, list(self.promises.settled))
            broken, asked = check_everything(server.client, self.promises)
        self.tally.broken += broken
        broken, vectors = check_files(self.data_dir)
        self.tally.broken += broken
        # Stores moved aside for a fault, not those that a purge rebuilt.
        self.tally.stores_remade = sum(
            "made again from the catalog" in line and "a purge" not in line
            for line in self._killer.log().splitlines()
        )
        self._save()
        return asked, vectors

    def _round(self) -> None:
        """Start the server, check it, let clients use it, kill it."""
        rng = random.Random(f"{self._seed}/{self.tally.kills}")
        if rng.random() < WHILE_STARTING and self.tally.ready_s:
            server = self._killer.started(ready=False)
            time.sleep(rng.uniform(0, self.tally.ready_s[-1]))
            self._kill(server)
            self.tally.kills_while_starting += 1
            return
        server = self._ready()
        earlier = sorted(self.promises.settled)
        seed = f"{self._seed}/{self.tally.kills}"
        load = Load(server.url, self.promises, self._directory / "files", seed=seed)
        try:
            self._check_restart(
                server, [*self._fresh, *rng.sample(earlier, min(EARLIER, len(earlier)))]
            )
            load.run(rng.uniform(0, self._longest_load_s))
        finally:
            self._kill(server)
        load.clients.join()
        self._fresh = load.touched
        self.tally.searches += load.searches
        self.tally.broken += load.wrong
        self.tally.open_requests += len(self.promises.in_flight)
        self.tally.kills_in_open_writes += bool(self.promises.in_flight)

    def _ready(self) -> Served:
        server = self._killer.started(ready=True)
        if self.tally.kills:
            self.tally.ready_s.append(round(server.start_s, 3))
        return server

    def _kill(self, server: Served) -> None:
        self._killer.kill(server)
        self.tally.kills += 1

    def _check_restart(self, server: Served, keys: list[str]) -> None:
        """Check what must exist, await accepted jobs, compare the list, learn the rest.

        Raises:
            SystemExit: The server does not answer any more.
        """
        tally = self.tally
        try:
            tally.broken += check_acknowledged(server.client, self.promises, keys)
            tally.settled_s.append(round(settle(server.client), 3))
            broken, became = observe(server.client, self.promises)
        except ProviderUnreachable as error:
            with suppress(subprocess.TimeoutExpired):
                server.process.wait(10)
            status = server.process.poll()
            ended = "it lives" if status is None else f"it ended with {status}"
            tally.broken.append(
                f"the server stopped answering while it was checked, and {ended}:"
                f" {self._killer.log()[-2000:]}"
            )
            raise SystemExit(tally.broken[-1]) from error
        tally.broken += broken
        tally.became = dict(Counter(tally.became) + became)

    def _save(self) -> None:
        self.promises.save(self._state)
        self._tally_path.write_text(json.dumps(asdict(self.tally)), "utf-8")


KILLS = 300
OPEN_SHARE = 0.7
ACKNOWLEDGED = 1_000
LONGEST_LOAD_S = 2.0


def main() -> int:
    args = options(__doc__, **PARTS, kills=(KILLS, "in all"), seed=(11, "of all choices"))
    with working_in(args.dir, "crash") as folder:
        campaign = Campaign(folder, seed=args.seed, longest_load_s=LONGEST_LOAD_S)
        campaign.run(args.kills, until=deadline(args.minutes))
        if campaign.tally.kills < args.kills:
            say(f"{campaign.tally.kills} of {args.kills} kills so far")
            return 0
        asked, vectors = campaign.finish()
        return report(campaign.tally, campaign.promises, asked, vectors)


REMARKS = (
    "A real server, three clients that upload, replace and delete, one that searches. SIGKILL at a"
    " random moment, restart, check: every acknowledged document has its text and is found by its"
    " own word at once; accepted ones follow; nothing deleted is back, nothing is there twice. At"
    " the end every chunk is asked for by its own text over HTTP, `fsck` runs, and Chroma is asked"
    " for every vector. Without a broken promise in n kills at most 3 / n of them break one (95 %).",
)


def report(tally: Tally, promises: Promises, asked: int, vectors: int) -> int:
    """Write the report; return 0 if promises held and the campaign was large enough."""
    acknowledged = promises.acknowledged["text"] + promises.acknowledged["vectors"]
    live = sum(revision != ABSENT for revision in promises.settled.values())
    share = tally.kills_in_open_writes / tally.kills
    lines = [
        Line("broken promises", len(tally.broken)),
        Line("kills", tally.kills, KILLS, at_most=False),
        Line("share of kills in open writes", share, OPEN_SHARE, at_most=False),
        Line("documents acknowledged", acknowledged, ACKNOWLEDGED, at_most=False),
    ]
    figures = {
        "kills": tally.kills,
        "kills_in_open_writes": tally.kills_in_open_writes,
        "kills_while_starting": tally.kills_while_starting,
        "documents_acknowledged_with_vectors": promises.acknowledged["vectors"],
        "documents_accepted": promises.acknowledged["accepted"],
        "deletions_acknowledged": promises.acknowledged["deleted"],
        "broken_promises": len(tally.broken),
        "upper_95_bound_per_kill": 3 / tally.kills,
        "unanswered_changes": tally.open_requests,
        "unanswered_done_after_all": tally.became.get("done", 0),
        "unanswered_without_trace": tally.became.get("nothing", 0),
        "searches_under_load": tally.searches,
        "documents_at_the_end": live,
        "chunks_asked_over_http": asked,
        "vectors_asked_of_chroma": vectors,
        "vector_stores_remade": tally.stores_remade,
        "ready_s_p50": quantile(tally.ready_s, 0.5),
        "ready_s_max": max(tally.ready_s),
        "jobs_done_s_p50": quantile(tally.settled_s, 0.5),
        "jobs_done_s_max": max(tally.settled_s),
    }
    remarks = [*REMARKS, *(f"- broken: {one}" for one in tally.broken[:100])]
    return write("crash", "Random kills under load", remarks, lines, figures, "make crash")


if __name__ == "__main__":
    sys.exit(main())
