"""Find the terms of a library that are a few edits from a word."""

from __future__ import annotations

import math
import string
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from app.core.text import edit_distance

MOST_KNOWN_TERMS = 200_000
"""Terms that are kept, the most frequent first: 10 MB."""

KNOWN_TERMS_FRESH_S = 300.0
"""How long a list of terms is used again, in seconds; documents are added meanwhile."""

SHORTEST, LONGEST = 4, 24
"""Letters of a term that is kept; shorter ones are near to too many."""


class LetterCounts:
    """Terms with the number of each letter in them; immutable.

    An edit changes two of these numbers by one at most, so that few terms are compared by edits.
    """

    def __init__(self, terms: Iterable[str]) -> None:
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
                self._held = LetterCounts(self._listed(MOST_KNOWN_TERMS))
                self._until = time.monotonic() + KNOWN_TERMS_FRESH_S
            return self._held


def _is_word(term: str) -> bool:
    return SHORTEST <= len(term) <= LONGEST and term.isascii() and term.isalpha()


# Weigh words for an engine that multiplies sparse vectors: BM25 in two halves.

K1, B = 1.2, 0.75
"""As tantivy's (Bm25Weight), so that both rank alike."""

BODY, TITLE, SECTION = "body", "title", "section"
"""The fields that are searched; the same word in two of them is two dimensions."""

AVERAGE: Mapping[str, float] = {BODY: 160.0, TITLE: 8.0, SECTION: 3.0}
"""Tokens of a field on average; ADR 0252 says how little it matters."""


@lru_cache(maxsize=400_000)
def dimension(field: str, token: str) -> int:
    """Return the dimension of a field's token, from 0 below 2^32.

    Two tokens share one by chance: one pair in a vocabulary of 100,000.
    """
    return int.from_bytes(blake2b(f"{field}\0{token}".encode(), digest_size=4).digest())


def chunk_vector(tokens: Mapping[str, Sequence[str]]) -> dict[int, float]:
    """Return a chunk's half by dimension: a saturated count for each field's token."""
    found: dict[int, float] = {}
    for field, held in tokens.items():
        norm = K1 * (1 - B + B * len(held) / AVERAGE[field])
        for token, tf in Counter(held).items():
            at = dimension(field, token)
            found[at] = found.get(at, 0.0) + tf * (K1 + 1) / (tf + norm)
    return found


def question_vector(
    counts: Mapping[str, int],
    total: int,
    frequencies: Mapping[str, int],
    boosts: Mapping[str, float],
) -> dict[int, float]:
    """Return the question's half by dimension.

    Args:
        counts: How often the question holds each token.
        total: Chunks of the library.
        frequencies: How many bodies hold each token.
        boosts: Weight of each field, above 0.
    """
    found: dict[int, float] = {}
    for token, n in counts.items():
        weight = n * idf(frequencies.get(token, 0), total)
        for field, boost in boosts.items():
            at = dimension(field, token)
            found[at] = found.get(at, 0.0) + boost * weight
    return found


def idf(frequency: int, total: int) -> float:
    """Return how telling a token is, above 0: ln(1 + (N - n + .5) / (n + .5))."""
    held = min(frequency, total)
    return math.log(1 + (total - held + 0.5) / (held + 0.5))
