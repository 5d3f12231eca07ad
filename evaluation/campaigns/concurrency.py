"""Let many clients work at once, and hold every reply to a model of what may be there.

    make bench-concurrency      # 4 uploaders, 8 searchers and 1 deleter for 3 minutes
    make bench-mixed-load       # 200 clients that ask, upload, search, list and delete for 80 s

Writes evaluation/reports/concurrency.{md,json} or mixed_load.{md,json}.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import requests

from app.client import DocuMindClient, Json
from app.core.ids import document_id
from app.core.types import Library
from evaluation.lib.campaign import Clients, checked, own_words
from evaluation.lib.reports import ROOT, Line, options, quantile, write
from evaluation.lib.served import Served

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

    @property
    def doc_id(self) -> str:
        return document_id(LIBRARY, f"{self.key}.txt")


@dataclass(frozen=True, slots=True)
class Shown:
    doc_id: str
    start: int
    end: int
    text: str


def make_text(key: str, marker: str, rng: random.Random) -> str:
    """Return a document of a few passages, each of which holds the marker."""
    lines = [f"Item {key}", ""]
    for n in range(rng.randint(2, 5)):
        weight = rng.randint(2, 900)
        lines += [
            f"The {marker} of shelf {n} weighs {weight} grams. It lies next to {own_words(rng)}.",
            "",
        ]
    return "\n".join(lines)


class Model:
    """All versions there ever were; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_doc: dict[str, list[Version]] = {}
        self._by_key: dict[str, Version] = {}

    def take(self, rng: random.Random, prefix: str = "", least: int = 1) -> Version | None:
        """Return a live version that from now on ends, so that no other client ends it; None of too few."""
        with self._lock:
            live = [one for one in self._live() if one.key.startswith(prefix)]
            if len(live) < least:
                return None
            version = rng.choice(live)
            version.ending = time.monotonic()
            return version

    def keep(self, version: Version) -> None:
        with self._lock:
            version.ending = None

    def begin(self, version: Version) -> None:
        """A version is about to be sent; what it replaces is about to end."""
        with self._lock:
            before = self._by_key.get(version.key)
            if before is not None and before.ending is None:
                before.ending = version.sent
            self._by_doc.setdefault(version.doc_id, []).append(version)

    def forget(self, version: Version) -> None:
        """A version was refused before anything was done with it."""
        with self._lock:
            self._by_doc[version.doc_id].remove(version)

    def acknowledge(self, version: Version, now: float) -> None:
        """The server has it, and no longer what it replaced."""
        with self._lock:
            version.acked = now
            before = self._by_key.get(version.key)
            if before is not None and before is not version:
                before.ended = now
            self._by_key[version.key] = version

    def ended(self, version: Version, now: float) -> None:
        with self._lock:
            version.ended = now
            if self._by_key.get(version.key) is version:
                del self._by_key[version.key]

    def live(self) -> list[Version]:
        with self._lock:
            return self._live()

    def _live(self) -> list[Version]:
        return [
            one for one in self._by_key.values() if one.acked is not None and one.ending is None
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
                one for one in versions if hit.text and one.text[hit.start : hit.end] == hit.text
            ]
            late = began - max((one.ended or ended for one in same if one.sent <= ended), default=0)
            if not same:
                where = f"{hit.doc_id} {hit.start}..{hit.end}"
                found.append(f"wrong text: {where} is of no revision: {hit.text[:60]!r}")
            elif late > 0:
                what = f"{same[0].marker} was gone {late:.3f} s"
                found.append(f"phantom: {what} before the search began")
        return found

    def missing(
        self, version: Version, shown: Sequence[Shown], began: float, ended: float
    ) -> list[str]:
        """Return a complaint if a search had to find a version's marker and did not."""
        acked, ending = version.acked, version.ending
        due = acked is not None and acked < began and (ending is None or ending > ended)
        if not due or any(version.marker in hit.text for hit in shown):
            return []
        seen = ", ".join(hit.text[:30] for hit in shown) or "nothing"
        what = f"{version.marker} was acknowledged {began - (acked or 0.0):.3f} s"
        return [f"missing: {what} before the search; found {seen!r}"]


