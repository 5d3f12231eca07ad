"""A BERT encoder in plain numpy, the oracle of the ONNX graph, and small random weights for it."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.types import FloatArray

Floats = npt.NDArray[np.float64]
_erf = np.vectorize(math.erf)


@dataclass(frozen=True)
class TinyBert:
    """Sizes of a small model."""

    vocabulary: int = 60
    hidden: int = 16
    wide: int = 32
    layers: int = 2
    heads: int = 4
    positions: int = 64
    epsilon: float = 1e-12

    def config(self) -> dict[str, object]:
        return {
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "max_position_embeddings": self.positions,
            "layer_norm_eps": self.epsilon,
        }

    def weights(self, seed: int, *, reader: bool = False) -> dict[str, FloatArray]:
        """Random tensors under their PyTorch names; `reader`: those of its heads too."""
        rng = np.random.default_rng(seed)
        h, shapes = self.hidden, dict[str, tuple[int, ...]]()

        def dense(name: str, out: int, into: int) -> None:
            shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (out, into), (out,)

        def norm(name: str) -> None:
            shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (h,), (h,)

        shapes |= {"embeddings.word_embeddings.weight": (self.vocabulary, h)}
        shapes |= {"embeddings.position_embeddings.weight": (self.positions, h)}
        shapes |= {"embeddings.token_type_embeddings.weight": (2, h)}
        norm("embeddings.LayerNorm")
        for number in range(self.layers):
            at = f"encoder.layer.{number}."
            for part in ("query", "key", "value"):
                dense(f"{at}attention.self.{part}", h, h)
            dense(f"{at}attention.output.dense", h, h)
            norm(f"{at}attention.output.LayerNorm")
            dense(f"{at}intermediate.dense", self.wide, h)
            dense(f"{at}output.dense", h, self.wide)
            norm(f"{at}output.LayerNorm")
        if reader:
            for head, classes in (("answers", 1), ("claim", 3)):
                dense(f"{head}.pooler", h, h)
                dense(f"{head}.classifier", classes, h)
            dense("span", 2, h)
        return {
            name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()
        }

    def hidden_states(
        self, w: Mapping[str, FloatArray], ids: list[int], types: list[int]
    ) -> Floats:
        """Last hidden states `[tokens, hidden]` of one unpadded text, in float64."""

        def dense(x: Floats, name: str) -> Floats:
            return x @ w[f"{name}.weight"].T.astype(np.float64) + w[f"{name}.bias"]

        def norm(x: Floats, name: str) -> Floats:
            centred = x - x.mean(-1, keepdims=True)
            scale = np.sqrt((centred**2).mean(-1, keepdims=True) + self.epsilon)
            result: Floats = centred / scale * w[f"{name}.weight"] + w[f"{name}.bias"]
            return result

        table = {
            kind: w[f"embeddings.{kind}_embeddings.weight"].astype(np.float64)
            for kind in ("word", "position", "token_type")
        }
        x = norm(
            table["word"][ids] + table["position"][: len(ids)] + table["token_type"][types],
            "embeddings.LayerNorm",
        )
        for number in range(self.layers):
            at = f"encoder.layer.{number}."
            q, k, v = (
                dense(x, f"{at}attention.self.{part}")
                .reshape(len(ids), self.heads, -1)
                .swapaxes(0, 1)
                for part in ("query", "key", "value")
            )
            scores = q @ k.swapaxes(1, 2) / math.sqrt(self.hidden // self.heads)
            share = np.exp(scores - scores.max(-1, keepdims=True))
            share /= share.sum(-1, keepdims=True)
            attended = (share @ v).swapaxes(0, 1).reshape(len(ids), self.hidden)
            x = norm(
                x + dense(attended, f"{at}attention.output.dense"),
                f"{at}attention.output.LayerNorm",
            )
            wide = dense(x, f"{at}intermediate.dense")
            wide = wide * 0.5 * (1 + _erf(wide / math.sqrt(2)))
            x = norm(x + dense(wide, f"{at}output.dense"), f"{at}output.LayerNorm")
        return x

    def embedding(self, w: Mapping[str, FloatArray], ids: list[int]) -> Floats:
        """Mean of the hidden states, scaled to norm 1."""
        mean = self.hidden_states(w, ids, [0] * len(ids)).mean(0)
        result: Floats = mean / np.linalg.norm(mean)
        return result

    def logits(self, w: Mapping[str, FloatArray], ids: list[int], types: list[int]) -> Floats:
        """Tanh poolers on the first state, then the linear outputs: answers, three of a claim."""
        first = self.hidden_states(w, ids, types)[0]
        found = []
        for head in ("answers", "claim"):
            pooled = np.tanh(
                w[f"{head}.pooler.weight"].astype(np.float64) @ first + w[f"{head}.pooler.bias"]
            )
            weight = w[f"{head}.classifier.weight"].astype(np.float64)
            found.append(weight @ pooled + w[f"{head}.classifier.bias"])
        return np.concatenate(found)


def write_safetensors(path: Path, tensors: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Write tensors in the public format, float32 and int64 only."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    blocks: list[bytes] = []
    offset = 0
    for name, tensor in tensors.items():
        block = np.ascontiguousarray(tensor).tobytes()
        kind = "F32" if tensor.dtype == np.float32 else "I64"
        header[name] = {
            "dtype": kind,
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(block)],
        }
        offset += len(block)
        blocks.append(block)
    encoded = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + b"".join(blocks))
