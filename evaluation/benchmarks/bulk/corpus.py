"""Generate any amount of clean text cheaply: Zipf vocabulary, pooled sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from app.core.types import Article

_SENTENCES = 200_000
_VOCABULARY = 100_000
_ZIPF = 1.05  # English text: about 1 (Piantadosi 2014)
_SENTENCES_PER_ARTICLE = 34
CHUNKS_PER_ARTICLE = 5.0
"""Of this corpus at the default chunk size: tells how many articles a step needs. The step's own
count is what is reported."""


class TextPool:
    """Seeded articles, in constant memory apart from the pool of sentences."""

    def __init__(self, seed: int = 7) -> None:
        """Make the sentences."""
        rng = np.random.default_rng(seed)
        weights = np.arange(1, _VOCABULARY + 1, dtype=np.float64) ** -_ZIPF
        lengths = rng.integers(8, 28, _SENTENCES)
        ranks = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(int(lengths.sum())))
        names = [_word(number) for number in range(_VOCABULARY + 1)]
        words = [names[rank] for rank in ranks]
        self.sentences: list[str] = []
        at = 0
        for length in lengths:
            self.sentences.append(" ".join(words[at : at + length]).capitalize() + ".")
            at += length
        self._seed = seed

    def articles(self, count: int) -> Iterator[Article]:
        """Yield `count` articles of several paragraphs each."""
        rng = np.random.default_rng(self._seed + 1)
        for number in range(count):
            chosen = rng.integers(0, len(self.sentences), _SENTENCES_PER_ARTICLE)
            paragraphs = [
                " ".join(self.sentences[i] for i in chosen[at : at + 6])
                for at in range(0, len(chosen), 6)
            ]
            yield Article(
                str(number + 1),
                "1",
                f"{_word(number % _VOCABULARY)} {number}",
                "text",
                "\n\n".join(paragraphs),
            )

    def queries(self, count: int) -> list[str]:
        """Return windows of 8 to 12 words of indexed sentences."""
        rng = np.random.default_rng(self._seed + 2)
        found: list[str] = []
        while len(found) < count:
            words = self.sentences[int(rng.integers(_SENTENCES))].split()
            size = int(rng.integers(8, 13))
            if len(words) >= size:
                start = int(rng.integers(0, len(words) - size + 1))
                found.append(" ".join(words[start : start + size]))
        return found


def _word(number: int) -> str:
    """Return a pronounceable word, a different one for each number, short ones first."""
    syllables = ""
    number += 1
    while number:
        number, digit = divmod(number, 70)
        syllables += "bcdfghklmnprst"[digit // 5] + "aeiou"[digit % 5]
    return syllables