KEPT = 4
"""Nothing of others is deleted while fewer documents are live."""
REPLACE, GRACE = 0.4, 0.3
"""Share of uploads that replace a document, and of deletions that are undone."""
_TIMEOUT_S = 600.0
"""A machine with other work answers late; a reply that never comes is found all the same."""
REFUSED_S = 0.2
"""A refused client waits so long, as Retry-After would have it wait longer."""
MOST_S = 120.0
"""A busy machine gets so much longer until enough was done."""
APART = {
    **{f"u{n}": {"upload": 0.7, "embed": 0.3} for n in range(4)},
    **{f"s{n}": {"search": 0.7, "query": 0.3} for n in range(8)},
    "d0": {"clear": 1.0},
}
"""Clients that do one thing each, and one that deletes documents of others; to embed is to upload
and wait for the vectors too."""
MIXED = {"query": 0.25, "search": 0.15, "upload": 0.25, "list": 0.2, "delete": 0.15}


@dataclass
class Tally:
    """Counts of what clients saw; guarded by its lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    wrong: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    """Replies that the contract does not declare or that are neither 2xx nor a 503 problem, and
    connections that broke."""
    statuses: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)


class Load:
    """What clients share, and what each can do."""

    def __init__(self, url: str, shares: Mapping[str, Mapping[str, float]]) -> None:
        self._url = url
        self._shares = shares
        self.model = Model()
        self.tally = Tally()
        declared = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))["paths"]
        self._declared = {
            (path, method): set(operation["responses"])
            for path, methods in declared.items()
            for method, operation in methods.items()
        }
        self._clients = Clients(session, dict.fromkeys(shares, self._step), "concurrency")

    def run(self, seconds: float, at_least: int = 1) -> None:
        """Run for `seconds`, and longer until so many uploads and a deletion are done."""
        self._clients.start()
        self._clients.stop.wait(seconds)
        latest = time.monotonic() + MOST_S
        while time.monotonic() < latest and (
            self.tally.done["uploaded"] < at_least or not self.tally.done["deleted"]
        ):
            self._clients.stop.wait(0.1)
        self._clients.join()

    def _step(self, client: requests.Session, name: str, rng: random.Random) -> None:
        who = name.partition("n")[0]
        shares = self._shares[who]
        what = rng.choices(list(shares), list(shares.values()))[0]
        if what in {"upload", "embed"}:
            done = self._upload(client, who, name, rng, "true" if what == "embed" else "text")
        elif what in {"delete", "clear"}:
            done = self._delete(client, who, rng, others=what == "clear")
        elif what == "list":
            params = {"library": LIBRARY.value, "limit": 20}
            done = self.call(client, "GET", "/api/v1/papers", what=what, params=params)[0] == 200
        else:
            pool = self.model.ever() if rng.random() < 0.3 else self.model.live()
            done = bool(pool) and self.look(client, rng.choice(pool), rng, answer=what == "query")
        if not done:
            self._clients.stop.wait(REFUSED_S)

    def call(
        self,
        client: requests.Session,
        method: str,
        path: str,
        template: str = "",
        *,
        what: str,
        **sent: object,
    ) -> tuple[int, Json]:
        """Send a request; note its status, whether it may be, and its time; 0 if it broke."""
        begun = time.monotonic()
        try:
            reply = client.request(method, self._url + path, timeout=_TIMEOUT_S, **sent)  # type: ignore[arg-type]
        except requests.RequestException as error:
            with self.tally.lock:
                self.tally.odd.append(f"{method} {path}: {error!r:.200}")
            return 0, {}
        status = reply.status_code
        refused = status == 503 and "problem+json" in reply.headers.get("content-type", "")
        declared = str(status) in self._declared[template or path, method.lower()]
        with self.tally.lock:
            self.tally.statuses[f"{what} {status}"] += 1
            if reply.ok:
                self.tally.seconds.setdefault(what, []).append(time.monotonic() - begun)
            if not declared or not (reply.ok or refused):
                self.tally.odd.append(f"{method} {path}: {status} {reply.text[:200]}")
        return status, reply.json()

    def _done(self, what: str) -> None:
        with self.tally.lock:
            self.tally.done[what] += 1

    def _upload(
        self, client: requests.Session, who: str, name: str, rng: random.Random, wait: str
    ) -> bool:
        replaced = self.model.take(rng, f"{who}n") if rng.random() < REPLACE else None
        key = replaced.key if replaced else name
        marker = f"{name}q{rng.randrange(10**6)}"
        version = Version(key, make_text(key, marker, rng), marker, time.monotonic())
        self.model.begin(version)
        files, data = {"file": (f"{key}.txt", version.text.encode())}, {"library": LIBRARY.value}
        status, _ = self.call(
            client, "POST", "/api/v1/ingest", what="upload", params={"wait": wait}, files=files,
            data=data,
        )  # fmt: skip
        if status in {200, 201}:
            self.model.acknowledge(version, time.monotonic())
            self._done("uploaded")
        elif status == 503:
            self.model.forget(version)
            if replaced:
                self.model.keep(replaced)
        return status in {200, 201}

    def _delete(
        self, client: requests.Session, who: str, rng: random.Random, *, others: bool
    ) -> bool:
        version = self.model.take(rng, "", KEPT) if others else self.model.take(rng, f"{who}n")
        if version is None:
            return not others
        restore = others and rng.random() < GRACE
        path, template = f"/api/v1/papers/{version.doc_id}", "/api/v1/papers/{doc_id}"
        params: dict[str, str | int] = {"library": LIBRARY.value}
        status, _ = self.call(
            client, "DELETE", path, template, what="delete",
            params={**params, "grace_s": 600 if restore else 0},
        )  # fmt: skip
        if status != 200:
            if status == 503:
                self.model.keep(version)
            return False
        self.model.ended(version, time.monotonic())
        self._done("deleted")
        if restore:
            again = Version(version.key, version.text, version.marker, time.monotonic())
            self.model.begin(again)
            status, _ = self.call(
                client, "POST", f"{path}/restore", f"{template}/restore", what="restore",
                params=params,
            )  # fmt: skip
            if status == 200:
                self.model.acknowledge(again, time.monotonic())
                self._done("restored")
        return not others  # the one that deletes what others have takes its time

    def look(
        self, client: requests.Session, version: Version, rng: random.Random, *, answer: bool
    ) -> bool:
        """Search for a version's marker, or ask about it, and hold the reply to the model."""
        began = time.monotonic()
        if answer:
            body = {"question": f"What does the {version.marker} weigh?", "library": LIBRARY.value}
            status, reply = self.call(client, "POST", "/api/v1/query", what="query", json=body)
            shown = _cited(reply) if status == 200 else []
            wrong = self.model.wrong(shown, began, time.monotonic())
        else:
            asked: dict[str, str] = {"q": version.marker, "library": LIBRARY.value, "limit": "10"}
            if fusion := rng.choice(["", "lexical", "rrf", "relative_score"]):
                asked["fusion"] = fusion
            status, reply = self.call(client, "GET", "/api/v1/search", what="search", params=asked)
            ended = time.monotonic()
            if status != 200:
                return False
            shown = [_shown(hit, "text") for hit in reply["hits"]]
            wrong = self.model.wrong(shown, began, ended)
            wrong += self.model.missing(version, shown, began, ended)
        with self.tally.lock:
            self.tally.wrong += wrong
        return status == 200


