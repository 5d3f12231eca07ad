"""Run a BERT graph: each run has one text and one thread; many texts run side by side."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from tokenizers import Tokenizer

from app.core.errors import Unreadable
from app.core.types import FloatArray

# Texts to the int32 inputs a BERT graph reads, each at its natural length.

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
            raise Unreadable(
                f"{str(path)!r} is not a readable tokenizer ({exc}); in a checkout run: make setup"
            ) from exc
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
        self, pairs: Sequence[tuple[str, str]], limit: int
    ) -> list[tuple[list[int], list[int]]]:
        """Return ids and type ids of `[CLS] first [SEP] second [SEP]`, the second cut to fit."""
        encoded = self._tokenizer.encode_batch(list(pairs))
        return [(cut(one.ids, limit), cut(one.type_ids, limit)) for one in encoded]


class CountedTokens:
    """Token ids of texts that were counted and not embedded since; thread-safe.

    What is counted is embedded next, as a rule: chunks of an upload, sentences of an answer. To
    split a passage into tokens takes up to a tenth of what embedding it takes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: dict[str, npt.NDArray[np.int32]] = {}
        self._lock = threading.Lock()

    def keep(self, texts: Sequence[str], encoded: Sequence[Sequence[int]]) -> None:
        # lists of ints take ten times the memory
        packed = [np.array(ids, dtype=np.int32) for ids in encoded]
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
    """Return the graph's inputs for one text at its natural length; no type ids: all 0."""
    tokens = np.array([ids], dtype=np.int32)
    types = np.zeros_like(tokens) if type_ids is None else np.array([type_ids], dtype=np.int32)
    return {"input_ids": tokens, "token_type_ids": types, "attention_mask": np.ones_like(tokens)}


class BertSession:
    """An open graph; thread-safe.

    Texts are not batched: a text's row then depends on that text alone (int8 activations are scaled
    per run), nothing is padded, and the working set stays in the cache. Threads within a run wait
    for each other by spinning, which under load doubles the work per text, so each run has one
    thread and texts run side by side (docs/decisions/0030-onnx-graph.md).
    """

    def __init__(self, graph: bytes | Path, threads: int = 0) -> None:
        """Open an ONNX model or its file; `threads` are cores to use, 0: all."""
        self._threads = threads or os.cpu_count() or 1
        self._session = open_session(graph)

    def one(self, inputs: Feed) -> FloatArray:
        """Return the output row `[width]` of one text."""
        row: FloatArray = self._session.run(["output"], inputs)[0][0]
        return row

    def many(self, inputs: Sequence[Feed], width: int) -> FloatArray:
        """Return the rows `[n, width]`, in order; a call has threads of its own: none waits."""
        rows = [row for (row,) in self._runs(inputs, ["output"])]
        return np.array(rows, dtype=np.float32).reshape(len(inputs), width)

    def with_states(self, inputs: Sequence[Feed]) -> list[tuple[FloatArray, FloatArray]]:
        """Return each text's row, as `many` does, and token states `[tokens, hidden]`."""
        names = [output.name for output in self._session.get_outputs()]
        return [(row, states) for row, states in self._runs(inputs, names)]

    def _runs(self, inputs: Sequence[Feed], outputs: list[str]) -> list[list[FloatArray]]:
        """Run every text, the longest first, on as many cores as this session has."""

        def run(position: int) -> list[FloatArray]:
            return [output[0] for output in self._session.run(outputs, inputs[position])]

        order = sorted(range(len(inputs)), key=lambda at: -inputs[at]["input_ids"].size)
        workers = min(self._threads, len(inputs))
        if workers <= 1:
            made = list(map(run, order))
        else:
            with ThreadPoolExecutor(workers) as pool:
                made = list(pool.map(run, order))
        found = dict(zip(order, made, strict=True))
        return [found[position] for position in range(len(inputs))]


def open_session(graph: bytes | Path) -> ort.InferenceSession:
    """Return a CPU session of one thread; it may run in several at once.

    A file is better than its bytes, which the runtime keeps as long as it is open.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only; warnings about our shapes tell a user nothing
    # fused, sum and norm take longer than apart (docs/decisions/0030-onnx-graph.md)
    return ort.InferenceSession(
        graph if isinstance(graph, bytes) else str(graph),
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],
    )
