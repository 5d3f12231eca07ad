"""Calibrate bands, cutoff and confidence per embedder.

The thresholds were measured with MiniLM on questions with known answers
(evaluation/reports/closeness.md). Another embedder spreads its similarities otherwise. Its row
holds the same thresholds and the line that takes its similarities to MiniLM's scale, from pairs of
the library that both embed: sentences with the passage that they stand in, and with passages of
other documents.

References:
    Kolen, Brennan: Test Equating, Scaling, and Linking, 3rd edition 2014, section 2.4: linear
        equating, here by medians.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from app.core.errors import InvalidInput
from app.core.ids import embedder_key
from app.core.types import Fingerprint
from app.retrieval.options import RetrievalOptions
from app.retrieval.search import Floats

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
        return replace(options, **self.values())  # type: ignore[arg-type]  # every field is a float of the options

    def values(self) -> dict[str, float]:
        """Return the constants by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Rows(Protocol):
    """Stores calibrations made here."""

    def get(self, key: str) -> Mapping[str, float] | None:
        """Return a row, None when there is none."""
        ...

    def put(self, key: str, row: Mapping[str, float]) -> None:
        """Keep a row."""
        ...


class Calibrations:
    """The table: rows that were made here, then those that come with the program."""

    def __init__(self, rows: Rows) -> None:
        """Look into `rows` first."""
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
