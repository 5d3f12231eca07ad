"""Build ONNX graphs of BERT encoders from their weights.

`scripts.build_model` makes the embedded model's, `evaluation.training` the reader's. Needs what
locks/model.lock names.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors import SafetensorError, safe_open

from app.core.errors import Unreadable
from app.core.types import FloatArray

# Read the shape of a BERT model from its configuration.

BERT_POSITIONS = 512
"""Of a BERT model whose configuration names none."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """A BERT encoder's parameters besides the weights."""

    layers: int
    heads: int
    epsilon: float
    positions: int = BERT_POSITIONS
    """Longest text, in tokens: the rows of the position embedding."""

    @classmethod
    def from_config(cls, path: Path) -> BertShape:
        """Read the `config.json` of a BERT model.

        Raises:
            Unreadable: The file is missing or describes another architecture.
        """
        try:
            config = json.loads(path.read_bytes())
            if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
                raise ValueError(  # noqa: TRY301
                    f"model_type {config['model_type']!r} with {config['hidden_act']!r}"
                )
            return cls(
                int(config["num_hidden_layers"]),
                int(config["num_attention_heads"]),
                float(config["layer_norm_eps"]),
                int(config.get("max_position_embeddings", BERT_POSITIONS)),
            )
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise Unreadable(
                f"{str(path)!r} does not describe a BERT model with exact GELU ({exc})"
            ) from exc


# Quantise the weights of an ONNX graph.


def quantise(graph: bytes, in_float: Sequence[str]) -> bytes:
    """Return the graph with weights of seven bits, one scale per output channel.

    Stored as int8; activations are quantised at run time. With eight bits a processor without VNNI
    cuts sums of two products at 16 bits: a text gets another vector there than elsewhere, 0.980
    from its float32 one (docs/decisions/0030-onnx-graph.md). With seven bits it gets the same.

    Args:
        graph: In float32. Its embedding tables stay so (docs/decisions/0030-onnx-graph.md).
        in_float: Names of products that stay float32.

    References:
        https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
    """
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


# A BERT encoder as an ONNX graph, built from weights, and its int8 form.

Precision = Literal["int8", "fp32"]
Head = Literal["mean", "reader"]
Outliers = Mapping[int, Sequence[int]]
"""Per layer, channels between its up- and down-projection whose activations are several times
all others'."""

_SPAN = "placed"
"""Names the product of a head of two columns: there is nothing to gain in eight bits."""
_FEW = "_few"
"""Ends the names of what belongs to outlier channels."""
NO_OUTLIERS: Outliers = MappingProxyType({})
_TABLES = ("word", "position", "token_type")
_OPSET = 17
_IR_VERSION = 9
_FLOAT_DOWN = (0, 1)
"""Layers whose down-projections stay float32 where no outliers are named."""


def _rounded(table: FloatArray) -> tuple[npt.NDArray[np.generic], ...]:
    """Return a table in eight bits, its scale and its zero point.

    One that was read back from such a table comes out as it was.
    """
    low, high = min(float(table.min()), 0.0), max(float(table.max()), 0.0)
    scale = (high - low) / 255 or 1.0
    zero = round(-low / scale)
    rounded = np.clip(np.rint(table / scale) + zero, 0, 255).astype(np.uint8)
    return rounded, np.asarray(scale, dtype=np.float32), np.asarray(zero, dtype=np.uint8)


