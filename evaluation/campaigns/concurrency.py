"""Run 4 uploaders, 8 searchers and 1 deleter for 3 minutes against a model.

Into evaluation/reports/concurrency.{md,json}.

make bench-concurrency
"""

from __future__ import annotations

import json
import logging
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import requests

from app.client import Json
from app.core.ids import document_id
from app.core.types import Library
from evaluation.lib.paths import ROOT, parser_of
from evaluation.lib.served import Line, Served, quantile, write

LIBRARY = Library.PAPERS


@dataclass(slots=True)
class Version:
    """One text of a document and when it was live; None: not yet or unknown."""

    key: str
    text: str
    marker: str
    sent: float
    acked: float | None = None
    ending: float | None = None
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage that the server returned."""

    doc_id: str
    start: int
    end: int
    text: str


def make_text(key: str, marker: str, rng: random.Random) -> str:
    """Return a document of a few passages, each of which holds the marker."""
    lines = [f"Item {key}", ""]
    for n in range(rng.randint(2, 5)):
        # Words of its own: passages of the same few words would be collapsed as near-duplicates,
        # and rightly.
        words = " ".join(
            "".join(rng.choices("aeioulmnrst", k=rng.randint(4, 9))) for _ in range(60)
        )
        lines += [
            f"The {marker} of shelf {n} weighs {rng.randint(2, 900)} grams. It lies next to"
            f" {words}.",
            "",
        ]
    return "\n".join(lines)


class Model:
    """All versions there ever were; thread-safe."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._by_doc: dict[str, list[Version]] = {}
        self._by_key: dict[str, Version] = {}

    def begin(self, version: Version) -> None:
        """A version is about to be sent; what it replaces is about to end."""
        with self._lock:
            before = self._by_key.get(version.key)
            if before is not None and before.ending is None:
                before.ending = version.sent
            self._by_doc.setdefault(document_id(LIBRARY, f"{version.key}.txt"), []).append(version)

    def acknowledge(self, version: Version, now: float) -> None:
        """The server has it, and no longer what it replaced."""
        with self._lock:
            version.acked = now
            before = self._by_key.get(version.key)
            if before is not None and before is not version:
                before.ended = now
            self._by_key[version.key] = version

    def ending(self, version: Version, now: float) -> None:
        """A deletion is about to be sent."""
        with self._lock:
            version.ending = now

    def ended(self, version: Version, now: float) -> None:
        """The deletion was acknowledged."""
        with self._lock:
            version.ended = now
            if self._by_key.get(version.key) is version:
                del self._by_key[version.key]

    def live(self) -> list[Version]:
        """Return what is acknowledged and not about to end."""
        with self._lock:
            return [
                version
                for version in self._by_key.values()
                if version.acked is not None and version.ending is None
            ]

    def ever(self) -> list[Version]:
        with self._lock:
            return [version for versions in self._by_doc.values() for version in versions]

    def wrong(self, shown: Sequence[Shown], began: float, ended: float) -> list[str]:
        """Return what a search between two times must not have returned."""
        found = []
        for hit in shown:
            with self._lock:
                versions = list(self._by_doc.get(hit.doc_id, ()))
            same = [
                version
                for version in versions
                if version.text[hit.start : hit.end] == hit.text and hit.text
            ]
            if not same:
                found.append(
                    f"wrong text: {hit.doc_id} {hit.start}..{hit.end} is of no revision:"
                    f" {hit.text[:60]!r}"
                )
            elif not any(
                version.sent <= ended and (version.ended is None or version.ended >= began)
                for version in same
            ):
                late = began - max(version.ended or 0.0 for version in same)
                found.append(
                    f"phantom: {same[0].marker} was gone {late:.3f} s before the search began"
                )
        return found

    def missing(
        self, version: Version, shown: Sequence[Shown], began: float, ended: float
    ) -> list[str]:
        """Return a complaint if a search had to find a version's marker and did not."""
        due = (
            version.acked is not None
            and version.acked < began
            and (version.ending is None or version.ending > ended)
        )
        if not due or any(version.marker in hit.text for hit in shown):
            return []
        seen = ", ".join(hit.text[:30] for hit in shown) or "nothing"
        return [
            f"missing: {version.marker} was acknowledged {began - (version.acked or 0.0):.3f} s"
            f" before the search; found {seen!r}"
        ]


KEPT = 4
"""Nothing is deleted while fewer documents are live."""
REPLACE, GRACE = 0.4, 0.3
"""Share of uploads that replace a document, and of deletions that are undone."""


