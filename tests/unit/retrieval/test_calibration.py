"""Similarities of one embedder on the scale of another."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.ids import embedder_key
from app.core.types import Fingerprint
from app.models.minilm import MiniLmEmbedder
from app.models.multilingual import MultilingualEmbedder
from app.retrieval.request import RetrievalOptions
from app.retrieval.scoring import (
    FEWEST,
    Calibration,
    Calibrations,
    Reading,
    band,
    confidence,
    equated,
    packaged,
    passes,
)
from app.storage.catalog.models import CalibrationRows
from tests.stores import catalog_database, passage

OPTIONS = RetrievalOptions()


def _reading(similarity: float, overlap: float = 0.3) -> Reading:
    return Reading(
        passage("text"), frozenset({"text"}), 1.0, distance=1 - similarity, overlap=overlap
    )


def test_the_row_that_ships_is_of_the_embedded_model_and_holds_the_defaults() -> None:
    made = MiniLmEmbedder().identity
    fingerprint = Fingerprint(
        made.model,
        made.digest,
        made.dimension,
        made.query_prefix,
        made.passage_prefix,
        "any",
        "any",
    )
    other = MultilingualEmbedder().identity
    multilingual = Fingerprint(other.model, other.digest, other.dimension, "", "", "any", "any")
    assert list(packaged()) == [embedder_key(fingerprint), embedder_key(multilingual)]
    row = Calibrations(CalibrationRows(catalog_database())).of(fingerprint)
    assert row is not None
    assert row.applied(OPTIONS) == OPTIONS


def test_an_embedder_that_spreads_otherwise_gets_the_same_bands_cutoff_and_confidence() -> None:
    rng = np.random.default_rng(1)
    known, others = rng.normal(0.7, 0.05, 60), rng.normal(0.05, 0.05, 60)
    squeezed = [
        0.6 + 0.3 * kind for kind in (known, others)
    ]  # like embedders whose strangers are at 0.6
    row = equated(OPTIONS, squeezed[0], squeezed[1], known, others)
    assert (row.similarity_offset, row.similarity_scale) == pytest.approx((0.6, 0.3), abs=1e-3)
    other = row.applied(OPTIONS)
    for similarity in (0.1, 0.24, 0.36, 0.44, 0.6):
        mine, theirs = _reading(similarity), _reading(0.6 + 0.3 * similarity)
        assert band(theirs, other, passed=True) == band(mine, OPTIONS, passed=True)
        judged = [
            passes(reading, "relative_score", reading.passage.chunk.library, options)
            for reading, options in ((mine, OPTIONS), (theirs, other))
        ]
        assert judged[0] == judged[1]
        assert confidence([theirs], "relative_score", other) == pytest.approx(
            confidence([mine], "relative_score", OPTIONS), abs=0.02
        )


def test_a_low_similarity_is_weak_however_many_words_are_shared() -> None:
    assert band(_reading(0.24, overlap=0.9), OPTIONS, passed=True) == "weak"


def test_too_few_pairs_and_an_embedder_that_tells_nothing_apart_are_refused() -> None:
    near, far = np.full(FEWEST, 0.7), np.full(FEWEST, 0.1)
    with pytest.raises(InvalidInput, match="20 are needed"):
        equated(OPTIONS, near[1:], far, near, far)
    with pytest.raises(InvalidInput, match="no nearer"):
        equated(OPTIONS, far, far, near, far)


def test_rows_made_here_come_first() -> None:
    fingerprint = Fingerprint("m", "d", 3, "", "", "c", "a")
    table = Calibrations(CalibrationRows(catalog_database()))
    assert table.of(fingerprint) is None
    row = Calibration(0.4, 0.4, 20.0, 0.5, 0.3, 0.1, 0.9)
    table.keep(fingerprint, row)
    assert table.of(fingerprint) == row
