"""Read a question or a claim next to a text: does it answer, does it state?

The reader is one small BERT body with heads, trained by `make reader` (evaluation/training) from
ms-marco-MiniLM-L-12-v2; its graph lies in app/bundle/reader. What it is worth on sources that no
fit has seen is in evaluation/reports/reader.md and two_rates.md.

References:
    Nogueira, Cho: Passage re-ranking with BERT, 2019 (where its weights begin).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.errors import ModelNotInstalled
from app.core.ids import bundle
from app.core.types import FloatArray, Stance
from app.models.bert import BertSession, BertTokenizer, feed

READER = "documind-reader"
_LOGITS = 4
"""Of a pair: answers, then supported, contradicted, not stated."""
_TEMPERATURE = 1.0
"""Divides the logits of a claim, so that what is said with .8 is true eight times of ten."""
MAX_TOKENS = 256
"""Of a pair; what is longer is cut at the unit's end."""


class MiniLmReader:
    """Reader; a pair's score is the same in any company; thread-safe."""

    def __init__(self, folder: Path | None = None, *, threads: int = 0) -> None:
        """Open the package's model or a folder's, in 0.2 s; `threads` are cores to use, 0: all.

        Raises:
            ModelNotInstalled: The graph is not there.
            Unreadable: The embedded model's tokenizer, which reads for both, is damaged.
        """
        folder = folder or bundle("reader")
        graph = folder / "int8.graph"
        if not graph.is_file():
            raise ModelNotInstalled(
                f"the graph of {READER!r} is not in {str(folder)!r}; it is a file of the"
                " repository: git restore app/bundle/reader"
            )
        self._tokenizer = BertTokenizer(bundle("minilm") / "tokenizer.json")  # one vocabulary
        self._session = BertSession(graph, threads)

    @property
    def name(self) -> str:
        return READER

    def answers(self, question: str, units: Sequence[str]) -> list[float]:
        logits = self._read([(question, unit) for unit in units])
        return [float(logit) for logit in logits[:, 0]]

    def stances(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        logits = self._read(pairs)[:, 1:] / _TEMPERATURE
        parts = np.exp(logits - logits.max(axis=1, keepdims=True))
        return [Stance(*map(float, row)) for row in parts / parts.sum(axis=1, keepdims=True)]

    def _read(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Return the logits of pairs `[n, 4]`: answers, then the three of a claim."""
        encoded = self._tokenizer.encode_pairs(pairs, MAX_TOKENS)
        return self._session.many([feed(ids, types) for ids, types in encoded], _LOGITS)
