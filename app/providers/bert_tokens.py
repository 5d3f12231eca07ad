"""Texts to the int32 inputs a BERT graph reads, each at its natural length."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from app.core.errors import Unreadable

Ids = Sequence[int] | npt.NDArray[np.int32]
"""Token ids of one text, specials included."""
Feed = dict[str, npt.NDArray[np.int32]]
"""The graph's inputs by name, each `[1, tokens]`."""


@dataclass(frozen=True, slots=True)
class TokenSpans:
    """The tokens of one text, specials included."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    """Half-open spans of characters; (0, 0) for specials."""
    words: list[int | None]
    """The word of each token, from 0; None for specials."""


class BertTokenizer:
    """A WordPiece tokenizer that neither pads nor cuts on its own; thread-safe."""

    def __init__(self, path: Path) -> None:
        """Load a `tokenizer.json`.

        Raises:
            Unreadable: The file is missing or no tokenizer.
        """
        try:
            self._tokenizer = Tokenizer.from_buffer(path.read_bytes())
        except (OSError, ValueError) as exc:
            raise Unreadable(f"{str(path)!r} is not a readable tokenizer ({exc})") from exc
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return token ids with special tokens, without a limit."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def encode_spans(self, texts: Sequence[str]) -> list[TokenSpans]:
        """Return tokens with their offsets, without a limit."""
        return [
            TokenSpans(one.ids, one.offsets, one.word_ids)
            for one in self._tokenizer.encode_batch(list(texts))
        ]

    def encode_pairs(
        self, question: str, texts: Sequence[str], limit: int
    ) -> list[tuple[list[int], list[int]]]:
        """Return ids and type ids of `[CLS] question [SEP] text [SEP]`.

        The text is cut so that a pair has at most `limit` tokens.
        """
        pairs = self._tokenizer.encode_batch([(question, text) for text in texts])
        return [(cut(pair.ids, limit), cut(pair.type_ids, limit)) for pair in pairs]


class CountedTokens:
    """Token ids of texts that were counted and not embedded since; thread-safe.

    What is counted is embedded next, as a rule: chunks of an upload, sentences of an answer. To
    split a passage into tokens takes up to a tenth of what embedding it takes.
    """

    def __init__(self, most: int) -> None:
        """Hold the ids of up to `most` texts; the oldest go first."""
        self._most = most
        self._ids: dict[str, npt.NDArray[np.int32]] = {}
        self._lock = threading.Lock()

    def keep(self, texts: Sequence[str], encoded: Sequence[Sequence[int]]) -> None:
        """Remember texts with their ids."""
        packed = [
            np.array(ids, dtype=np.int32) for ids in encoded
        ]  # lists of ints take ten times the memory
        with self._lock:
            self._ids.update(zip(texts, packed, strict=True))
            while len(self._ids) > self._most:
                del self._ids[next(iter(self._ids))]

    def take(self, texts: Sequence[str]) -> dict[str, npt.NDArray[np.int32]]:
        """Return the ids of those texts that are remembered, and forget them."""
        with self._lock:
            return {text: self._ids.pop(text) for text in dict.fromkeys(texts) if text in self._ids}


def cut(ids: list[int], limit: int) -> list[int]:
    """Return at most `limit` ids, the closing special kept."""
    return ids if len(ids) <= limit else ids[: limit - 1] + ids[-1:]


def feed(ids: Ids, type_ids: list[int] | None = None) -> Feed:
    """Return the graph's inputs for one text at its natural length.

    Args:
        ids: Token ids.
        type_ids: Segment ids; None: all 0.
    """
    tokens = np.array([ids], dtype=np.int32)
    types = np.zeros_like(tokens) if type_ids is None else np.array([type_ids], dtype=np.int32)
    return {"input_ids": tokens, "token_type_ids": types, "attention_mask": np.ones_like(tokens)}