def session() -> requests.Session:
    opened = requests.Session()
    opened.trust_env = False
    return opened


def _shown(row: Json, text: str) -> Shown:
    return Shown(str(row["doc_id"]), row["start"], row["end"], str(row[text]))


def _cited(reply: Json) -> list[Shown]:
    """Return the quotes of an answer, each with the document it is said to be of."""
    sources = {row["n"]: row["doc_id"] for row in reply["sources"]}
    return [
        _shown({**citation, "doc_id": sources[citation["n"]]}, "quote")
        for sentence in reply["sentences"]
        for citation in sentence["citations"]
    ]


def final_check(load: Load, client: DocuMindClient) -> None:
    """Search for everything after all writes, and list it: live is found, deleted is not."""
    rng = random.Random(1)
    ever = load.model.ever()
    with session() as opened:
        for version in rng.sample(ever, min(len(ever), 1000)):
            load.look(opened, version, rng, answer=False)
    listed = {str(row["doc_id"]) for row in client.documents(LIBRARY.value)}
    live = {version.doc_id for version in load.model.live()}
    open_ = {one.doc_id for one in ever if one.acked is None or (one.ending and one.ended is None)}
    gone = {one.doc_id for one in ever} - live - open_
    load.tally.wrong += [f"lost: {one} was acknowledged and is not listed" for one in live - listed]
    load.tally.wrong += [f"back: {one} was deleted and is listed" for one in gone & listed]


