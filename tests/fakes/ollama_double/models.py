"""What the double has, says, gets wrong and remembers."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np

from app.core.types import FloatArray

FaultKind = Literal[
    "status",  # an HTTP status with a body, before anything else
    "error_line",  # status 200, `after` lines, then {"error": ...}
    "no_done",  # `after` lines, then a clean end
    "reset",  # `after` lines and half of one, then a TCP reset
    "close",  # `after` lines and half of one, then a close without the last chunk
    "split",  # every byte in a chunk of its own
    "joined",  # all lines in one chunk
    "slow",  # `delay_s` before the first byte
    "stall",  # `after` lines, then silence until the client goes
    "garbage",  # `after` lines, then one that is no JSON
    "redirect",  # 302 to another host
    "wrong_dimension",  # vectors one number short
    "not_finite",  # a vector with NaN
    "missing_vector",  # one vector too few
]


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong with one request."""

    kind: FaultKind
    after: int = 0
    delay_s: float = 0.0
    status: int = 500
    body: str = '{"error":"something went wrong"}'
    content_type: str = "application/json"
    message: str = "an error was encountered while running the model: CUDA error"


@dataclass(frozen=True)
class Script:
    """An answer by its tokens, with log-probabilities where asked for."""

    tokens: tuple[str, ...]
    logprobs: tuple[float, ...] = ()
    done_reason: str = "stop"
    asked: str = ""
    """Waits for a prompt that contains this."""

    @classmethod
    def of(cls, text: str, *, asked: str = "") -> Script:
        """Cut a text into word-like tokens that spell it."""
        return cls(tuple(re.findall(r"\s*\S+|\s+$", text)), asked=asked)


@dataclass(frozen=True)
class DoubleModel:
    """A model of the double; `dimension` makes it an embedding model."""

    name: str
    family: str = "llama"
    context_length: int = 4096
    dimension: int | None = None
    num_ctx: int | None = None
    thinks: bool = False
    decides: bool = False
    """Answers `/v1/systemone` alone."""
    yes: float | None = 0.9
    """What it answers there; None: nothing."""
    obedient: bool = False
    """Does what text in the passages tells it to, like a weak model under injection."""
    tells_capabilities: bool = True
    listed: tuple[str, ...] = ()
    """What the list says that it can do, where that is not what is shown of the model alone."""
    template: str = "{{ .Messages }}"
    parameters: str = ""
    """Further lines of the model file's parameters."""
    parameter_size: str = "3.2B"
    quantisation: str = "Q4_K_M"
    size: int = 1_000_000
    weights: str = ""
    """Digest, where several names have the same model."""

    @property
    def digest(self) -> str:
        return self.weights or hashlib.sha256(f"{self}".encode()).hexdigest()

    @property
    def capabilities(self) -> list[str]:
        if self.decides:
            return ["decision"]
        if self.dimension is not None:
            return ["embedding"]
        return ["completion", "thinking"] if self.thinks else ["completion"]

    def vector(self, text: str) -> FloatArray:
        """A unit vector: near for texts that share words."""
        row = np.zeros(self.dimension or 1, dtype=np.float32)
        for word in re.findall(r"\w+", text.lower()) or [text]:
            seed = int.from_bytes(
                hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()[:8], "big"
            )
            row += np.random.default_rng(seed).standard_normal(len(row)).astype(np.float32)
        unit: FloatArray = row / np.linalg.norm(row)
        return unit


@dataclass
class Runner:
    """A model in memory, with what was asked when it was loaded."""

    name: str
    asked: int
    shifts: bool
    window: int
    until: datetime


DEFAULT_MODELS = (
    DoubleModel("llama3.2:latest"),
    DoubleModel("nomic-embed-text:latest", "nomic-bert", 2048, dimension=768, num_ctx=8192),
)


@dataclass
class Recorded:
    """A request as it came."""

    path: str
    body: dict[str, object]
    headers: dict[str, str] = field(default_factory=dict)


def full_name(name: str) -> str:
    """A name with its tag."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def count_tokens(text: str) -> int:
    """Words and signs, about what a sub-word tokenizer makes of English."""
    return len(re.findall(r"\w{1,8}|[^\w\s]", text))


def default_answer(prompt: str, obedient: bool) -> str:
    """What the double says unscripted: the first sentence of the first passage, or what an injected order asks for."""
    if obedient and (
        order := re.search(
            r"(?:say|print|output|write|reply with|respond with|include)[: ]+[\"'`]?([^\"'`\n.]+)",
            prompt,
            re.IGNORECASE,
        )
    ):
        return order[1].strip()
    passage = re.search(r"\[1\][^\n]*\n+([^\n]+?[.!?])(?:\s|$)", prompt) or re.search(
        r"\[1\]\s*([^\n]+?[.!?])(?:\s|$)", prompt
    )
    return (
        f"{passage[1].strip()} [1]"
        if passage
        else "I don't have enough information in the provided documents to answer that."
    )
