"""Read the float weights of a BERT cross-encoder back from its int8 graph."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from app.core.types import FloatArray

_PRODUCTS = ("/Gemm_MatMul_quant", "/MatMul_quant")


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
