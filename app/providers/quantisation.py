"""Quantise the weights of an ONNX graph."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path


def quantise(graph: bytes, in_float: Sequence[str]) -> bytes:
    """Return the graph with weights of seven bits, one scale per output channel.

    Stored as int8; activations are quantised at run time. With eight bits a processor without VNNI
    cuts sums of two products at 16 bits: a text gets another vector there than elsewhere, 0.980
    from its float32 one (docs/decisions/0030-onnx-graph.md). With seven bits it gets the
    same.

    Args:
        graph: In float32. Its embedding tables stay so (docs/decisions/0030-onnx-graph.md).
        in_float: Names of products that stay float32.

    References:
        https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
    import onnx  # noqa: PLC0415 - slow to import, seldom needed
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415 - the same

    with tempfile.TemporaryDirectory(prefix="documind-quantise-") as folder:
        target = Path(folder, "int8.onnx")
        quantize_dynamic(
            onnx.load_from_string(graph),
            target,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
            op_types_to_quantize=["MatMul", "Attention"],
            nodes_to_exclude=list(in_float),
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return target.read_bytes()
