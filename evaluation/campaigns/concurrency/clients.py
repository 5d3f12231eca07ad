"""Clients in threads: uploaders, one that deletes and restores, searchers."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

import requests

from app.core.ids import document_id
from evaluation.campaigns.concurrency.model import LIBRARY, Model, Shown, Version, make_text
from evaluation.lib.paths import ROOT

Json = dict[str, object]

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
        """Run the clients for `seconds`, or up to 90 s more until enough is done.

        Enough: `at_least` uploads and a deletion.
        """
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
        return reply.status_code, cast("Json", reply.json())

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
            states = {str(row["status"]) for row in cast("list[Json]", reply["documents"])}
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
            shown = [_shown(hit, "text") for hit in cast("list[Json]", reply["hits"])]
            self.tally.complain(
                self.model.wrong(shown, began, ended)
                + self.model.missing(version, shown, began, ended)
            )


def _shown(row: Json, text: str) -> Shown:
    return Shown(
        str(row["doc_id"]), cast("int", row["start"]), cast("int", row["end"]), str(row[text])
    )


def _cited(reply: Json) -> list[Shown]:
    """Return the quotes of an answer, each with the document it is said to be of."""
    sources = {row["n"]: row for row in cast("list[Json]", reply["sources"])}
    found = []
    for sentence in cast("list[Json]", reply["sentences"]):
        for citation in cast("list[Json]", sentence["citations"]):
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
