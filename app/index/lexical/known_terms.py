"""Find the terms of a library that are a few edits from a word."""

from __future__ import annotations

import string
import threading
import time
from collections.abc import Callable, Iterable

import numpy as np

from app.core.edits import edit_distance

MOST_TERMS = 200_000
"""Terms that are kept, the most frequent first: 10 MB."""

FRESH_S = 300.0
"""How long a list of terms is used again, in seconds; documents are added meanwhile."""

SHORTEST, LONGEST = 4, 24
"""Letters of a term that is kept; shorter ones are near to too many."""


class LetterCounts:
    """Terms with the number of each letter in them; immutable.

    An edit changes two of these numbers by one at most, so that few terms are compared by edits.
    """

    def __init__(self, terms: Iterable[str]) -> None:
        """Keep the words among `terms`: numbers and identifiers are not misspelt."""
        self._terms = [term for term in terms if _is_word(term)]
        signs = np.array(self._terms, dtype=f"S{LONGEST}").view(np.uint8).reshape(-1, LONGEST)
        letters = [(signs == ord(letter)).sum(axis=1) for letter in string.ascii_lowercase]
        self._counts = np.array(letters, dtype=np.int8)

    def near(self, word: str, edits: int) -> list[str]:
        """Return the terms within `edits` of a word, in the order of the list."""
        own = np.array([word.count(letter) for letter in string.ascii_lowercase], dtype=np.int8)
        far = np.abs(self._counts - own[:, None]).sum(axis=0, dtype=np.int16)
        alike = [self._terms[at] for at in np.flatnonzero(far <= 2 * edits)]
        return [term for term in alike if edit_distance(word, term) <= edits]


class KnownTerms:
    """The terms of a library as of a few minutes ago; thread-safe."""

    def __init__(self, listed: Callable[[int], Iterable[str]]) -> None:
        """Read terms with `listed` when they are first needed.

        Args:
            listed: Returns up to so many terms, the most frequent first.
        """
        self._listed = listed
        self._held = LetterCounts(())
        self._until = 0.0
        self._lock = threading.Lock()

    def near(self, word: str, edits: int) -> list[str]:
        """Return terms within `edits` of a word; none for a number or an identifier."""
        return self._fresh().near(word, edits) if _is_word(word) else []

    def _fresh(self) -> LetterCounts:
        with self._lock:
            if time.monotonic() >= self._until:
                self._held = LetterCounts(self._listed(MOST_TERMS))
                self._until = time.monotonic() + FRESH_S
            return self._held


def _is_word(term: str) -> bool:
    return SHORTEST <= len(term) <= LONGEST and term.isascii() and term.isalpha()