class _Builder:
    """Collects nodes and initialisers; every method returns the name of an output."""

    def __init__(
        self,
        weights: Mapping[str, FloatArray],
        shape: BertShape,
        precision: Precision,
        outliers: Outliers,
        *,
        small_tables: bool = False,
    ) -> None:
        self._weights, self._shape = weights, shape
        self._quick, self._outliers = precision == "int8", outliers
        self._small_tables = small_tables
        self.nodes: list[object] = []
        self.constants: list[object] = []

    def raw(self, name: str) -> FloatArray:
        try:
            return self._weights[name]
        except KeyError as exc:
            raise Unreadable(
                f"the weights have no tensor {name!r}; expected those of a BERT encoder"
            ) from exc

    def constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.raw(name))

    def transposed(self, name: str) -> str:
        return self.constant(name, self.raw(name).T)

    def node(
        self,
        op: str,
        inputs: list[str],
        output: str,
        *,
        contrib: bool = False,
        **attributes: float | int,
    ) -> str:
        domain = "com.microsoft" if contrib else ""
        self.nodes.append(
            helper.make_node(op, inputs, [output], name=output, domain=domain, **attributes)
        )
        return output

    def embeddings(self) -> str:
        """Word, position and type embeddings, summed and normalised."""
        tables = [f"embeddings.{kind}_embeddings.weight" for kind in _TABLES]
        norm = [self.weight(f"embeddings.LayerNorm.{kind}") for kind in ("weight", "bias")]
        if self._small_tables:
            return self.rounded_embeddings(tables, norm)
        whole = [self.weight(name) for name in tables]
        words, places, types = whole
        inputs = ["input_ids", "token_type_ids", words, places, types, *norm, "attention_mask"]
        outputs = ["hidden_0", "mask_index"]
        self.nodes.append(
            helper.make_node(
                "EmbedLayerNormalization",
                inputs,
                outputs,
                name="embed",
                domain="com.microsoft",
                epsilon=self._shape.epsilon,
            )
        )
        return "hidden_0"

    def rounded_embeddings(self, tables: Sequence[str], norm: Sequence[str]) -> str:
        """Sum rows of tables of eight bits, one scale a table: a quarter of the bytes."""
        size = self.node("Shape", ["input_ids"], "size", start=1, end=2)
        zero = self.constant("from", np.array(0, dtype=np.int64))
        one = self.constant("step", np.array(1, dtype=np.int64))
        places = self.node("Range", [zero, self.node("Squeeze", [size], "count"), one], "places")
        rows = []
        for name, chosen in zip(tables, ("input_ids", places, "token_type_ids"), strict=True):
            rounded, scale, offset = _rounded(self.raw(name))
            table = self.constant(name, rounded)
            few = self.node("Gather", [table, chosen], f"{name}.few", axis=0)
            held = [
                few,
                self.constant(f"{name}.scale", scale),
                self.constant(f"{name}.zero", offset),
            ]
            rows.append(self.node("DequantizeLinear", held, f"{name}.rows"))
        words, at, types = rows
        total = self.node("Add", [self.node("Add", [words, types], "word_and_type"), at], "summed")
        return self.node(
            "LayerNormalization", [total, *norm], "hidden_0", axis=-1, epsilon=self._shape.epsilon
        )

    def normalise_sum(self, left: str, right: str, name: str, output: str) -> str:
        """Add LayerNorm(left + bias + right); `name` is the dense layer of `left`."""
        owner = name.removesuffix("dense")
        biased = self.node("Add", [left, self.weight(name + ".bias")], output + "_biased")
        total = self.node("Add", [biased, right], output + "_sum")
        norm = [self.weight(owner + "LayerNorm.weight"), self.weight(owner + "LayerNorm.bias")]
        return self.node(
            "LayerNormalization", [total, *norm], output, axis=-1, epsilon=self._shape.epsilon
        )

    def layer(self, hidden: str, number: int) -> str:
        at = f"encoder.layer.{number}."
        parts = [at + f"attention.self.{part}" for part in ("query", "key", "value")]
        qkv = self.constant(
            at + "qkv.weight",
            np.concatenate([self.raw(part + ".weight").T for part in parts], axis=1),
        )
        qkv_bias = self.constant(
            at + "qkv.bias", np.concatenate([self.raw(part + ".bias") for part in parts])
        )
        # int8 takes one text a run: nothing is padded, so nothing is masked
        inputs = [hidden, qkv, qkv_bias, *([] if self._quick else ["attention_mask"])]
        attended = self.node(
            "Attention", inputs, at + "attended", contrib=True, num_heads=self._shape.heads
        )
        mixed = self.node(
            "MatMul",
            [attended, self.transposed(at + "attention.output.dense.weight")],
            at + "mixed",
        )
        middle = self.normalise_sum(mixed, hidden, at + "attention.output.dense", at + "middle")
        return self.feed_forward(middle, number)

    def feed_forward(self, middle: str, number: int) -> str:
        """Add a layer's second half; outlier channels are a product of their own."""
        at = f"encoder.layer.{number}."
        few = self._outliers.get(number, ())
        most = [
            channel
            for channel in range(len(self.raw(f"{at}intermediate.dense.bias")))
            if channel not in few
        ]
        narrow = self.through_channels(middle, at, most, "")
        if few:
            middle = self.node(
                "Add", [middle, self.through_channels(middle, at, few, _FEW)], at + "middle_and_few"
            )
        return self.normalise_sum(narrow, middle, at + "output.dense", f"hidden_{number + 1}")

    def through_channels(self, middle: str, at: str, channels: Sequence[int], suffix: str) -> str:
        """Add up-projection of some channels, GELU, and down-projection without its bias."""
        parts = ("intermediate.dense.weight", "intermediate.dense.bias", "output.dense.weight")
        up, bias, down = (self.raw(f"{at}{part}") for part in parts)
        chosen = list(channels)
        wide = self.node(
            "MatMul", [middle, self.constant(f"{at}up{suffix}", up[chosen].T)], f"{at}wide{suffix}"
        )
        gelu = "FastGelu" if self._quick else "BiasGelu"
        shift = self.constant(f"{at}up_bias{suffix}", bias[chosen])
        active = self.node(gelu, [wide, shift], f"{at}active{suffix}", contrib=True)
        return self.node(
            "MatMul",
            [active, self.constant(f"{at}down{suffix}", down[:, chosen].T)],
            f"{at}narrow{suffix}",
        )

    def mean_head(self, hidden: str) -> str:
        """Add the L2-normalised sum of unmasked tokens, which is that of their mean."""
        mask = self.node("Cast", ["attention_mask"], "mask_float", to=helper.TensorProto.FLOAT)
        row = self.node(
            "Unsqueeze", [mask, self.constant("axis_1", np.array([1], dtype=np.int64))], "mask_row"
        )
        total = self.node("MatMul", [row, hidden], "total")
        flat = self.node("Squeeze", [total, "axis_1"], "flat")
        return self.node("LpNormalization", [flat], "output", axis=-1, p=2)

    def first(self, hidden: str) -> str:
        """Take the state of [CLS]."""
        zero = self.constant("zero", np.array(0, dtype=np.int64))
        return self.node("Gather", [hidden, zero], "first", axis=1)

    def classified(self, first: str, pooler: str, classifier: str, output: str) -> str:
        """Tanh pooler on [CLS] and one linear layer, by their names: logits `[batch, classes]`."""
        held = [
            self.constant(name, self.raw(name))
            for layer in (pooler, classifier)
            for name in (f"{layer}.weight", f"{layer}.bias")
        ]
        pooled = self.node("Gemm", [first, *held[:2]], f"{output}_pooled", transB=1)
        active = self.node("Tanh", [pooled], f"{output}_active")
        return self.node("Gemm", [active, *held[2:]], output, transB=1)

    def reader_heads(self, hidden: str) -> tuple[str, str]:
        """Logits `[batch, 4]`: answers, and the three of a claim; start and end of each token."""
        first = self.first(hidden)
        heads = [
            self.classified(first, f"{name}.pooler", f"{name}.classifier", name)
            for name in ("answers", "claim")
        ]
        placed = self.node("MatMul", [hidden, self.transposed("span.weight")], _SPAN)
        span = self.node("Add", [placed, self.weight("span.bias")], "span")
        return self.node("Concat", heads, "output", axis=1), span

    def model(self, output: str, states: str) -> bytes:
        axes = [1 if self._quick else "batch", "tokens"]
        inputs = [
            helper.make_tensor_value_info(name, helper.TensorProto.INT32, axes)
            for name in ("input_ids", "token_type_ids", "attention_mask")
        ]
        # A run computes the states in any case; which outputs it returns is the caller's to say.
        outputs = [
            helper.make_tensor_value_info(output, helper.TensorProto.FLOAT, ["batch", "width"]),
            helper.make_tensor_value_info(states, helper.TensorProto.FLOAT, [*axes, "hidden"]),
        ]
        graph = helper.make_graph(self.nodes, "bert", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        # there is nothing left to fuse or fold, so the quantiser need not ask for its
        # pre-processing
        helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
        built: bytes = model.SerializeToString()
        return built


def build_graph(
    weights: Mapping[str, FloatArray],
    shape: BertShape,
    head: Head = "mean",
    precision: Precision = "fp32",
    outliers: Outliers = NO_OUTLIERS,
) -> bytes:
    """Return the graph of a BERT encoder with a head.

    Inputs are int32 `[batch, tokens]`: input_ids, token_type_ids, attention_mask. The output is
    float32: for `mean` `[batch, hidden]`, rows of L2 norm 1; for `reader` `[batch, 4]`, raw
    logits, and beside them `[batch, tokens, 2]`.

    `int8` takes one text, without padding, and GELU by its tanh approximation: quicker, and at the
    same cosine to float32.

    Args:
        weights: Tensors by their PyTorch names.
        shape: Layers, heads and epsilon.
        head: What to do with the last hidden states.
        precision: `int8` quantises the weights (see `quantise`).
        outliers: Channels to keep in a small product of their own, which stays float32: one scale
            for all activations of a text then has only ordinary ones to cover
            (docs/decisions/0030-onnx-graph.md).

    Raises:
        Unreadable: A tensor is missing.

    References:
        Devlin et al.: BERT, 2019; Reimers and Gurevych: Sentence-BERT, 2019 (mean pooling);
            Dettmers et al.: LLM.int8(), 2022
        (outlier channels in higher precision); Hendrycks and Gimpel: Gaussian Error Linear Units,
        2016 (the tanh approximation).
        https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
    """
    small = head == "reader" and precision == "int8"
    builder = _Builder(weights, shape, precision, outliers, small_tables=small)
    hidden = builder.embeddings()
    for number in range(shape.layers):
        hidden = builder.layer(hidden, number)
    if head == "reader":
        graph = builder.model(*builder.reader_heads(hidden))
    else:
        graph = builder.model(builder.mean_head(hidden), hidden)
    if precision == "fp32":
        return graph
    float_down = [
        f"encoder.layer.{number}.narrow"
        for number in (() if small else _FLOAT_DOWN)
        if number not in outliers
    ]
    few = [
        f"encoder.layer.{number}.{part}{_FEW}" for number in outliers for part in ("wide", "narrow")
    ]
    return quantise(graph, [*float_down, *few, _SPAN])


# Read weights in the safetensors format.


def read_float_tensors(path: Path) -> dict[str, FloatArray]:
    """Return the float32 tensors of a `.safetensors` file by name; others are left out.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            floats = [name for name in names if file.get_slice(name).get_dtype() == "F32"]
            return {name: file.get_tensor(name) for name in floats}
    except SafetensorError as exc:
        raise Unreadable(
            f"{path.name!r} is not a readable safetensors file ({exc}); install it again"
        ) from exc
