"""Best-sentence reranking: a passage is as good as its best sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.core.ports import Embedder
from app.core.sentences import sentence_spans
from app.core.types import FloatArray
from app.retrieval.search import Floats


def best_sentence_similarities(
    query: FloatArray, texts: Sequence[str], embedder: Embedder
) -> Floats:
    """Return the cosine of each text's nearest sentence, float64 `[n]`; NaN if blank.

    Args:
        query: float32 `[dim]`, norm 1.
        texts: Passages; all their sentences are embedded in one call.
        embedder: The library's own.
    """
    sentences: list[str] = []
    owner: list[int] = []
    for row, text in enumerate(texts):
        for start, end in sentence_spans(text):
            sentences.append(text[start:end])
            owner.append(row)
    best = np.full(len(texts), -np.inf)
    if sentences:
        np.maximum.at(best, owner, (embedder.embed_passages(sentences) @ query).astype(np.float64))
    return np.where(np.isinf(best), np.nan, best)


def with_sentences(scores: Floats, sentence: Floats, weight: float) -> Floats:
    """Return `score + weight * similarity`; a text without sentences adds 0.

    The raw cosine is added, not one scaled to the head: scaling would stretch the small differences
    of a head that is all off-topic (measured in evaluation/reports/fusion.md).

    Args:
        scores: float64 `[n]`, fused, in [0, 1].
        sentence: float64 `[n]`, cosine similarities, NaN where unknown.
        weight: Of the similarity.
    """
    return scores + weight * np.nan_to_num(sentence, nan=0.0)
