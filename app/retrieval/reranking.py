"""Rerank the best passages: keywords, late interaction, sentences, a model."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import numpy as np

from app.core.errors import InvalidInput, ProviderError
from app.core.languages import DEFAULT
from app.core.ports import Embedder, PassageCodes, Reranker
from app.core.types import FloatArray, Fusion, Library, QuestionCode, Rerank
from app.retrieval.keywords import QuestionWords
from app.retrieval.late import LateInteraction, late_signals, with_late
from app.retrieval.legs import Pool
from app.retrieval.options import RetrievalOptions
from app.retrieval.reading import Reading
from app.retrieval.request import SearchRequest
from app.retrieval.sentences import best_sentence_similarities, with_sentences

_LOG = logging.getLogger(__name__)


class Reranking:
    """The arms that reorder the head; stateless, shared by threads."""

    def __init__(
        self,
        embedder: Embedder | None,
        reranker: Reranker | None,
        late: LateInteraction | None,
        options: RetrievalOptions,
    ) -> None:
        """Keep the models.

        Args:
            embedder: Embeds sentences; None leaves that arm out.
            reranker: A cross-encoder; None where none is configured.
            late: Codes of passages; None where none are kept.
            options: Which arm by default, and weights.
        """
        self._embedder = embedder
        self._reranker = reranker
        self._late = late
        self._options = options

    def arm(self, request: SearchRequest) -> Rerank:
        """Return what orders the head once more; never `auto`.

        Raises:
            InvalidInput: A cross-encoder is asked for and none is configured, or late interaction
                where it is not possible.
        """
        wanted, fusion = (
            request.rerank or self._options.rerank,
            request.fusion or self._options.fusion,
        )
        if wanted == "auto":
            if self._reranker is not None:
                return "cross_encoder"
            return "late" if self._late is not None and fusion == "relative_score" else "none"
        if wanted == "late" and (self._late is None or fusion != "relative_score"):
            raise InvalidInput(
                "rerank 'late' needs fusion 'relative_score' and LATE_INTERACTION_MAX_CHUNKS over"
                " 0; or ask for 'auto'"
            )
        if wanted == "cross_encoder" and self._reranker is None:
            raise InvalidInput(
                "rerank 'cross_encoder' needs a model; set CROSS_ENCODER_DIR, or ask for 'auto'"
            )
        return wanted

    def keyword_weight(self, library: Library, fusion: Fusion) -> float:
        """Return how much keyword overlap adds to a score; 0.0 where it is off."""
        if fusion == "relative_score":
            return self._options.keyword_fusion_weight
        if fusion != "dense":
            return 0.0
        return (
            self._options.public_keyword_rerank_weight
            if library is Library.PUBLIC
            else self._options.keyword_rerank_weight
        )

    def apply(
        self, request: SearchRequest, fusion: Fusion, readings: list[Reading], pool: Pool
    ) -> None:
        """Apply the keyword, sentence and cross-encoder arms that are on; sort."""
        keywords = self.keyword_weight(request.library, fusion)
        phrases = self._options.phrase_fusion_weight if fusion == "relative_score" else 0.0
        if keywords or phrases:
            for reading in readings:
                reading.score += keywords * reading.overlap + phrases * reading.adjacency
        arm = self.arm(request)
        if self._late is not None and pool.code is not None:
            _add_late(
                readings, pool.code, pool.words.stemmed_in(DEFAULT), self._late.codes, self._options
            )
        if arm == "sentences" and pool.vector is not None and self._embedder is not None:
            _add_best_sentences(
                readings, pool.vector, self._embedder, self._options.sentence_weight
            )
        readings.sort(key=lambda r: -r.score)
        if arm == "cross_encoder" and self._reranker is not None and readings:
            _cross_encode(self._reranker, request.text, readings, self._options.cross_encoder_head)


def _add_late(
    readings: Sequence[Reading],
    code: QuestionCode,
    words: QuestionWords,
    held: PassageCodes,
    options: RetrievalOptions,
) -> None:
    codes = held.codes([r.passage.chunk.chunk_id for r in readings])
    signals = late_signals(code, words, [codes.get(r.passage.chunk.chunk_id) for r in readings])
    scores = with_late(
        np.array([r.score for r in readings]),
        signals,
        sentence_weight=options.late_sentence_weight,
        token_weight=options.late_token_weight,
    )
    for reading, score, best in zip(readings, scores.tolist(), signals[0].tolist(), strict=True):
        reading.score, reading.sentence = score, None if math.isnan(best) else best


def _add_best_sentences(
    readings: Sequence[Reading], vector: FloatArray, embedder: Embedder, weight: float
) -> None:
    texts = [r.passage.chunk.text for r in readings]
    try:
        found = best_sentence_similarities(vector, texts, embedder)
    except ProviderError as exc:
        _LOG.warning("the order stays without sentences: the embedder failed: %s", exc)
        return
    fused = with_sentences(np.array([r.score for r in readings]), found, weight)
    for reading, score, best in zip(readings, fused.tolist(), found.tolist(), strict=True):
        reading.score, reading.sentence = score, None if math.isnan(best) else best


def _cross_encode(reranker: Reranker, question: str, readings: list[Reading], head: int) -> None:
    """Order the head by logit; the rest follows with lower scores."""
    first, rest = readings[:head], readings[head:]
    for reading, logit in zip(
        first, reranker.score(question, [r.passage.chunk.text for r in first]), strict=True
    ):
        reading.score = reading.rerank = float(logit)
    first.sort(key=lambda r: -r.score)
    for rank, reading in enumerate(rest, 1):
        reading.score = first[-1].score - rank
    readings[:] = first + rest
