"""Rerank the best passages: keywords, late interaction, a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.core.dates import LAST_DAY, dates_in
from app.core.errors import InvalidInput
from app.core.languages import DEFAULT
from app.core.ports import PassageEncoder, Reader
from app.core.text import identifiers, tokenise, words
from app.core.types import (
    STATE_DIMENSION,
    Fusion,
    Library,
    Passage,
    PassageCode,
    QuestionCode,
    Rerank,
)
from app.core.vectors import max_sim
from app.retrieval.candidates import Floats, QuestionWords
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.retrieval.retrievers import Pool
from app.retrieval.scoring import Reading
from app.retrieval.wording import quotes
from app.storage.catalog.passage_codes import PassageCodeStore

# Score passages by late interaction: best sentence, best token per word.


@dataclass(frozen=True, slots=True)
class LateInteraction:
    """Provides codes of passages and encodes questions."""

    codes: PassageCodeStore
    encoder: PassageEncoder


def late_signals(
    question: QuestionCode, words: QuestionWords, codes: Sequence[PassageCode | None]
) -> tuple[Floats, Floats]:
    """Return best-sentence cosine and MaxSim per passage, float64 `[n]`.

    In [-1, 1]; NaN without a code. MaxSim is weighted by idf.
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
    tokens[known] = max_sim(question, words.weights, held)
    return sentence, tokens


def with_late(
    scores: Floats, signals: tuple[Floats, Floats], *, sentence_weight: float, token_weight: float
) -> Floats:
    """Return `score + a * sentence + b * MaxSim`.

    A passage without a code counts as the mean of the others.
    """
    sentence, tokens = (_filled(values) for values in signals)
    return scores + sentence_weight * sentence + token_weight * tokens


def _starts(sizes: Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.cumsum([0, *sizes[:-1]])


def _filled(values: Floats) -> Floats:
    known = values[~np.isnan(values)]
    return np.where(np.isnan(values), known.mean() if len(known) else 0.0, values)


class Reranking:
    """The arms that reorder the head; stateless, shared by threads."""

    def __init__(
        self, reader: Reader | None, late: LateInteraction | None, options: RetrievalOptions
    ) -> None:
        """Keep the reader and the codes of passages, None where there are none."""
        self._reader = reader
        self._late = late
        self._options = options

    def arm(self, request: SearchRequest) -> Rerank:
        """Return what orders the head once more; never `auto`.

        Raises:
            InvalidInput: The reader is asked for and left out, or late interaction where it is not
                possible.
        """
        wanted, fusion = (
            request.rerank or self._options.rerank,
            request.fusion or self._options.fusion,
        )
        if wanted == "auto":
            return "late" if self._late is not None and fusion == "relative_score" else "none"
        if wanted == "late" and (self._late is None or fusion != "relative_score"):
            raise InvalidInput(
                "rerank 'late' needs fusion 'relative_score' and LATE_INTERACTION_MAX_CHUNKS over"
                " 0; or ask for 'auto'"
            )
        if wanted == "cross_encoder" and self._reader is None:
            raise InvalidInput(
                "rerank 'cross_encoder' needs the reader, which READER=false leaves out; ask for"
                " 'auto'"
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
        """Apply the keyword, late and cross-encoder arms that are on; sort."""
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
        readings.sort(key=lambda r: -r.score)
        _put_first(readings, _Named.by(request.text, pool.words))
        if arm == "cross_encoder" and self._reader is not None and readings:
            _cross_encode(self._reader, request.text, readings, self._options.cross_encoder_head)


class _Named(NamedTuple):
    """What a question names word for word."""

    codes: AbstractSet[str]
    quotes: Sequence[str]
    tokens: AbstractSet[str]
    """All of its words, where they could be the name of a file."""

    @classmethod
    def by(cls, text: str, words: QuestionWords) -> _Named:
        return cls(
            _codes(text),
            quotes(text),
            set(words.weights) if len(words.weights) > 1 else frozenset(),
        )

    def lacking(self, passage: Passage) -> int:
        """Return how many of its codes and quotes a passage lacks; its file's name is one more."""
        document = passage.document
        file = document.filename.rpartition(".")[0]
        said = f"{file}\n{document.names}\n{passage.chunk.text}"
        spoken = f" {' '.join(words(said))} " if self.quotes else ""
        missing = sum(quote not in spoken for quote in self.quotes)
        missing += len(self.codes - _codes(said)) if self.codes else 0
        is_named = bool(self.tokens) and self.tokens <= set(
            tokenise(file, document.language or DEFAULT)
        )
        return missing + (not is_named)


def _put_first(readings: list[Reading], named: _Named) -> None:
    """Let no passage stand above one that has more of what a question names. Places keep scores."""
    scores = [reading.score for reading in readings]
    readings.sort(key=lambda reading: named.lacking(reading.passage))
    for reading, score in zip(readings, scores, strict=True):
        reading.score = score


def _codes(text: str) -> set[str]:
    """Return a text's codes, and its dates with a year in one form."""
    _, dates = dates_in(text)
    return {*identifiers(text), *(str(date) for date in dates if date > LAST_DAY)}


def _add_late(
    readings: Sequence[Reading],
    code: QuestionCode,
    words: QuestionWords,
    held: PassageCodeStore,
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


def _cross_encode(reader: Reader, question: str, readings: list[Reading], head: int) -> None:
    """Order the head by logit; the rest follows with lower scores."""
    first, rest = readings[:head], readings[head:]
    for reading, logit in zip(
        first, reader.answers(question, [r.passage.chunk.text for r in first]), strict=True
    ):
        reading.score = reading.rerank = float(logit)
    first.sort(key=lambda r: -r.score)
    for rank, reading in enumerate(rest, 1):
        reading.score = first[-1].score - rank
    readings[:] = first + rest
