"""Fit how figures grow with the number of chunks, and extrapolate to Wikipedia.

Fitted on small libraries, tested on the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluation.benchmarks.bulk.growth import Figures

Law = Literal["linear", "logarithmic"]

LAWS: dict[str, tuple[Law, str]] = {
    "index_cpu_s": (
        "linear",
        "every chunk is cut, stored and indexed once, and merged a few times",
    ),
    "disk_mb": ("linear", "every chunk has its rows and its postings"),
    "bm25_p95_ms": (
        "linear",
        "a posting list is as long as its word is frequent, and the words of a question are read"
        " through",
    ),
    "index_pss_mb": (
        "logarithmic",
        "heaps and caches have fixed sizes; what is added is a segment for each doubling or so,"
        " and its share of a merge",
    ),
}
"""What each figure should follow, and why."""
FITTED_UP_TO = 100_000
WIKIPEDIA_CHUNKS = 25_000_000
"""English Wikipedia at the default chunk size."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Growth of a figure: `intercept + slope * f(chunks)`.

    f is the identity or the natural logarithm.
    """

    name: str
    law: Law
    why: str
    slope: float
    intercept: float
    predicted: float
    """At the largest step."""
    measured: float
    at_wikipedia: float
    """At 25 million chunks."""


def fit(steps: Sequence[Figures]) -> list[Fit]:
    """Fit steps up to 100,000 chunks; predict the largest step and Wikipedia.

    Empty under two steps.
    """
    small = [figures for figures in steps if figures["chunks"] <= 1.05 * FITTED_UP_TO]
    if len(small) < 2:
        return []
    largest = max(steps, key=lambda figures: figures["chunks"])
    return [_fit(name, law, why, small, largest) for name, (law, why) in LAWS.items()]


def _fit(name: str, law: Law, why: str, small: Sequence[Figures], largest: Figures) -> Fit:
    along: Callable[[npt.ArrayLike], npt.NDArray[np.float64]] = (
        np.log if law == "logarithmic" else np.asarray
    )
    slope, intercept = np.polyfit(
        along([figures["chunks"] for figures in small]), [figures[name] for figures in small], 1
    )

    def at(chunks: float) -> float:
        return float(intercept + slope * along(chunks))

    return Fit(
        name,
        law,
        why,
        float(slope),
        float(intercept),
        at(largest["chunks"]),
        largest[name],
        at(WIKIPEDIA_CHUNKS),
    )
