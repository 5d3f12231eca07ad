"""Know the opposites of a word: from a list of antonyms, and by a prefix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path

_MAKES_OPPOSITE = ("un", "in", "im", "ir", "il", "dis", "non", "mis")
_SWAPPED = (
    ("under", "out"),
    ("under", "over"),
    ("pro", "anti"),
    ("pre", "post"),
    ("up", "down"),
    ("in", "de"),
)
_SHORTEST = 4
"""Letters that a word must have behind such a prefix; shorter ones are chance: in, inn."""


@cache
def antonyms() -> Mapping[str, AbstractSet[str]]:
    """Return the stems of each stem's opposites; made by scripts/write_antonyms.py."""
    found: dict[str, set[str]] = {}
    for line in Path(__file__).with_name("antonyms.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            first, second = line.split()
            found.setdefault(first, set()).add(second)
            found.setdefault(second, set()).add(first)
    return found


def prefixed(stem: str) -> Iterator[str]:
    """Yield the opposites that a prefix makes of a stem, or that it is made of."""
    for prefix in _MAKES_OPPOSITE:
        if stem.startswith(prefix) and len(stem) - len(prefix) >= _SHORTEST:
            yield stem[len(prefix) :]
        if len(stem) >= _SHORTEST:
            yield prefix + stem
    for pair in _SWAPPED:
        for own, other in (pair, pair[::-1]):
            if stem.startswith(own) and len(stem) - len(own) >= _SHORTEST:
                yield other + stem[len(own) :]


def opposites(stem: str) -> set[str]:
    """Return the stems of a word's opposites, listed or made by a prefix."""
    return {*antonyms().get(stem, ()), *prefixed(stem)}