def trial(
    directory: Path, shares: Mapping[str, Mapping[str, float]], seconds: float, at_least: int = 1
) -> tuple[Tally, list[Json]]:
    """Run the clients against a new server; return what they saw, and the faults that fsck finds."""
    with Served(directory / "data") as server:
        load = Load(server.url, shares)
        load.run(seconds, at_least)
        final_check(load, server.client)
        return load.tally, checked(server)


REMARKS = (
    "Clients in threads of their own against the real server with the embedded model, on one"
    " machine. Each returned passage must be exactly the characters of a version of its document"
    " that was live at some moment of the search; a version acknowledged before the search began and"
    " not ended by its end must be found by its marker; every status must be one the OpenAPI document"
    " declares, and 2xx or a 503 problem, after which a client waits 0.2 s. Afterwards every version"
    " (of more than a thousand a sample) is looked for once more, all are listed, and `fsck` checks"
    " the store.",
)
KINDS = {
    "wrong text": "passages that are no text of their document",
    "phantom": "passages of what was gone before the search began",
    "missing": "acknowledged documents that were not found",
    "lost": "acknowledged documents that are not listed at the end",
    "back": "deleted documents that are listed at the end",
}


def main() -> int:
    args = options(
        __doc__, mixed=(0, "clients that each do everything"), seconds=(180.0, "how long they work")
    )
    shares = {f"c{n}": MIXED for n in range(args.mixed)} if args.mixed else APART
    with tempfile.TemporaryDirectory(prefix="documind-concurrency-") as temporary:
        tally, faults = trial(Path(temporary), shares, args.seconds)
    lines = [
        *(
            Line(what, sum(line.startswith(kind) for line in tally.wrong))
            for kind, what in KINDS.items()
        ),
        Line("replies that may not be, and connections that broke", len(tally.odd)),
        Line("faults that fsck finds afterwards", len(faults)),
    ]
    figures: dict[str, float] = {"clients": len(shares), "seconds": args.seconds}
    figures |= {f"documents {what}": count for what, count in tally.done.items()}
    aside: dict[str, float] = {}
    for what, times in sorted(tally.seconds.items()):
        for share in (50, 95, 99):
            into = figures if share == 95 else aside
            into[f"{what}, answered: p{share} ms"] = quantile(times, share / 100) * 1000
    aside |= {f"status {status}": count for status, count in sorted(tally.statuses.items())}
    for line in [*tally.wrong[:20], *tally.odd[:20], *map(json.dumps, faults[:20])]:
        print(line)
    name, title = ("mixed_load", "Mixed load") if args.mixed else ("concurrency", "Concurrency")
    mixed = f" --mixed {args.mixed}" if args.mixed else ""
    command = f"python -m evaluation.campaigns.concurrency{mixed} --seconds {args.seconds:g}"
    return write(name, title, REMARKS, lines, figures, command, aside=aside)


if __name__ == "__main__":
    sys.exit(main())
