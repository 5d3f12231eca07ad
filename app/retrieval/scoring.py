"""A candidate whose passage has been read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

import numpy as np

from app.core.errors import InvalidInput
from app.core.ids import embedder_key
from app.core.languages import DEFAULT
from app.core.text import tokenise
from app.core.types import Band, Filters, Fingerprint, Fusion, Library, Mode, Passage, Signals
from app.retrieval.candidates import Floats, QuestionWords
from app.retrieval.request import RetrievalOptions
from app.storage.catalog.models import CalibrationRows


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
    """Logit of the reader; None where it did not order."""

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

    `score` is fused, `distance` the cosine distance; it and `bm25` are NaN when unknown.
    """
    language = passage.document.language or DEFAULT
    tokens, title = (
        tokenise(text, language) for text in (passage.chunk.text, passage.document.names)
    )
    words = words.stemmed_in(language)
    distinct = frozenset(tokens)
    overlap = words.coverage(distinct, title)
    return Reading(
        passage, distinct, score, distance, bm25, overlap, words.adjacency(tokens, distinct)
    )


# Which ranked passages are worth reading, and how sure that is.


def closeness(similarity: float, overlap: float) -> float:
    """Return the mean of cosine similarity and coverage, in [-0.5, 1].

    `similarity` is in [-1, 1], and `overlap` the idf-weighted coverage of the question, [0, 1]. The
    coverage alone where there is no vector and the similarity is NaN.
    """
    return overlap if math.isnan(similarity) else (similarity + overlap) / 2


def closeness_of(reading: Reading, options: RetrievalOptions) -> float:
    """Return a passage's closeness, with similarity on the thresholds' scale."""
    known = reading.similarity
    return closeness(math.nan if known is None else options.on_scale(known), reading.overlap)


def distance_threshold(options: RetrievalOptions, library: Library) -> float:
    """Return the cosine distance in [0, 2] under which a hit passes in the arm `dense`."""
    if library is Library.PAPERS:
        return options.relevance_threshold
    return options.public_relevance_threshold


def loosened(options: RetrievalOptions, mode: Mode, filters: Filters | None) -> RetrievalOptions:
    """Return options whose cutoffs have the slack of a request."""
    slack = options.compare_slack if mode == "compare" else 0.0
    slack += options.chosen_slack if filters and filters.doc_ids else 0.0
    return replace(
        options,
        relevance_threshold=options.relevance_threshold + slack,
        public_relevance_threshold=options.public_relevance_threshold + slack,
        closeness_threshold=options.closeness_threshold - slack,
        coverage_threshold=options.coverage_threshold - slack,
    )


def passes(reading: Reading, fusion: Fusion, library: Library, options: RetrievalOptions) -> bool:
    """Return whether a hit is relevant enough to be read.

    The arm `dense` asks `distance < threshold`. The others ask for closeness, so that a strong
    lexical hit is not lost to a distance; a hit without a vector is judged by its words alone, and
    more strictly.
    """
    if fusion == "dense":
        return reading.distance < distance_threshold(options, library)  # False for NaN
    if math.isnan(reading.distance):
        return reading.overlap >= options.coverage_threshold
    return closeness_of(reading, options) >= options.closeness_threshold


def band(reading: Reading, options: RetrievalOptions, *, passed: bool) -> Band:
    """Return how near the passage is; a hit that did not pass the cutoff is weak."""
    if not passed:
        return "weak"
    if reading.similarity is None:
        return "partial"
    similarity = options.on_scale(reading.similarity)
    if similarity > options.band_strong:
        return "strong"
    return "partial" if similarity >= options.band_partial else "weak"


MOST_CONFIDENT = 0.99
"""The curve is fitted on some hundred judged questions; no error among 300 shows .99 at best (the
rule of three), so more is not claimed."""


