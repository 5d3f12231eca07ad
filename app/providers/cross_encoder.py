"""A cross-encoder from a local directory, on the same graph as the embedded model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.core.errors import Unreadable
from app.core.ids import content_sha256
from app.providers.bert_config import BERT_POSITIONS, BertShape
from app.providers.bert_session import BertSession
from app.providers.bert_tokens import BertTokenizer, feed
from app.providers.graph_cache import cached_graph
from app.providers.onnx_graph import Precision, build_graph
from app.providers.weights import read_float_tensors


class CrossEncoder:
    """Reranker on a BERT cross-encoder such as ms-marco-MiniLM-L-6-v2; thread-safe."""

    def __init__(
        self,
        folder: Path,
        cache_dir: Path | None = None,
        *,
        threads: int = 0,
        precision: Precision = "int8",
        max_tokens: int = BERT_POSITIONS,
    ) -> None:
        """Open the model, building its graph the first time.

        Args:
            folder: Holds config.json, model.safetensors and tokenizer.json.
            cache_dir: Where to keep the built graph; None keeps it in memory only.
            threads: Cores to use; 0: all.
            precision: `fp32` doubles the time.
            max_tokens: Longest pair, in tokens; at most the positions of the model. A longer pair
                is cut at the passage's end.

        Raises:
            Unreadable: A file is missing, damaged, or describes another architecture.
        """
        weights = folder / "model.safetensors"
        if not weights.is_file():
            raise Unreadable(
                f"{str(weights)!r} is not there; point the setting at a downloaded BERT"
                " cross-encoder"
            )
        shape = BertShape.from_config(folder / "config.json")
        self._folder, self._max_tokens = folder, min(max_tokens, shape.positions)
        self._tokenizer = BertTokenizer(folder / "tokenizer.json")
        key = f"cross-encoder {content_sha256(weights)}"
        graph = cached_graph(
            cache_dir,
            key,
            precision,
            lambda: build_graph(read_float_tensors(weights), shape, "classifier", precision),
        )
        self._session = BertSession(graph, threads)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._folder.name

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one raw logit per text, higher is better; passages may be cut.

        A pair over the window cuts its passage.
        """
        pairs = self._tokenizer.encode_pairs(question, texts, self._max_tokens)
        logits = self._session.many([feed(ids, types) for ids, types in pairs], 1)
        return [float(logit) for logit in logits[:, 0]]
