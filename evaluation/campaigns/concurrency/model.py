"""Model which text a search may return and which it must, by time.

Times are monotonic seconds of one process. A request is *sent* before the server can know of it and
*acknowledged* after the server has done it, so a version may be returned from `sent` on, must be
found from `acked` on, need not be found from `ending` on (a deletion or replacement was sent), and
must not be returned by a search that begins after `ended` (it was acknowledged).
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.ids import document_id
from app.core.types import Library

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
        """Return every version."""
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
