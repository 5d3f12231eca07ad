"""Model what a server has promised its clients."""

from __future__ import annotations

import json
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
    """Revisions of documents that must be found, or may be; thread-safe.

    One writer per key at a time.
    """

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
    acknowledged: dict[str, int] = field(
        default_factory=lambda: {"accepted": 0, "text": 0, "vectors": 0, "deleted": 0}
    )
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
        """A deletion is about to be asked for."""
        with self._lock:
            self._begin(key, ABSENT)

    def _begin(self, key: str, revision: int) -> None:
        self.possible[key] = [self.settled.get(key, ABSENT), revision]
        self.in_flight.add(key)

    def acknowledge(self, key: str, revision: int, level: Level) -> None:
        """The server has answered."""
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
        """Write everything down, so that a campaign can go on later."""
        content = {
            "settled": self.settled,
            "with_vectors": sorted(self.with_vectors),
            "possible": self.possible,
            "last_revision": self.last_revision,
            "acknowledged": self.acknowledged,
        }
        path.write_text(json.dumps(content), "utf-8")

    @classmethod
    def load(cls, path: Path) -> Promises:
        """Return what an earlier campaign wrote down."""
        found = json.loads(path.read_text("utf-8"))
        return cls(
            settled=found["settled"],
            with_vectors=set(found["with_vectors"]),
            possible=found["possible"],
            last_revision=found["last_revision"],
            acknowledged=found["acknowledged"],
        )
