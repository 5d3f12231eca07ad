"""Options of the query use case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from app.answer.manner import MannerOptions


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Strategies, memory and privacy."""

    flare_active_retrieval: bool = False
    flare_draft_max_context_chars: int = 6000
    flare_threshold: float = 0.4
    """A draft sentence with a less probable word is searched for and generated again, [0, 1]."""
    flare_mask_threshold: float = 0.4
    """Words less probable than this are left out of a masked query, [0, 1]."""
    flare_query: Literal["masked", "question"] = "masked"
    """How an unsure sentence becomes a query; `question` costs one more call of the helper each
    time."""
    flare_max_rounds: int = 3
    """Sentences generated again at most, so that a small unsure model cannot search for ever."""
    memory_strategy: Literal["summary_buffer", "buffer", "none"] = "summary_buffer"
    memory_buffer_size: int = 4
    """Exchanges kept word for word; 0 with summary_buffer folds every turn."""
    memory_token_budget: int = 2000
    store_answers: Literal["off", "hash", "full"] = "full"
    answer_retention_days: int = 0
    """0: for ever."""
    refusal_language: Literal["en", "question"] = "en"
    """Language of the sentence of an abstention."""
    manner: MannerOptions = field(default_factory=MannerOptions)
    """How models are asked."""
