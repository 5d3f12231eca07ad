"""Which ranked passages are worth reading, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.types import Band, Fusion, Library, Mode
from app.retrieval.options import RetrievalOptions
from app.retrieval.reading import Reading


def distance_threshold(options: RetrievalOptions, library: Library, mode: Mode) -> float:
    """Return the cosine distance under which a hit passes, in [0, 2], with the slack of compare mode."""
    threshold = options.relevance_threshold if library is Library.PAPERS else options.public_relevance_threshold
    return threshold + options.compare_slack if mode == "compare" else threshold


def passes(reading: Reading, fusion: Fusion, threshold: float, coverage_threshold: float) -> bool:
    """Whether a hit is relevant enough to be read.

    The arm `dense` asks `distance < threshold`. The others also let a hit pass that holds enough of the question's words, so
    that a strong lexical hit is not lost to a distance (DESIGN 5). A hit without a vector is judged by its words alone.
    """
    if reading.distance < threshold:  # False for NaN
        return True
    return fusion != "dense" and reading.overlap >= coverage_threshold


def band(reading: Reading, options: RetrievalOptions, *, passed: bool) -> Band:
    """Return how near the passage is; one that did not pass the cutoff is weak whatever its similarity."""
    if not passed:
        return "weak"
    similarity = reading.similarity
    if similarity is None:
        return "partial"
    if similarity > options.band_strong:
        return "strong"
    return "partial" if similarity >= options.band_partial or reading.overlap >= options.coverage_threshold else "weak"


def mean_closeness(readings: Sequence[Reading]) -> float:
    """Return `1 - mean distance` clamped to [0, 1]: the confidence of the arm `dense`; 0 without any distance."""
    known = [reading.distance for reading in readings if reading.similarity is not None]
    return min(max(1.0 - sum(known) / len(known), 0.0), 1.0) if known else 0.0
