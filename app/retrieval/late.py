"""Score passages by late interaction: best sentence, best token per word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.ports import PassageCodes, PassageEncoder
from app.core.types import STATE_DIMENSION, TOKEN_BITS, FloatArray, PassageCode, QuestionCode
from app.retrieval.keywords import QuestionWords
from app.retrieval.search import Floats


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """Provides codes of passages and encodes questions."""

    codes: PassageCodes
    encoder: PassageEncoder


def late_signals(
    question: QuestionCode, words: QuestionWords, codes: Sequence[PassageCode | None]
) -> tuple[Floats, Floats]:
    """Return best-sentence cosine and MaxSim per passage, float64 `[n]`.

    In [-1, 1]; NaN without a code. MaxSim is the mean, weighted by idf, over the question's tokens
    of the similarity of the passage's most similar token. A word of several tokens shares its
    weight among them; a question without telling words weighs all alike.

    Args:
        question: Of the same model.
        words: The question's, with their idf.
        codes: One a passage.

    References:
        Khattab, Zaharia: ColBERT, SIGIR 2020, equation 3; the weights are ours.
    """
    sentence, tokens = np.full(len(codes), np.nan), np.full(len(codes), np.nan)
    known = [row for row, code in enumerate(codes) if code is not None]
    held = [code for code in codes if code is not None]
    if not held:
        return sentence, tokens
    rows = np.frombuffer(b"".join(code.sentences for code in held), dtype=np.int8).reshape(
        -1, STATE_DIMENSION
    )
    nearness = rows.astype(np.float32) @ question.vector / 127
    sentence[known] = np.maximum.reduceat(
        nearness, _starts([len(code.sentences) // STATE_DIMENSION for code in held])
    )
    weights = _weights(question, words)
    asked = weights > 0
    if asked.any():
        size = TOKEN_BITS // 8
        packed = np.frombuffer(b"".join(code.tokens for code in held), dtype=np.uint8).reshape(
            -1, size
        )
        signs = np.unpackbits(packed, axis=1).astype(np.float32) * 2 - 1
        likeness = signs @ question.directions[asked].T / np.float32(np.sqrt(TOKEN_BITS))
        best = np.maximum.reduceat(
            likeness, _starts([len(code.tokens) // size for code in held]), axis=0
        )
        tokens[known] = best @ weights[asked]
    return sentence, tokens


def with_late(
    scores: Floats, signals: tuple[Floats, Floats], *, sentence_weight: float, token_weight: float
) -> Floats:
    """Return `score + a * sentence + b * MaxSim`.

    A passage without a code counts as the mean of the others.

    Args:
        scores: float64 `[n]`, fused.
        signals: Of `late_signals`.
        sentence_weight: a.
        token_weight: b.
    """
    sentence, tokens = (_filled(values) for values in signals)
    return scores + sentence_weight * sentence + token_weight * tokens


def _weights(question: QuestionCode, words: QuestionWords) -> FloatArray:
    """Return the share of each token of the question, float32 `[n]`, sum 1."""
    weights = np.array(
        [
            words.weights.get(stem, 0.0) / n
            for stem, n in zip(question.stems, question.pieces, strict=True)
        ],
        dtype=np.float32,
    )
    if not weights.any():
        weights = np.ones(len(question.stems), dtype=np.float32)
    return weights / max(float(weights.sum()), 1e-9)


def _starts(sizes: Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.cumsum([0, *sizes[:-1]])


def _filled(values: Floats) -> Floats:
    known = values[~np.isnan(values)]
    return np.where(np.isnan(values), known.mean() if len(known) else 0.0, values)
