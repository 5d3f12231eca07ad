"""A BERT encoder as an ONNX graph, built from weights, and its int8 form.

ONNX Runtime's fused operators (domain `com.microsoft`) make a layer ten nodes; plain operators
would take twice the code here. Sum and norm stay apart: fused they are slower
(docs/decisions/0030-onnx-graph.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np

from app.core.errors import Unreadable
from app.core.types import FloatArray
from app.providers.bert_config import BertShape
from app.providers.quantisation import quantise

Precision = Literal["int8", "fp32"]
Head = Literal["mean", "classifier"]
Outliers = Mapping[int, Sequence[int]]
"""Per layer, channels between its up- and down-projection whose activations are several times
all others'."""

BUILD = "5"
"""Part of the cache key; raise it when the graph or its quantisation changes."""
_FEW = "_few"
"""Ends the names of what belongs to outlier channels."""
NO_OUTLIERS: Outliers = MappingProxyType({})
_OPSET = 17
_IR_VERSION = 9
_FLOAT_DOWN = (0, 1)
"""Layers whose down-projections stay float32 where no outliers are named."""


class _Builder:
    """Collects nodes and initialisers; every method returns the name of an output."""

    def __init__(
        self,
        weights: Mapping[str, FloatArray],
        shape: BertShape,
        prefix: str,
        precision: Precision,
        outliers: Outliers,
    ) -> None:
        # onnx takes 0.3 s to import and is needed only when a graph is built, not when it comes
        # from the cache
        from onnx import helper, numpy_helper  # noqa: PLC0415

        self._helper, self._numpy_helper = helper, numpy_helper
        self._weights, self._shape, self._prefix = weights, shape, prefix
        self._quick, self._outliers = precision == "int8", outliers
        self.nodes: list[object] = []
        self.constants: list[object] = []

    def raw(self, name: str) -> FloatArray:
        """Return a weight, or raise Unreadable with its name."""
        try:
            return self._weights[name]
        except KeyError as exc:
            raise Unreadable(
                f"the weights have no tensor {name!r}; expected those of a BERT encoder"
            ) from exc

    def constant(
        self, name: str, value: FloatArray | np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    ) -> str:
        self.constants.append(self._numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def weight(self, name: str) -> str:
        return self.constant(name, self.raw(self._prefix + name))

    def transposed(self, name: str) -> str:
        return self.constant(name, self.raw(self._prefix + name).T)

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
            self._helper.make_node(op, inputs, [output], name=output, domain=domain, **attributes)
        )
        return output

    def embeddings(self) -> str:
        """Word, position and type embeddings, summed and normalised."""
        tables = [
            self.weight(f"embeddings.{kind}_embeddings.weight")
            for kind in ("word", "position", "token_type")
        ]
        norm = [
            self.weight("embeddings.LayerNorm.weight"),
            self.weight("embeddings.LayerNorm.bias"),
        ]
        inputs = ["input_ids", "token_type_ids", *tables, *norm, "attention_mask"]
        outputs = ["hidden_0", "mask_index"]
        self.nodes.append(
            self._helper.make_node(
                "EmbedLayerNormalization",
                inputs,
                outputs,
                name="embed",
                domain="com.microsoft",
                epsilon=self._shape.epsilon,
            )
        )
        return "hidden_0"

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
        """One transformer layer."""
        at = f"encoder.layer.{number}."
        parts = [self._prefix + at + f"attention.self.{part}" for part in ("query", "key", "value")]
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
        """Add a layer's second half; outlier channels are a separate product.

        It is added to the sum.
        """
        at = f"encoder.layer.{number}."
        few = self._outliers.get(number, ())
        most = [
            channel
            for channel in range(len(self.raw(f"{self._prefix}{at}intermediate.dense.bias")))
            if channel not in few
        ]
        narrow = self.through_channels(middle, at, most, "")
        if few:
            middle = self.node(
                "Add", [middle, self.through_channels(middle, at, few, _FEW)], at + "middle_and_few"
            )
        return self.normalise_sum(narrow, middle, at + "output.dense", f"hidden_{number + 1}")

    def through_channels(self, middle: str, at: str, channels: Sequence[int], suffix: str) -> str:
        """Add the up-projection to some channels, GELU, and the down-projection.

        Without the down-projection's bias.
        """
        parts = ("intermediate.dense.weight", "intermediate.dense.bias", "output.dense.weight")
        up, bias, down = (self.raw(f"{self._prefix}{at}{part}") for part in parts)
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
        """Add the L2-normalised mean of unmasked tokens.

        The norm cancels the division, so a sum is enough.
        """
        mask = self.node(
            "Cast", ["attention_mask"], "mask_float", to=self._helper.TensorProto.FLOAT
        )
        row = self.node(
            "Unsqueeze", [mask, self.constant("axis_1", np.array([1], dtype=np.int64))], "mask_row"
        )
        total = self.node("MatMul", [row, hidden], "total")
        flat = self.node("Squeeze", [total, "axis_1"], "flat")
        return self.node("LpNormalization", [flat], "output", axis=-1, p=2)

    def classifier_head(self, hidden: str) -> str:
        """Tanh pooler on [CLS] and one linear layer: raw logits `[batch, classes]`."""
        zero = self.constant("zero", np.array(0, dtype=np.int64))
        first = self.node("Gather", [hidden, zero], "first", axis=1)
        pooled = self.node(
            "Gemm",
            [first, self.weight("pooler.dense.weight"), self.weight("pooler.dense.bias")],
            "pooled",
            transB=1,
        )
        active = self.node("Tanh", [pooled], "pooled_active")
        weight = self.constant("classifier.weight", self.raw("classifier.weight"))
        bias = self.constant("classifier.bias", self.raw("classifier.bias"))
        return self.node("Gemm", [active, weight, bias], "output", transB=1)

    def model(self, output: str, states: str) -> bytes:
        helper = self._helper
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
    float32: for `mean` `[batch, hidden]`, rows of L2 norm 1; for `classifier` `[batch, classes]`,
    raw logits.

    `int8` takes one text, without padding, and GELU by its tanh approximation: quicker, and at the
    same cosine to float32.

    Args:
        weights: Tensors by their PyTorch names; with a `classifier` head the encoder's are prefixed
            `bert.`.
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
    builder = _Builder(weights, shape, "bert." if head == "classifier" else "", precision, outliers)
    hidden = builder.embeddings()
    for number in range(shape.layers):
        hidden = builder.layer(hidden, number)
    graph = builder.model(
        builder.mean_head(hidden) if head == "mean" else builder.classifier_head(hidden), hidden
    )
    if precision == "fp32":
        return graph
    float_down = [
        f"encoder.layer.{number}.narrow" for number in _FLOAT_DOWN if number not in outliers
    ]
    few = [
        f"encoder.layer.{number}.{part}{_FEW}" for number in outliers for part in ("wide", "narrow")
    ]
    return quantise(graph, [*float_down, *few])
