"""A cross-encoder directory with small random weights, in the layout of a downloaded model."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from tests.fakes.bert import TinyBert, write_safetensors

TINY = TinyBert()
WORDS = "sea river delta mountain snow silt flows carries the a of to".split()
VOCABULARY = {
    word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])
}


def write_cross_encoder(folder: Path) -> Path:
    """A cross-encoder with small random weights."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY.config()))
    write_safetensors(
        folder / "model.safetensors", TINY.weights(seed=7, prefix="bert.", classifier=True)
    )
    tokenizer = Tokenizer(WordPiece(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
