"""Find the place of an answer's sentence in its passage, without a model.

A claim is compared with windows of one to three consecutive sentences by the weighted share of its
words that the window holds; the shortest best window becomes the quote. Weights are inverse
document frequencies over the sentences of the evidence at hand, so that words which all passages
share decide nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from app.core.text import tokenise
from app.generation.reading import MAX_QUOTE_CHARS, Claim, ReadText

_MAX_WINDOW = 3
_LENGTH_PENALTY = 0.03
"""What a further sentence in a window must add to the coverage to be worth quoting."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Characters `[start, end)` of the passage, and the claim's share they hold.

    `coverage` is the share of weighted words, in [0, 1].
    """

    start: int
    end: int
    coverage: float


def term_weights(sentences: Iterable[str]) -> dict[str, float]:
    """Return `log(1 + N / df)` per stemmed token over N sentences.

    `WeightedTokens` gives unknown tokens the heaviest weight.
    """
    return token_weights(frozenset(tokenise(sentence)) for sentence in sentences)


def token_weights(sentences: Iterable[AbstractSet[str]]) -> dict[str, float]:
    """Return `term_weights` of sentences given by their distinct tokens."""
    frequencies: Counter[str] = Counter()
    total = 0
    for tokens in sentences:
        frequencies.update(tokens)
        total += 1
    return {token: math.log(1 + total / df) for token, df in frequencies.items()}


class WeightedTokens:
    """Distinct tokens to look for in many places, with their weights."""

    def __init__(self, tokens: Iterable[str], weights: Mapping[str, float]) -> None:
        """Look the weights up; a token that has none gets the heaviest.

        Args:
            tokens: Stemmed tokens; each counts once.
            weights: From `term_weights`.
        """
        heaviest = max(weights.values(), default=1.0)
        self._weighted = [(token, weights.get(token, heaviest)) for token in set(tokens)]
        self._whole = sum(weight for _, weight in self._weighted)

    def share(self, found: AbstractSet[str]) -> float:
        """Return the weighted share of the tokens found, in [0, 1]; 0 without tokens."""
        part = sum(weight for token, weight in self._weighted if token in found)
        return part / self._whole if self._whole else 0.0


def align(claim: Claim, text: ReadText, weights: Mapping[str, float]) -> Alignment | None:
    """Return a text's best window for a claim; None without a shared content word.

    Args:
        claim: What is looked for.
        text: The text that offsets count in.
        weights: From `term_weights`.
    """
    pieces = text.pieces
    held = [tokens & claim.wanted for _, _, tokens in pieces]
    if not any(held):
        return None
    wanted = WeightedTokens(claim.wanted, weights)
    best: tuple[float, Alignment] | None = None
    for first in range(len(pieces)):
        found: frozenset[str] = frozenset()
        for last in range(first, min(first + _MAX_WINDOW, len(pieces))):
            start, end = pieces[first][0], pieces[last][1]
            if end - start > MAX_QUOTE_CHARS or not held[first]:
                break
            if held[last] <= found:
                # a longer window with nothing new is never the best, as one that begins with
                # nothing
                continue
            found |= held[last]
            share = wanted.share(found)
            value = share - _LENGTH_PENALTY * (last - first)
            if best is None or value > best[0] + 1e-9:
                best = (value, Alignment(start, end, share))
    return best[1] if best else None
