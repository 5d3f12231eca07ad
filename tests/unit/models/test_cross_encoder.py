from __future__ import annotations

from pathlib import Path

import pytest

from app.core.errors import Unreadable
from app.models.graph import CrossEncoder
from tests.fakes.tiny_cross_encoder import TINY, VOCABULARY, write_cross_encoder

TEXTS = [
    "the river carries silt to the sea",
    "snow",
    "the delta of a river " * 8,
    "mountain snow flows",
]


def expected(question: str, text: str, limit: int) -> float:
    """The logit by the numpy forward pass."""
    left = [2, *(VOCABULARY[word] for word in question.split()), 3]
    right = [*(VOCABULARY[word] for word in text.split()), 3]
    ids = [*left, *right]
    if len(ids) > limit:
        ids = [*ids[: limit - 1], 3]
    return TINY.logit(
        TINY.weights(seed=7, prefix="bert.", classifier=True),
        ids,
        [0] * len(left) + [1] * (len(ids) - len(left)),
    )


def test_logits_equal_the_numpy_forward_pass(tmp_path: Path) -> None:
    model = CrossEncoder(
        write_cross_encoder(tmp_path / "tiny-ranker"), threads=1, precision="fp32", max_tokens=20
    )
    question = "a river to the sea"
    assert model.score(question, TEXTS) == pytest.approx(
        [expected(question, text, 20) for text in TEXTS], abs=1e-4
    )
    assert model.score(question, []) == []
    assert model.name == "tiny-ranker"


def test_a_pair_longer_than_the_model_is_cut_to_its_positions(tmp_path: Path) -> None:
    model = CrossEncoder(write_cross_encoder(tmp_path / "short"), threads=1, precision="fp32")
    long = "the river carries silt to the sea " * 40
    assert model.score("a river", [long]) == pytest.approx(
        [expected("a river", long, TINY.positions)], abs=1e-4
    )


def test_int8_is_close_and_cached(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "tiny")
    exact = CrossEncoder(folder, threads=1, precision="fp32").score("snow", TEXTS)
    quantised = CrossEncoder(folder, tmp_path / "cache", threads=1).score("snow", TEXTS)
    assert quantised == pytest.approx(exact, abs=0.15)
    assert len(list((tmp_path / "cache").iterdir())) == 1


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    folder = write_cross_encoder(tmp_path / "tiny")
    (folder / missing).unlink()
    with pytest.raises(Unreadable, match=missing.replace(".", r"\.")):
        CrossEncoder(folder)
