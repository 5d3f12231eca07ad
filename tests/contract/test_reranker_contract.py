"""What every Reranker does."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.ports import Reranker
from app.models.graph import CrossEncoder
from tests.fakes.tiny_cross_encoder import write_cross_encoder

TEXTS = ["the river carries silt to the sea", "snow", "", "mountain snow flows to a delta " * 30]


@pytest.fixture
def reranker(tmp_path: Path) -> Reranker:
    return CrossEncoder(
        write_cross_encoder(tmp_path / "tiny"), threads=1, precision="fp32", max_tokens=60
    )


def test_one_finite_number_per_text(reranker: Reranker) -> None:
    scores = reranker.score("what does the river carry", TEXTS)
    assert len(scores) == len(TEXTS)
    assert all(isinstance(score, float) and abs(score) < 1e6 for score in scores)
    assert reranker.score("what does the river carry", []) == []


def test_the_order_of_texts_does_not_matter(reranker: Reranker) -> None:
    forward = reranker.score("the river", TEXTS)
    assert reranker.score("the river", TEXTS[::-1])[::-1] == pytest.approx(forward, abs=1e-4)


def test_the_question_matters(reranker: Reranker) -> None:
    assert reranker.score("the river", TEXTS) != reranker.score("snow on a mountain", TEXTS)
    assert reranker.name
