"""The reader as a PyTorch network: one BERT body, three heads.

References:
    Devlin et al.: BERT, 2019 (encoder, pooler, spans by a start and an end).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from app.core.types import FloatArray

HEADS, HIDDEN, WIDE, EPSILON = 12, 384, 1536, 1e-12
"""Of MiniLM-L12-H384."""


class Layer(nn.Module):  # type: ignore[misc]  # torch is not here
    """One encoder layer; states are `[batch, tokens, 384]`."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.mix = nn.Linear(HIDDEN, HIDDEN)
        self.mix_norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.up, self.down = nn.Linear(HIDDEN, WIDE), nn.Linear(WIDE, HIDDEN)
        self.down_norm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, states: Tensor, is_read: Tensor) -> Tensor:
        batch, tokens, _ = states.shape

        def split(made: Tensor) -> Tensor:
            return made.view(batch, tokens, HEADS, -1).transpose(1, 2)

        attended = functional.scaled_dot_product_attention(
            split(self.query(states)), split(self.key(states)), split(self.value(states)), is_read
        )
        attended = attended.transpose(1, 2).reshape(batch, tokens, HIDDEN)
        middle = self.mix_norm(states + self.mix(attended))
        return torch.as_tensor(self.down_norm(middle + self.down(functional.gelu(self.up(middle)))))


class Reader(nn.Module):  # type: ignore[misc]  # torch is not here
    """Body and heads; the first `frozen` layers and the embeddings are not trained."""

    def __init__(self, layers: int, frozen: int = 0) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, HIDDEN)
        self.places = nn.Embedding(512, HIDDEN)
        self.types = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.answers_pooler = nn.Linear(HIDDEN, HIDDEN)
        self.answers = nn.Linear(HIDDEN, 1)
        self.claim_pooler = nn.Linear(HIDDEN, HIDDEN)
        self.claim = nn.Linear(HIDDEN, 3)
        self.span = nn.Linear(HIDDEN, 2)
        self.frozen = frozen

    def states(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        is_read = mask[:, None, None, :].bool()
        with torch.no_grad():
            places = torch.arange(ids.shape[1])
            states = self.norm(self.words(ids) + self.places(places) + self.types(types))
            for layer in self.layers[: self.frozen]:
                states = layer(states, is_read)
        for layer in self.layers[self.frozen :]:
            states = layer(states, is_read)
        return torch.as_tensor(states)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits: answers `[batch]`, claim `[batch, 3]`, start and end `[batch, tokens, 2]`."""
        states = self.states(ids, types, mask)
        first = states[:, 0]
        answers = self.answers(torch.tanh(self.answers_pooler(first)))[:, 0]
        claim = self.claim(torch.tanh(self.claim_pooler(first)))
        return answers, claim, self.span(states)

    def trained(self) -> list[nn.Parameter]:
        """Return the parameters that are trained."""
        kept = (self.words, self.places, self.types, self.norm, *self.layers[: self.frozen])
        held = {id(one) for module in kept for one in module.parameters()}
        return [one for one in self.parameters() if id(one) not in held]


_PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mix": "attention.output.dense",
    "mix_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "down_norm": "output.LayerNorm",
}
_TOP = {
    "words": "bert.embeddings.word_embeddings",
    "places": "bert.embeddings.position_embeddings",
    "types": "bert.embeddings.token_type_embeddings",
    "norm": "bert.embeddings.LayerNorm",
    "answers_pooler": "bert.pooler.dense",
    "answers": "classifier",
}


def from_weights(weights: Mapping[str, FloatArray], kept: list[int], frozen: int) -> Reader:
    """Return a reader on the named layers of a cross-encoder; claim and span start anew."""
    reader = Reader(len(kept), frozen)
    names = {f"{own}.{kind}": f"{theirs}.{kind}" for own, theirs in _TOP.items() for kind in _KINDS}
    for at, layer in enumerate(kept):
        for own, theirs in _PARTS.items():
            for kind in _KINDS:
                names[f"layers.{at}.{own}.{kind}"] = f"bert.encoder.layer.{layer}.{theirs}.{kind}"
    state = reader.state_dict()
    for own, theirs in names.items():
        if own in state:
            state[own] = torch.from_numpy(np.array(weights[theirs]))
    for kind in _KINDS:
        state[f"claim_pooler.{kind}"] = state[f"answers_pooler.{kind}"].clone()
    reader.load_state_dict(state)
    return reader


_KINDS = ("weight", "bias")


def from_trained(weights: Mapping[str, FloatArray], layers: int, frozen: int) -> Reader:
    """Return a reader as `to_weights` wrote it.

    Raises:
        KeyError: A tensor is missing: the weights are of fewer layers.
    """
    reader = Reader(layers, frozen)
    named = _trained_names(reader).items()
    reader.load_state_dict({own: torch.from_numpy(weights[theirs]) for own, theirs in named})
    return reader


def to_weights(reader: Reader) -> dict[str, FloatArray]:
    """Return tensors by the names that the graph's builder reads."""
    state = reader.state_dict()
    return {theirs: state[own].numpy() for own, theirs in _trained_names(reader).items()}


def _trained_names(reader: Reader) -> dict[str, str]:
    """Return the names that the graph's builder reads, by those of the reader's parameters."""
    names = {own: theirs.removeprefix("bert.") for own, theirs in _TOP.items()}
    names |= {"answers_pooler": "answers.pooler", "answers": "answers.classifier"}
    names |= {"claim_pooler": "claim.pooler", "claim": "claim.classifier", "span": "span"}
    for at in range(len(reader.layers)):
        names |= {f"layers.{at}.{own}": f"encoder.layer.{at}.{of}" for own, of in _PARTS.items()}
    parameters = (name.rpartition(".") for name in reader.state_dict())
    return {f"{own}.{kind}": f"{names[own]}.{kind}" for own, _, kind in parameters}