@dataclass
class Tally:
    """Counts of what clients saw; guarded by its lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    wrong: list[str] = field(default_factory=list)
    undeclared: list[str] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def complain(self, lines: list[str]) -> None:
        """Keep what is wrong."""
        if lines:
            with self.lock:
                self.wrong.extend(lines)


class Clients:
    """The threads and what they share."""

    def __init__(
        self, url: str, *, uploaders: int, searchers: int, seed: str = "concurrency"
    ) -> None:
        """Prepare; nothing is sent before `run`."""
        self._url = url
        self.model = Model()
        self.tally = Tally()
        self._stop = threading.Event()
        declared = json.loads((ROOT / "openapi.json").read_text("utf-8"))["paths"]
        self._declared = {
            (path, method): set(operation["responses"])
            for path, methods in declared.items()
            for method, operation in methods.items()
        }
        work = [(self._upload, f"u{n}") for n in range(uploaders)] + [
            (self._search, f"s{n}") for n in range(searchers)
        ]
        work.append((self._delete, "d0"))
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(step, name, random.Random(f"{seed}/{name}")),
                name=name,
                daemon=True,
            )
            for step, name in work
        ]

    def run(self, seconds: float, at_least: int = 0) -> None:
        """Run for `seconds`, or up to 90 s more until `at_least` uploads and a deletion."""
        for thread in self._threads:
            thread.start()
        self._stop.wait(seconds)
        give_up = time.monotonic() + 90.0
        while time.monotonic() < give_up and (
            self._uploads() < at_least or (at_least and not self.tally.done["deleted"])
        ):
            self._stop.wait(0.2)
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _uploads(self) -> int:
        return self.tally.done["uploaded"] + self.tally.done["replaced"]

    def _run(self, step: object, name: str, rng: random.Random) -> None:
        with requests.Session() as session:
            session.trust_env = False
            n = 0
            while not self._stop.is_set():
                step(session, f"{name}n{n}", rng)  # type: ignore[operator]
                n += 1

    def call(
        self,
        session: requests.Session,
        method: str,
        path: str,
        template: str = "",
        *,
        what: str,
        **sent: object,
    ) -> tuple[int, Json]:
        """Send a request; note its status, whether the contract declares it, and its time."""
        start = time.monotonic()
        reply = session.request(method, self._url + path, timeout=60, **sent)  # type: ignore[arg-type]
        took = time.monotonic() - start
        with self.tally.lock:
            self.tally.statuses[f"{what} {reply.status_code}"] += 1
            self.tally.seconds.setdefault(what, []).append(took)
            if str(reply.status_code) not in self._declared[template or path, method.lower()]:
                self.tally.undeclared.append(
                    f"{method} {path}: {reply.status_code} {reply.text[:200]}"
                )
        return reply.status_code, reply.json()

    # --- writers

    def _upload(self, session: requests.Session, name: str, rng: random.Random) -> None:
        mine = name.split("n", maxsplit=1)[0]
        held = [version for version in self.model.live() if version.key.startswith(f"{mine}n")]
        replaced = rng.choice(held) if held and rng.random() < REPLACE else None
        key = replaced.key if replaced else name
        marker = f"{name}q{rng.randrange(10**6)}"
        version = Version(key, make_text(key, marker, rng), marker, time.monotonic())
        self.model.begin(version)
        status, reply = self.call(
            session,
            "POST",
            "/api/v1/ingest",
            what="upload",
            params={"wait": "true" if rng.random() < 0.3 else "text"},
            files={"file": (f"{key}.txt", version.text.encode())},
            data={"library": LIBRARY.value},
        )
        if status in {200, 201}:
            self.model.acknowledge(version, time.monotonic())
            states = {str(row["status"]) for row in reply["documents"]}
            with self.tally.lock:
                self.tally.done["replaced" if states == {"replaced"} else "uploaded"] += 1

    def _delete(self, session: requests.Session, name: str, rng: random.Random) -> None:
        del name
        self._stop.wait(0.15)
        held = self.model.live()
        if len(held) < KEPT:
            return
        version = rng.choice(held)
        restore = rng.random() < GRACE
        path = f"/api/v1/papers/{document_id(LIBRARY, f'{version.key}.txt')}"
        self.model.ending(version, time.monotonic())
        status, _ = self.call(
            session,
            "DELETE",
            path,
            "/api/v1/papers/{doc_id}",
            what="delete",
            params={"library": LIBRARY.value, "grace_s": 600 if restore else 0},
        )
        if status != 200:
            return
        self.model.ended(version, time.monotonic())
        with self.tally.lock:
            self.tally.done["deleted"] += 1
        if restore:
            again = Version(version.key, version.text, version.marker, time.monotonic())
            self.model.begin(again)
            status, _ = self.call(
                session,
                "POST",
                f"{path}/restore",
                "/api/v1/papers/{doc_id}/restore",
                what="restore",
                params={"library": LIBRARY.value},
            )
            if status == 200:
                self.model.acknowledge(again, time.monotonic())
                with self.tally.lock:
                    self.tally.done["restored"] += 1

    # --- readers

    def _search(self, session: requests.Session, name: str, rng: random.Random) -> None:
        del name
        pool = self.model.ever() if rng.random() < 0.3 else self.model.live()
        if not pool:
            self._stop.wait(0.05)
            return
        self.look(session, rng.choice(pool), rng, answer=rng.random() < 0.3)

    def look(
        self, session: requests.Session, version: Version, rng: random.Random, *, answer: bool
    ) -> None:
        """Search for a version's marker, or ask about it, and hold the reply to the model."""
        began = time.monotonic()
        if answer:
            body = {"question": f"What does the {version.marker} weigh?", "library": LIBRARY.value}
            status, reply = self.call(session, "POST", "/api/v1/query", what="query", json=body)
            ended = time.monotonic()
            if status == 200:
                self.tally.complain(self.model.wrong(_cited(reply), began, ended))
            return
        asked: dict[str, str] = {"q": version.marker, "library": LIBRARY.value, "limit": "10"}
        if fusion := rng.choice(["", "lexical", "rrf", "relative_score"]):
            asked["fusion"] = fusion
        status, reply = self.call(session, "GET", "/api/v1/search", what="search", params=asked)
        ended = time.monotonic()
        if status == 200:
            shown = [_shown(hit, "text") for hit in reply["hits"]]
            self.tally.complain(
                self.model.wrong(shown, began, ended)
                + self.model.missing(version, shown, began, ended)
            )


