"""Run 200 clients that ask, upload, list and delete for 80 s.

Into evaluation/reports/mixed_load.{md,json}.

make bench-mixed-load
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import requests

from app.client import DocuMindClient
from app.core.ids import document_id
from app.core.types import Library
from evaluation.lib.paths import parser_of
from evaluation.lib.served import Line, Served, quantile, write

LIBRARY = Library.PAPERS
SHARES = {"query": 0.4, "upload": 0.25, "list": 0.2, "delete": 0.15}
"""How often a client does what."""
MOST_S = 120.0
"""A busy machine gets so much longer until the first document is deleted."""

REFUSED_S = 0.2
"""A refused client waits so long, as Retry-After would have it wait longer."""
_TIMEOUT_S = 120.0


def text_of(name: str) -> str:
    """Return a document of two passages with words of its own."""
    rng = random.Random(name)
    words = [
        " ".join("".join(rng.choices("aeioulmnrst", k=rng.randint(4, 9))) for _ in range(60))
        for _ in range(2)
    ]
    return "\n\n".join(f"Item {name}, part {n}: {text}." for n, text in enumerate(words))


@dataclass
class Outcome:
    """Outcomes of the requests; guarded by its lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    statuses: Counter[str] = field(default_factory=Counter)
    odd: list[str] = field(default_factory=list)
    """Replies that are neither 2xx nor a 503 problem, and connections that broke."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    """Documents whose upload was acknowledged and that no client asked to delete."""
    deleted: set[str] = field(default_factory=set)
    """Documents whose deletion was acknowledged."""


class Clients:
    """The threads and what they share."""

    def __init__(self, url: str, count: int, seed: str = "mixed") -> None:
        """Prepare `count` clients; nothing is sent before `run`."""
        self._url = url
        self.outcome = Outcome()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(f"c{n}", random.Random(f"{seed}/{n}")),
                name=f"client-{n}",
                daemon=True,
            )
            for n in range(count)
        ]

    def run(self, seconds: float) -> None:
        """Let them go for so long, and until one deleted; wait until each has its last reply."""
        for thread in self._threads:
            thread.start()
        self._stop.wait(seconds)
        latest = time.monotonic() + MOST_S
        while not self.outcome.deleted and time.monotonic() < latest:
            self._stop.wait(0.1)
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: str, rng: random.Random) -> None:
        mine: list[str] = []
        n = 0
        with requests.Session() as session:
            session.trust_env = False
            while not self._stop.is_set():
                what = rng.choices(list(SHARES), list(SHARES.values()))[0]
                n += 1
                if what == "upload":
                    done = self._upload(session, f"{name}n{n}.txt", mine)
                elif what == "delete":
                    done = self._delete(session, mine, rng)
                elif what == "list":
                    done = (
                        self._send(
                            session,
                            what,
                            "GET",
                            "/api/v1/papers",
                            params={"library": LIBRARY.value, "limit": 20},
                        )
                        == 200
                    )
                else:
                    body = {
                        "question": f"What is part 1 of item {name}n{n}?",
                        "library": LIBRARY.value,
                    }
                    done = self._send(session, what, "POST", "/api/v1/query", json=body) == 200
                if not done:
                    self._stop.wait(REFUSED_S)

    def _upload(self, session: requests.Session, key: str, mine: list[str]) -> bool:
        files = {"file": (key, text_of(key).encode())}
        params = {"library": LIBRARY.value, "wait": "text"}
        if (
            self._send(session, "upload", "POST", "/api/v1/ingest", files=files, params=params)
            != 201
        ):
            return False
        mine.append(key)
        with self.outcome.lock:
            self.outcome.live.add(key)
        return True

    def _delete(self, session: requests.Session, mine: list[str], rng: random.Random) -> bool:
        if not mine:
            return True
        key = mine.pop(rng.randrange(len(mine)))
        with self.outcome.lock:
            self.outcome.live.discard(key)
        path = f"/api/v1/papers/{document_id(LIBRARY, key)}"
        status = self._send(
            session, "delete", "DELETE", path, params={"library": LIBRARY.value, "grace_s": 0}
        )
        with self.outcome.lock:
            if status == 200:
                self.outcome.deleted.add(key)
            elif status == 503:  # refused: it is as it was
                self.outcome.live.add(key)
                mine.append(key)
        return status == 200

    def _send(
        self, session: requests.Session, what: str, method: str, path: str, **sent: object
    ) -> int:
        """Send a request, count its outcome, and return its status; 0 if it broke."""
        begun = time.monotonic()
        try:
            reply = session.request(method, self._url + path, timeout=_TIMEOUT_S, **sent)  # type: ignore[arg-type]
        except requests.RequestException as error:
            with self.outcome.lock:
                self.outcome.odd.append(f"{method} {path}: {error!r:.200}")
            return 0
        problem = (
            reply.status_code == 503
            and reply.headers.get("content-type") == "application/problem+json"
        )
        with self.outcome.lock:
            self.outcome.statuses[f"{what} {reply.status_code}"] += 1
            if reply.ok:
                self.outcome.seconds.setdefault(what, []).append(time.monotonic() - begun)
            elif not problem:
                self.outcome.odd.append(f"{method} {path}: {reply.status_code} {reply.text[:200]}")
        return reply.status_code


def broken_promises(client: DocuMindClient, outcome: Outcome) -> tuple[list[str], list[str]]:
    """Return which acknowledged documents are not listed, and which deleted ones are."""
    there: set[str] = set()
    cursor: object = ""
    while cursor is not None:
        page = client.get(
            "/api/v1/papers", {"library": LIBRARY.value, "limit": 100, "cursor": str(cursor)}
        )
        there |= {str(row["source_key"]) for row in page["documents"]}
        cursor = page["next_cursor"]
    return sorted(outcome.live - there), sorted(outcome.deleted & there)


REMARKS = (
    "Clients in threads of their own against the real server with the embedded model, on one"
    " machine. Of 100 requests 40 are",
    "questions, 25 uploads (`wait=text`), 20 lists, 15 deletions without grace of a document of"
    " their own. A refusal is a 503",
    "problem; its client waits 0.2 s. Afterwards every document whose upload was acknowledged and"
    " that was not deleted must be",
    "listed, none whose deletion was acknowledged, and `fsck` checks the store.",
)


def trial(
    directory: Path, clients: int, seconds: float
) -> tuple[Outcome, tuple[list[str], list[str]], list[object]]:
    """Run the clients against a server of its own.

    Returns:
        What they saw; acknowledged documents that are lost and deleted ones that are back; faults
        that fsck finds.
    """
    with Served(directory / "data") as server:
        load = Clients(server.url, clients)
        load.run(seconds)
        broken = broken_promises(server.client, load.outcome)
        job = server.client.follow(str(server.client.post("/api/v1/fsck")["id"]))
    return load.outcome, broken, job["result"]["faults"]


def main() -> int:
    """Run, report, and exit 1 when a promise was broken."""
    parser = parser_of(__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=80.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="documind-mixed-") as temporary:
        outcome, (lost, back), faults = trial(Path(temporary), args.clients, args.seconds)
    answered = sum(
        count for status, count in outcome.statuses.items() if status.split()[1] != "503"
    )
    lines = [
        Line(
            "replies that are neither 2xx nor a 503 problem, broken connections",
            len(outcome.odd),
            0,
            "",
        ),
        Line("acknowledged documents that are lost", len(lost), 0, ""),
        Line("deleted documents that are back", len(back), 0, ""),
        Line("faults that fsck finds afterwards", len(faults), 0, ""),
        Line("requests answered", answered, 1000, "", at_most=False),
    ]
    figures: dict[str, float] = {"clients": args.clients, "seconds": args.seconds}
    for what, times in sorted(outcome.seconds.items()):
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
            figures[f"{what}, answered: {name} ms"] = quantile(times, share) * 1000
    figures |= {
        f"status {status}": float(count) for status, count in sorted(outcome.statuses.items())
    }
    for line in [
        *outcome.odd[:20],
        *lost[:20],
        *back[:20],
        *(json.dumps(fault) for fault in faults[:20]),
    ]:
        print(line)
    command = (
        f"python -m evaluation.campaigns.mixed_load --clients {args.clients} --seconds"
        f" {args.seconds:g}"
    )
    return write("mixed_load", "Mixed load", REMARKS, lines, figures, command)


if __name__ == "__main__":
    sys.exit(main())
