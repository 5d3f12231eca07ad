"""A candidate whose passage has been read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.core.languages import DEFAULT
from app.core.text import tokenise
from app.core.types import Passage, Signals
from app.retrieval.keywords import QuestionWords


@dataclass(slots=True, eq=False)
class Reading:
    """A passage while one question ranks it: each step notes what it says of it."""

    passage: Passage
    tokens: frozenset[str]
    """Distinct stemmed tokens of the text."""
    score: float
    """Higher is better; scale of the fusion in use."""
    distance: float = math.nan
    """Cosine distance in [0, 2]; NaN without a vector."""
    bm25: float = math.nan
    """BM25; NaN when the lexical leg did not say."""
    overlap: float = 0.0
    """Idf-weighted share of the question's words in title and text, [0, 1]."""
    adjacency: float = 0.0
    """Weighted share of the question's word pairs that stand side by side in the text, [0, 1]."""
    sentence: float | None = None
    """Cosine similarity of the best sentence, [-1, 1]; None when it was not asked for."""
    rerank: float | None = None
    """Cross-encoder logit; None without one."""

    @property
    def source(self) -> str:
        """Return the document this passage counts for; copies count for the first one.

        Copies are documents with the same bytes.
        """
        document = self.passage.document
        return document.duplicate_of or document.doc_id

    @property
    def similarity(self) -> float | None:
        """Cosine similarity in [-1, 1], None without a vector."""
        return None if math.isnan(self.distance) else 1.0 - self.distance

    @property
    def signals(self) -> Signals:
        """Return the values to show."""
        return Signals(
            dense=None if math.isnan(self.distance) else self.distance,
            bm25=None if math.isnan(self.bm25) else self.bm25,
            overlap=self.overlap,
            sentence=self.sentence,
            rerank=self.rerank,
        )


def read(
    passage: Passage, words: QuestionWords, *, score: float, distance: float, bm25: float
) -> Reading:
    """Tokenise a passage once and note how much of the question it holds.

    Args:
        passage: The candidate.
        words: Of the question, with their idf.
        score: Fused score.
        distance: Cosine distance, NaN when unknown.
        bm25: BM25, NaN when unknown.
    """
    language = passage.document.language or DEFAULT
    tokens, title = (
        tokenise(text, language) for text in (passage.chunk.text, passage.document.title)
    )
    words = words.stemmed_in(language)
    distinct = frozenset(tokens)
    overlap = words.coverage(distinct, title)
    return Reading(
        passage, distinct, score, distance, bm25, overlap, words.adjacency(tokens, distinct)
    )