def confidence(readings: Sequence[Reading], fusion: Fusion, options: RetrievalOptions) -> float:
    """Return the probability in [0, MOST_CONFIDENT] that passages are on topic; 0 if none.

    In the arm `dense` it is `1 - mean distance`, clamped; elsewhere a logistic curve of the closest
    passage.

    References:
        Platt: Probabilistic outputs for support vector machines, 1999; the two constants are
            options.
    """
    if not readings:
        return 0.0
    if fusion == "dense":
        known = [reading.distance for reading in readings if reading.similarity is not None]
        mean = 1.0 - sum(known) / len(known) if known else 0.0
        return min(max(mean, 0.0), MOST_CONFIDENT)
    best = max(closeness_of(reading, options) for reading in readings)
    curve = 1.0 + math.exp(-options.confidence_slope * (best - options.confidence_midpoint))
    return min(1.0 / curve, MOST_CONFIDENT)


# Calibrate bands, cutoff and confidence per embedder.

FEWEST = 20
"""Pairs of each kind under which the medians say nothing."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A row of the table; the fields are those of RetrievalOptions."""

    closeness_threshold: float
    confidence_midpoint: float
    confidence_slope: float
    band_strong: float
    band_partial: float
    similarity_offset: float = 0.0
    similarity_scale: float = 1.0

    def applied(self, options: RetrievalOptions) -> RetrievalOptions:
        """Return the options with this row's constants."""
        # every field is a float of the options
        return replace(options, **self.values())  # type: ignore[arg-type]

    def values(self) -> dict[str, float]:
        """Return the constants by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Calibrations:
    """The table: rows that were made here, then those that come with the program."""

    def __init__(self, rows: CalibrationRows) -> None:
        self._rows = rows

    def of(self, fingerprint: Fingerprint) -> Calibration | None:
        """Return the row of a library's embedder, None when it has none."""
        key = embedder_key(fingerprint)
        row = self._rows.get(key) or packaged().get(key)
        return Calibration(**row) if row else None

    def keep(self, fingerprint: Fingerprint, row: Calibration) -> None:
        """Keep the row of an embedder."""
        self._rows.put(embedder_key(fingerprint), row.values())


@cache
def packaged() -> Mapping[str, Mapping[str, float]]:
    """Return the rows that come with the program, by the embedder's key."""
    data = json.loads(Path(__file__).with_name("calibrations.json").read_text(encoding="utf-8"))
    return {key: row["constants"] for key, row in data.items()}


def equated(
    base: RetrievalOptions, known: Floats, others: Floats, base_known: Floats, base_others: Floats
) -> Calibration:
    """Return the calibration whose medians equal MiniLM's on the same pairs.

    Args:
        base: Thresholds on MiniLM's scale.
        known: Cosine similarities of sentences and their passages, by the embedder, float64 `[n]`.
        others: The same of sentences and passages of other documents.
        base_known: As `known`, by MiniLM.
        base_others: As `others`, by MiniLM.

    Raises:
        InvalidInput: Too few pairs, or the embedder does not tell a sentence's own passage from
            others.
    """
    if min(len(known), len(others)) < FEWEST:
        raise InvalidInput(
            f"the library has {min(len(known), len(others))} sentences to compare and {FEWEST} are"
            " needed: calibrate it when it"
            " holds more documents"
        )
    near, far = float(np.median(known)), float(np.median(others))
    base_near, base_far = float(np.median(base_known)), float(np.median(base_others))
    if near <= far or base_near <= base_far:
        raise InvalidInput(
            f"sentences are no nearer to their own passages (median similarity {near:.3f}) than to"
            f" others ({far:.3f}): the"
            " embedding model does not suit these documents"
        )
    scale = (near - far) / (base_near - base_far)
    return Calibration(
        base.closeness_threshold,
        base.confidence_midpoint,
        base.confidence_slope,
        base.band_strong,
        base.band_partial,
        similarity_offset=round(far - scale * base_far, 4),
        similarity_scale=round(scale, 4),
    )
