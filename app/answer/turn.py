"""One question on its way from asked to answered."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.answer.memory import Memory
from app.answer.models import ModelCalls, ModelChoice
from app.answer.strategies import Found
from app.core.cancel import CancelToken
from app.core.trace import Trace
from app.core.types import (
    Answer,
    AnswerStatus,
    Evidence,
    Notice,
    NoticeCode,
    Question,
    Quote,
)

CERTAIN = 1.0
"""Confidence where a document was named and every sentence stands in it: nothing was guessed."""


@dataclass(slots=True)
class Turn:
    """One question on its way; not shared between threads."""

    answer_id: str
    question: Question
    embedder: str
    cancel: CancelToken
    trace: Trace
    calls: ModelCalls
    choice: ModelChoice
    memory: Memory = field(default_factory=Memory)
    notices: tuple[Notice, ...] = ()
    rewritten: str | None = None
    found: Found | None = None
    evidence: tuple[Evidence, ...] = ()
    quote: Quote | None = None
    confidence: float | None = None
    """Probability that the quote answers the question; None where nothing was to be quoted."""
    shaped: bool = False
    """The quote is a table or a list, as the question's mode asks for it."""
    missing: tuple[str, ...] = ()
    """What the question names and no passage does."""

    def note(self, *notices: Notice) -> None:
        """Add notices, each code and message once."""
        self.notices = tuple(dict.fromkeys((*self.notices, *notices)))

    def drop_notice(self, code: NoticeCode) -> None:
        """Forget the notices of a code."""
        self.notices = tuple(one for one in self.notices if one.code != code)

    def use(self, evidence: tuple[Evidence, ...]) -> None:
        """Take evidence of which some passed the cutoff: the nearest ones are no fallback then."""
        self.evidence = tuple(item for item in evidence if not item.hit.fallback)
        self.drop_notice("fallback_used")

    def answer(self, text: str, status: AnswerStatus, generator: str) -> Answer:
        """Return the outcome so far; an abstention has no sources and confidence 0."""
        shown = status in ("answered", "retrieved")
        if not shown:  # it points to sources
            self.drop_notice("libraries_disagree")
        return Answer(
            self.answer_id,
            text,
            status,
            self.question,
            generator,
            self.embedder,
            strategy=self.found.strategy if self.found else "baseline",
            evidence=self.evidence if shown else (),
            notices=self.notices
            if shown
            else tuple(n for n in self.notices if n.code != "fallback_used"),
            rewritten_query=self.rewritten,
            confidence=self._confidence if shown else 0.0,
            trace=self.trace.report(),
            usage=self.calls.usage,
            conversation_id=self.question.conversation_id,
            quote=self.quote,
        )

    @property
    def _confidence(self) -> float:
        if self.confidence is not None:
            return self.confidence
        return self.found.retrieval.confidence if self.found else 0.0
