"""A BERT encoder as an ONNX graph, built from weights, and its int8 form, cached on disk.

ONNX Runtime's fused operators (domain `com.microsoft`) make a layer ten nodes; plain operators would take twice the code here. Sum
and norm stay apart: fused they are slower (docs/decisions/0030-onnx-graph.md).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime as ort

from app.core.errors import Unreadable
from app.core.types import FloatArray

Precision = Literal["int8", "fp32"]
Head = Literal["mean", "classifier"]

_BUILD = "3"
"""Part of the cache key; raise it when the graph or its quantisation changes."""
_OPSET = 17
_IR_VERSION = 9

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BertShape:
    """What the graph needs to know besides the weights."""

    layers: int
    heads: int
    epsilon: float

    @classmethod
    def from_config(cls, path: Path) -> BertShape:
        """Read the `config.json` of a BERT model.

        Raises:
            Unreadable: The file is missing or describes another architecture.
        """
        try:
            config = json.loads(path.read_bytes())
            if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
                raise ValueError(f"model_type {config['model_type']!r} with {config['hidden_act']!r}")  # noqa: TRY301 - one translation
            return cls(int(config["num_hidden_layers"]), int(config["num_attention_heads"]), float(config["layer_norm_eps"]))
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise Unreadable(f"{str(path)!r} does not describe a BERT model with exact GELU ({exc})") from exc


class _Builder:
    """Collects nodes and initialisers; every method returns the name of an output."""

    def __init__(self, weights: Mapping[str, FloatArray], shape: BertShape, prefix: str) -> None:
        # onnx takes 0.3 s to import and is needed only when a graph is built, not when it comes from the cache
        from onnx import helper, numpy_helper  # noqa: PLC0415

        self._helper, self._numpy_helper = helper, numpy_helper
        self._weights, self._shape, self._prefix = weights, shape, prefix
        self.nodes: list[object] = []
        self.constants: list[object] = []

    def raw(self, name: str) -> FloatArray:
        """Return a weight, or raise Unreadable with its name."""
        try:
            return self._weights[name]
        except KeyError as exc:
            raise Unreadable(f"the weights have no tensor {name!r}; expected those of a BERT encoder") from exc

    def constant(self, name: str, value: FloatArray | np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> str:
        self.constants.append(self._numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.raw(self._prefix + name))

    def transposed(self, name: str) -> str:
        return self.constant(name, self.raw(self._prefix + name).T)

    def node(self, op: str, inputs: list[str], output: str, *, contrib: bool = False, **attributes: float | int) -> str:
        domain = "com.microsoft" if contrib else ""
        self.nodes.append(self._helper.make_node(op, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def embeddings(self) -> str:
        """Word, position and type embeddings, summed and normalised."""
        tables = [self.weight(f"embeddings.{kind}_embeddings.weight") for kind in ("word", "position", "token_type")]
        norm = [self.weight("embeddings.LayerNorm.weight"), self.weight("embeddings.LayerNorm.bias")]
        inputs = ["input_ids", "token_type_ids", *tables, *norm, "attention_mask"]
        outputs = ["hidden_0", "mask_index"]
        self.nodes.append(
            self._helper.make_node(
                "EmbedLayerNormalization", inputs, outputs, name="embed", domain="com.microsoft", epsilon=self._shape.epsilon
            )
        )
        return "hidden_0"

    def normalise_sum(self, left: str, right: str, name: str, output: str) -> str:
        """LayerNorm(left + bias + right), where `name` is the dense layer that made `left`."""
        owner = name.removesuffix("dense")
        biased = self.node("Add", [left, self.weight(name + ".bias")], output + "_biased")
        total = self.node("Add", [biased, right], output + "_sum")
        norm = [self.weight(owner + "LayerNorm.weight"), self.weight(owner + "LayerNorm.bias")]
        return self.node("LayerNormalization", [total, *norm], output, axis=-1, epsilon=self._shape.epsilon)

    def layer(self, hidden: str, number: int) -> str:
        """One transformer layer."""
        at = f"encoder.layer.{number}."
        parts = [self._prefix + at + f"attention.self.{part}" for part in ("query", "key", "value")]
        qkv = self.constant(at + "qkv.weight", np.concatenate([self.raw(part + ".weight").T for part in parts], axis=1))
        qkv_bias = self.constant(at + "qkv.bias", np.concatenate([self.raw(part + ".bias") for part in parts]))
        inputs = [hidden, qkv, qkv_bias, "attention_mask"]
        attended = self.node("Attention", inputs, at + "attended", contrib=True, num_heads=self._shape.heads)
        mixed = self.node("MatMul", [attended, self.transposed(at + "attention.output.dense.weight")], at + "mixed")
        middle = self.normalise_sum(mixed, hidden, at + "attention.output.dense", at + "middle")
        wide = self.node("MatMul", [middle, self.transposed(at + "intermediate.dense.weight")], at + "wide")
        active = self.node("BiasGelu", [wide, self.weight(at + "intermediate.dense.bias")], at + "active", contrib=True)
        narrow = self.node("MatMul", [active, self.transposed(at + "output.dense.weight")], at + "narrow")
        return self.normalise_sum(narrow, middle, at + "output.dense", f"hidden_{number + 1}")

    def mean_head(self, hidden: str) -> str:
        """Mean of the unmasked tokens, L2-normalised; the norm removes the division, so a sum is enough."""
        mask = self.node("Cast", ["attention_mask"], "mask_float", to=self._helper.TensorProto.FLOAT)
        row = self.node("Unsqueeze", [mask, self.constant("axis_1", np.array([1], dtype=np.int64))], "mask_row")
        total = self.node("MatMul", [row, hidden], "total")
        flat = self.node("Squeeze", [total, "axis_1"], "flat")
        return self.node("LpNormalization", [flat], "output", axis=-1, p=2)

    def classifier_head(self, hidden: str) -> str:
        """Tanh pooler on [CLS] and one linear layer: raw logits `[batch, classes]`."""
        zero = self.constant("zero", np.array(0, dtype=np.int64))
        first = self.node("Gather", [hidden, zero], "first", axis=1)
        pooled = self.node(
            "Gemm", [first, self.weight("pooler.dense.weight"), self.weight("pooler.dense.bias")], "pooled", transB=1
        )
        active = self.node("Tanh", [pooled], "pooled_active")
        weight = self.constant("classifier.weight", self.raw("classifier.weight"))
        bias = self.constant("classifier.bias", self.raw("classifier.bias"))
        return self.node("Gemm", [active, weight, bias], "output", transB=1)

    def model(self, output: str) -> bytes:
        helper = self._helper
        axes = ["batch", "tokens"]
        inputs = [
            helper.make_tensor_value_info(name, helper.TensorProto.INT32, axes)
            for name in ("input_ids", "token_type_ids", "attention_mask")
        ]
        outputs = [helper.make_tensor_value_info(output, helper.TensorProto.FLOAT, ["batch", "width"])]
        # onnx cannot infer types through foreign operators; the quantiser wants to know this one
        hidden = [helper.make_tensor_value_info(f"hidden_{self._shape.layers}", helper.TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "bert", inputs, outputs, self.constants, value_info=hidden)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        # there is nothing left to fuse or fold, so the quantiser need not ask for its pre-processing
        helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
        built: bytes = model.SerializeToString()
        return built


def build_graph(weights: Mapping[str, FloatArray], shape: BertShape, head: Head = "mean") -> bytes:
    """Return the float32 graph of a BERT encoder with a head.

    Inputs are int32 `[batch, tokens]`: input_ids, token_type_ids, attention_mask. The output is float32: for `mean`
    `[batch, hidden]`, rows of L2 norm 1; for `classifier` `[batch, classes]`, raw logits.

    Args:
        weights: Tensors by their PyTorch names; with a `classifier` head the encoder's are prefixed `bert.`.
        shape: Layers, heads and epsilon.
        head: What to do with the last hidden states.

    Raises:
        Unreadable: A tensor is missing.

    References:
        Devlin et al.: BERT, 2019; Reimers and Gurevych: Sentence-BERT, 2019 (mean pooling).
        https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
    """
    builder = _Builder(weights, shape, "bert." if head == "classifier" else "")
    hidden = builder.embeddings()
    for number in range(shape.layers):
        hidden = builder.layer(hidden, number)
    return builder.model(builder.mean_head(hidden) if head == "mean" else builder.classifier_head(hidden))


def quantise(graph: bytes) -> bytes:
    """Return the graph with int8 weights of seven bits, one scale per output channel; activations are quantised while running.

    With eight bits a processor without VNNI cuts sums of two products at 16 bits: a text gets another vector there than elsewhere,
    0.980 from its float32 one (docs/decisions/0154-weights-of-seven-bits.md). With seven bits it gets the same.

    The embedding tables and the down-projections of the first two layers stay float32: their activations have outliers (the same
    record, and docs/decisions/0030-onnx-graph.md).

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
            nodes_to_exclude=["encoder.layer.0.narrow", "encoder.layer.1.narrow"],
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return target.read_bytes()


