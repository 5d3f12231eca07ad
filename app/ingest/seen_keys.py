"""Which articles a run has seen, in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class SeenKeys:
    """Article keys seen in a run, 8 bytes each.

    7 million pages take 56 MB; a set of strings would take a gigabyte. Numeric page ids are kept
    exactly; other keys by a 64-bit hash of this process, whose collisions could only keep a
    vanished article.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._numbers = array("q")
        self._sorted: npt.NDArray[np.int64] | None = None

    def add(self, key: str) -> None:
        """Note a key."""
        self._numbers.append(_number(key))
        self._sorted = None

    def __len__(self) -> int:
        """Return how many keys were noted."""
        return len(self._numbers)

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Return those of `keys` that were never noted."""
        if self._sorted is None:
            self._sorted = np.sort(np.array(self._numbers, dtype=np.int64))
        numbers = np.array([_number(key) for key in keys], dtype=np.int64)
        at = np.minimum(np.searchsorted(self._sorted, numbers), max(len(self._sorted) - 1, 0))
        found = (
            self._sorted[at] == numbers if len(self._sorted) else np.zeros(len(keys), dtype=bool)
        )
        return {key for key, there in zip(keys, found, strict=True) if not there}


def _number(key: str) -> int:
    plain = (
        key.isascii()
        and key.isdecimal()
        and len(key) < 18
        and (key == "0" or not key.startswith("0"))
    )
    return int(key) if plain else hash(key) | (1 << 62)
