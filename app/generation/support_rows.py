"""Compare a claim with a passage in figures: what is shared and what differs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.core.text import tokenise
from app.generation.alignment import Alignment
from app.generation.reading import Claim, ReadPassage, negations
from app.generation.spelling import is_named, unknown_words

Floats = npt.NDArray[np.float64]

FEATURES = (
    "coverage",  # idf-weighted share of the claim's words in the quoted window
    "names",  # names in the claim that the passage has not, 2 at most
    "run",  # longest common run of words, relative to the claim
    # share of the claim's content words that stand nowhere in the passage, however spelt
    "unknown",
    "unknown_count",  # their number, 5 at most
    "grams",  # share of the claim's character 4-grams in the passage
    "pairs",  # share of its neighbouring content words that are neighbours in the passage
    "length",  # tens of content words
)
"""Columns of a support row, in order."""

_NEAR_COPY = 0.35
"""Share of a claim in one run from which it copies its source; with a strange name 0.3 % of
right sentences are like that."""


def contradicts(claim: Claim, passage: ReadPassage, found: Alignment, row: Floats) -> bool:
    """Return whether a claim differs from its passage in what must not differ.

    It has a figure that stands nowhere in the passage, or denies more often than the window does,
    or is a near copy in which nothing but names is strange.

    Args:
        claim: What was said.
        passage: The cited passage.
        found: From `align`.
        row: From `support_row`.
    """
    names, run, unknown = (row[FEATURES.index(name)] for name in ("names", "run", "unknown_count"))
    if names >= 1 and unknown <= names and run >= _NEAR_COPY:
        return True
    if claim.specifics.negations > negations(passage.text[found.start : found.end]):
        return True
    return bool(claim.figures - passage.figures)


def support_row(claim: Claim, passage: ReadPassage, found: Alignment) -> Floats:
    """Return FEATURES of a claim and its passage, float64 `[len(FEATURES)]`."""
    known, ordered = passage.known, claim.content
    strangers = unknown_words(claim, passage)
    unknown = [token for token in ordered if token in strangers]
    strange = [
        name for name in claim.specifics.names if name not in known and not is_named(name, passage)
    ]
    run = longest_run(claim.tokens, tokenise(passage.text[found.start : found.end]))
    return np.asarray(
        [
            found.coverage,
            float(min(2, len(strange))),
            run / max(1, len(claim.tokens)),
            len(unknown) / max(1, len(ordered)),
            float(min(5, len(unknown))),
            len(claim.grams & passage.grams) / max(1, len(claim.grams)),
            len(claim.pairs & passage.pairs) / max(1, len(claim.pairs)),
            len(ordered) / 10,
        ]
    )


def longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common contiguous run of two token lists."""
    places: dict[str, list[int]] = {}
    for at, token in enumerate(second):
        places.setdefault(token, []).append(at)
    best = 0
    before: dict[int, int] = {}
    for token in first:
        before = {at: before.get(at - 1, 0) + 1 for at in places.get(token, ())}
        best = max([best, *before.values()])
    return best
