"""Define prompts, and what models return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.core.types.retrieval import Evidence
from app.core.types.vocabulary import Role


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation or prompt."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The input of a generator.

    Model generators send `messages`; the extractive one reads question and evidence.
    """

    messages: tuple[Message, ...]
    question: str = ""
    evidence: tuple[Evidence, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    logprobs: bool = False
    json_schema: Mapping[str, object] | None = None
    model: str | None = None
    """Overrides the generator's model for this call."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts and durations of one call, as the provider reports them.

    None if it does not. Durations in seconds.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_seconds: float | None = None
    """Reading the prompt; for hosts that do not say, from the request to the first token, so
    loading and queueing count."""
    completion_seconds: float | None = None
    """Writing the answer; for hosts that do not say, from the first token to the end."""
    load_seconds: float | None = None
    """Loading the model and waiting for it, which `prompt_seconds` of a host that says so leaves
    out."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of generated text.

    The last one of a stream has `finish` set; its text may be empty.
    """

    text: str
    logprob: float | None = None
    finish: Literal["stop", "length"] | None = None
    usage: Usage | None = None