def cached_graph(folder: Path | None, key: str, precision: Precision, build: Callable[[], bytes]) -> bytes:
    """Return a graph from the cache, or build and keep it.

    A cache file is the SHA-256 of the graph (32 bytes) and the graph, written beside its place and moved there, so a reader sees
    all of it or nothing. A damaged file is built again.

    Args:
        folder: Where to keep graphs; None builds in memory each time.
        key: What the graph is made from, for example the hash of the weights.
        precision: `int8` quantises what `build` returns.
        build: Makes the float32 graph.
    """
    name = hashlib.sha256(f"{_BUILD} {ort.__version__} {key}".encode()).hexdigest()[:16] + f".{precision}.graph"
    if folder is not None and (graph := _load(folder / name)) is not None:
        return graph
    graph = build() if precision == "fp32" else quantise(build())
    if folder is not None:
        _store(folder / name, graph)
    return graph


def _load(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError:
        _log.warning("the cached model graph %s cannot be read; building it again", path.name, exc_info=True)
        return None
    digest, graph = content[:32], content[32:]
    if hashlib.sha256(graph).digest() == digest:
        return graph
    _log.warning("the cached model graph %s is damaged; building it again", path.name)
    return None


def _store(path: Path, graph: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(graph).digest())
            file.write(graph)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError:
        # the graph is in memory and works; a full or read-only disk only costs the next start two seconds
        Path(temporary).unlink(missing_ok=True)
        _log.warning("the model graph could not be kept as %s", path.name, exc_info=True)


def open_session(graph: bytes, threads: int = 0) -> ort.InferenceSession:
    """Return a CPU session of a graph; thread-safe.

    Args:
        graph: An ONNX model.
        threads: Threads within one run; 0: one per core. More than one wait for each other by spinning, until the run is over.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Between runs threads must leave their cores to others; they would go on for 4 to 13 ms of each (docs/decisions/0034).
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = 3  # errors only; warnings about our shapes tell a user nothing
    # fused, sum and norm take longer than apart (docs/decisions/0030-onnx-graph.md)
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"])
