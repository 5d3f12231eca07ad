"""Options of answers. Settings read them, so nothing heavy is imported here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from app.core.types import CheckBy, EvidenceKind, PromptKind


@dataclass(frozen=True, slots=True)
class MannerOptions:
    """The configuration of it."""

    prompts: PromptKind = "auto"
    evidence: EvidenceKind = "auto"
    first_token_target_s: float = 3
    """Seconds without a first word after which it is said what is waited for."""
    reading_s: float = 20
    """Seconds that a model may read evidence, at its measured speed; at least 600 tokens."""


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Strategies, memory and privacy."""

    flare_active_retrieval: bool = False
    flare_draft_max_context_chars: int = 6000
    memory_strategy: Literal["summary_buffer", "buffer", "none"] = "summary_buffer"
    memory_buffer_size: int = 4
    """Exchanges kept word for word; 0 with summary_buffer folds every turn."""
    memory_token_budget: int = 2000
    store_answers: Literal["off", "hash", "full"] = "full"
    answer_retention_days: int = 0
    """0: forever."""
    refusal_language: Literal["en", "question"] = "en"
    """Language of the sentence of an abstention."""
    strict: bool = False
    """Show no sentence of a model that is not supported, no matter what a request says."""
    check_by: CheckBy = "reader"
    """Who decides whether a sentence is supported, where a chat model answers."""
    manner: MannerOptions = field(default_factory=MannerOptions)
    """How models are asked."""
