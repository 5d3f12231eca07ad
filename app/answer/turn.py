"""One question on its way from asked to answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.answer.conversation import Memory
from app.answer.models import ModelCalls, ModelChoice
from app.answer.strategies import Found
from app.answer.writing import Outcome, supported_share
from app.core.cancel import CancelToken
from app.core.trace import Trace
from app.core.types import Answer, AnswerStatus, Evidence, Notice, NoticeCode, Question, Quote
from app.generation.injection import ADDRESSED_TO_A_MODEL, inspect
from app.generation.prompts import REFUSAL

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


# Close a turn: the answer with its confidence, or an abstention that says why.

NO_WRITER = "none"
"""Generator of an answer that nothing had to write."""


def closed(turn: Turn, outcome: Outcome, generator: str) -> Answer:
    """Return the answer; the refusal is an abstention."""
    turn.note(*flagged_notice(turn, outcome))
    if outcome.text == REFUSAL:
        turn.note(*missing_notice(turn.missing))
        return replace(
            turn.answer(REFUSAL, "abstained", generator),
            model_text=outcome.model_text,
            quote=None,
        )
    answer = turn.answer(outcome.text, "answered", generator)
    return replace(
        answer,
        sentences=outcome.sentences,
        confidence=answer.confidence * supported_share(outcome),
        model_text=outcome.model_text,
    )


def missing_notice(missing: Sequence[str]) -> tuple[Notice, ...]:
    """Return the notice `subject_missing` if no passage names the question's subject."""
    if not missing:
        return ()
    names = ", ".join(repr(name) for name in missing)
    return (Notice("subject_missing", f"no passage that was found names {names}"),)


def flagged_notice(turn: Turn, outcome: Outcome) -> tuple[Notice, ...]:
    """Return the notice `injection_flagged`: instructions in a passage that was used.

    A passage is used when it is cited or was handed to a model. What stands elsewhere in its
    document is told by the document's flags.
    """
    cited = {one.n for sentence in outcome.sentences for one in sentence.citations}
    used = turn.calls.handed | {item.n: item for item in turn.evidence if item.n in cited}
    passages = (item.hit.passage for _, item in sorted(used.items()))
    titles = dict.fromkeys(
        repr(passage.document.title)
        for passage in passages
        if not ADDRESSED_TO_A_MODEL.isdisjoint(passage.document.flags)
        and not ADDRESSED_TO_A_MODEL.isdisjoint(inspect(passage.chunk.text))
    )
    if not titles:
        return ()
    said = f"text that looks like instructions to a model was found in {', '.join(titles)}"
    return (Notice("injection_flagged", said),)


def hosted_notice(turn: Turn) -> tuple[Notice, ...]:
    """Return the notice that words left the machine, when a hosted model was asked."""
    host = turn.choice.model or turn.choice.helper
    if not turn.choice.hosted or host is None or not turn.trace.llm_calls:
        return ()
    said = (
        "the question, and passages of your documents where they were read, were sent to"
        f" {host.name}"
    )
    return (Notice("hosted_provider", f"{said}, which is not on this machine"),)
