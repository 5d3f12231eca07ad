"""Weigh words for an engine that multiplies sparse vectors: BM25 in two halves.

A chunk's vector holds what depends on the chunk, the question's what depends on the library: so
their product is BM25 by field: sum of boost x idf x tf (k1 + 1) / (tf + k1 (1 - b + b l / L)).
L, the average length, is fixed: a vector is written once, while the average moves.

References:
    Robertson and Zaragoza 2009, The Probabilistic Relevance Framework, 3.4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

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