def _shown(row: Json, text: str) -> Shown:
    return Shown(str(row["doc_id"]), row["start"], row["end"], str(row[text]))


def _cited(reply: Json) -> list[Shown]:
    """Return the quotes of an answer, each with the document it is said to be of."""
    sources = {row["n"]: row for row in reply["sources"]}
    found = []
    for sentence in reply["sentences"]:
        for citation in sentence["citations"]:
            row = sources[citation["n"]]
            found.append(_shown({**citation, "doc_id": row["doc_id"]}, "quote"))
    return found


def final_check(clients: Clients) -> list[str]:
    """Search for everything after all writes: live is found, deleted is not."""
    rng = random.Random(1)
    before = len(clients.tally.wrong)
    with requests.Session() as session:
        session.trust_env = False
        for version in clients.model.ever():
            clients.look(session, version, rng, answer=False)
        live = len(clients.model.live())
        _, stats = clients.call(
            session,
            "GET",
            "/api/v1/collection/stats",
            what="stats",
            params={"library": LIBRARY.value},
        )
        uncertain = [
            version
            for version in clients.model.ever()
            if version.acked is None or (version.ending and version.ended is None)
        ]
        if not uncertain and stats["documents"] != live:
            clients.tally.complain(
                [f"the library counts {stats['documents']} documents, {live} were acknowledged"]
            )
    return clients.tally.wrong[before:]


REMARKS = (
    "Four uploaders (new documents, and replacements of their own), eight searchers (search by"
    " every fusion, and answers), and one",
    "that deletes, and undoes three of ten deletions, against the real server with the embedded"
    " model. Each returned passage must",
    "be exactly the characters of a version of its document that was live at some moment of the"
    " search; a version acknowledged",
    "before the search began and not ended by its end must be found by its marker; every status"
    " must be one the OpenAPI document",
    "declares. Afterwards every version is looked for once more, and `fsck` checks the store.",
)


def trial(directory: Path, seconds: float, at_least: int = 0) -> tuple[Clients, list[str], Json]:
    """Run the clients against a new server until enough operations are done.

    Returns:
        The clients, what the last look found wrong, and the result of fsck.
    """
    with Served(directory / "data") as server:
        clients = Clients(server.url, uploaders=4, searchers=8)
        clients.run(seconds, at_least)
        last = final_check(clients)
        job = server.client.follow(str(server.client.post("/api/v1/fsck")["id"]))
    return clients, last, job["result"]


def main() -> int:
    """Run, report, and exit 1 when a promise was broken."""
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=180.0)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="documind-concurrency-") as temporary:
        clients, _, fsck = trial(Path(temporary), args.seconds)
    tally = clients.tally
    kinds = {
        kind: sum(line.startswith(kind) for line in tally.wrong)
        for kind in ("wrong text", "phantom", "missing", "the library")
    }
    errors = sum(count for status, count in tally.statuses.items() if status.endswith(" 500"))
    lines = [
        Line("passages that are no text of their document", kinds["wrong text"], 0, ""),
        Line("passages of what was gone before the search began", kinds["phantom"], 0, ""),
        Line("acknowledged documents that were not found", kinds["missing"], 0, ""),
        Line("wrong counts at the end", kinds["the library"], 0, ""),
        Line("replies the contract does not declare", len(tally.undeclared), 0, ""),
        Line("replies of 500", errors, 0, ""),
        Line("faults that fsck finds afterwards", len(fsck["faults"]), 0, ""),
    ]
    figures: dict[str, float] = {
        "seconds": args.seconds,
        **{f"documents {what}": float(n) for what, n in tally.done.items()},
    }
    for what, times in sorted(tally.seconds.items()):
        figures[f"{what}: requests"] = float(len(times))
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
            figures[f"{what}: {name} ms"] = quantile(times, share) * 1000
    figures |= {
        f"status {status}": float(count) for status, count in sorted(tally.statuses.items())
    }
    faults = [json.dumps(fault) for fault in fsck["faults"]]
    for line in [*tally.wrong[:20], *tally.undeclared[:20], *faults[:20]]:
        print(line)
    command = f"python -m evaluation.campaigns.concurrency --seconds {args.seconds:g}"
    return write("concurrency", "Concurrency", REMARKS, lines, figures, command)


if __name__ == "__main__":
    sys.exit(main())
