"""Texts to the int32 batches a BERT graph reads: natural length, sorted, small batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from app.core.errors import Unreadable

BATCH = 8
"""Texts per run. 8 was fastest on two cores (51 passages/s against 45 at 32); evaluation/reports/embed.md has the rate."""

Feed = dict[str, npt.NDArray[np.int32]]


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
        """Return token ids with specials, whatever their number."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def encode_pairs(self, question: str, texts: Sequence[str], limit: int) -> list[tuple[list[int], list[int]]]:
        """Return ids and type ids of `[CLS] question [SEP] text [SEP]`, the text cut so that a pair has at most `limit` tokens."""
        pairs = self._tokenizer.encode_batch([(question, text) for text in texts])
        return [(cut(pair.ids, limit), cut(pair.type_ids, limit)) for pair in pairs]


def cut(ids: list[int], limit: int) -> list[int]:
    """Return at most `limit` ids, the closing special kept."""
    return ids if len(ids) <= limit else ids[: limit - 1] + ids[-1:]


def batches(ids: Sequence[list[int]], type_ids: Sequence[list[int]] | None = None) -> Iterator[tuple[list[int], Feed]]:
    """Yield `(positions, feed)` of up to 8 texts of like length, longest first, padded to the longest of the batch.

    Args:
        ids: Token ids per text.
        type_ids: Segment ids per text; None: all 0.
    """
    order = sorted(range(len(ids)), key=lambda position: -len(ids[position]))
    for start in range(0, len(order), BATCH):
        positions = order[start : start + BATCH]
        tokens = np.zeros((len(positions), len(ids[positions[0]])), dtype=np.int32)
        types, mask = np.zeros_like(tokens), np.zeros_like(tokens)
        for row, position in enumerate(positions):
            length = len(ids[position])
            tokens[row, :length] = ids[position]
            mask[row, :length] = 1
            if type_ids is not None:
                types[row, :length] = type_ids[position]
        yield positions, {"input_ids": tokens, "token_type_ids": types, "attention_mask": mask}
