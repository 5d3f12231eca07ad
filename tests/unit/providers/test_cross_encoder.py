from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from app.core.errors import Unreadable
from app.providers.cross_encoder import CrossEncoder
from tests.fakes.bert import TinyBert, write_safetensors

TINY = TinyBert()
WORDS = "sea river delta mountain snow silt flows carries the a of to".split()
VOCABULARY = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
TEXTS = ["the river carries silt to the sea", "snow", "the delta of a river " * 8, "mountain snow flows"]


def write_model(folder: Path) -> Path:
    """A cross-encoder with small random weights."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY.config()))
    write_safetensors(folder / "model.safetensors", TINY.weights(seed=7, prefix="bert.", classifier=True))
    tokenizer = Tokenizer(WordPiece(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def expected(question: str, text: str, limit: int) -> float:
    """The logit by the numpy forward pass."""
    left = [2, *(VOCABULARY[word] for word in question.split()), 3]
    right = [*(VOCABULARY[word] for word in text.split()), 3]
    ids = [*left, *right]
    if len(ids) > limit:
        ids = [*ids[: limit - 1], 3]
    return TINY.logit(TINY.weights(seed=7, prefix="bert.", classifier=True), ids, [0] * len(left) + [1] * (len(ids) - len(left)))


def test_logits_equal_the_numpy_forward_pass(tmp_path: Path) -> None:
    model = CrossEncoder(write_model(tmp_path / "tiny-ranker"), threads=1, precision="fp32", max_tokens=20)
    question = "a river to the sea"
    assert model.score(question, TEXTS) == pytest.approx([expected(question, text, 20) for text in TEXTS], abs=1e-4)
    assert model.score(question, []) == []
    assert model.name == "tiny-ranker"


def test_int8_is_close_and_cached(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "tiny")
    exact = CrossEncoder(folder, threads=1, precision="fp32").score("snow", TEXTS)
    quantised = CrossEncoder(folder, tmp_path / "cache", threads=1).score("snow", TEXTS)
    assert quantised == pytest.approx(exact, abs=0.15)
    assert len(list((tmp_path / "cache").iterdir())) == 1


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    folder = write_model(tmp_path / "tiny")
    (folder / missing).unlink()
    with pytest.raises(Unreadable, match=missing.replace(".", r"\.")):
        CrossEncoder(folder)
