"""Define the codes of passages and questions for late interaction."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.types.vocabulary import FloatArray

STATE_DIMENSION = 384
"""Of a token state of the embedded model."""
TOKEN_BITS = 128
"""Of a token's code."""
MAX_SENTENCES = 32
"""Sentence vectors of one passage."""
MAX_TOKENS = 65_536
"""Token codes of one passage; bulk text that is not cut has fewer."""
CODES_VERSION = "minilm-128-1"
"""Raise it when model, axes or layout change: codes of another version are rebuilt."""


@dataclass(frozen=True, slots=True)
class PassageCode:
    """One chunk: a vector a sentence and 128 bits a token."""

    sentences: bytes
    """int8 `[s, 384]`, 1 to 32 rows: the mean of a sentence's token states, scaled to norm 127."""
    tokens: bytes
    """uint8 `[t, 16]`, at least one row: signs of the centred state on 128 axes, first axis in
    the highest bit."""

    def fits(self) -> bool:
        """Return whether both have whole rows, and as many as a passage may have."""
        sentences, rest = divmod(len(self.sentences), STATE_DIMENSION)
        return (
            rest == 0
            and 0 < sentences <= MAX_SENTENCES
            and 0 < len(self.tokens) <= 16 * MAX_TOKENS
            and len(self.tokens) % 16 == 0
        )


@dataclass(frozen=True, slots=True, eq=False)
class QuestionCode:
    """One question, from one run of the embedded model."""

    vector: FloatArray
    """float32 `[384]`, norm 1: the same as `embed_query` gives."""
    directions: FloatArray
    """float32 `[n, 128]`, rows of norm 1: centred token states on the axes, without the model's
    own tokens."""
    stems: tuple[str, ...]
    """The stemmed word that each token belongs to, `n` of them; empty where it is none."""
    pieces: tuple[int, ...]
    """How many tokens that word has."""

    @property
    def common_stems(self) -> frozenset[str]:
        """Return stems of words that are one token of the model.

        The model has 30,000 whole words; a misspelt word is seldom among them.
        """
        return frozenset(stem for stem, n in zip(self.stems, self.pieces, strict=True) if n == 1)
