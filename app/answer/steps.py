"""One question from asked to answered.

Each step holds the one before it and is never changed: `Asked`, `Found`, `Quoted`, `Written`, and
the `Answer` that `closed` makes of it.
"""

from __future__ import annotations

from collections.abc import Generator as Steps
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.answer.intent import Intent
from app.answer.memory import Memory
from app.answer.models import ModelCalls, ModelChoice
from app.answer.search import Search
from app.answer.writing import Outcome, supported_share
from app.core.cancel import CancelToken
from app.core.trace import Trace
from app.core.types import (
    REFUSAL,
    Answer,
    AnswerEvent,
    AnswerStatus,
    Evidence,
    Notice,
    NoticeCode,
    Question,
    Quote,
    Strategy,
)
from app.generation.flags.injection import ADDRESSED_TO_A_MODEL, inspect
from app.generation.quote.quoting import Selection
from app.retrieval.scoring import MOST_CONFIDENT

CERTAIN = MOST_CONFIDENT
"""Confidence where a document was named and every sentence stands in it: nothing was guessed."""
NO_WRITER = "none"
"""Generator of an answer that nothing had to write."""

AnswerSteps = Steps[AnswerEvent, None, Answer]
"""Yields what can be shown on the way and returns the answer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, who may answer it, and what must be said with any answer to it."""

    answer_id: str
    question: Question
    intent: Intent
    text: str
    """The question as it is searched."""
    around: tuple[str, ...]
    """Sentences of the message that ask nothing."""
    embedder: str
    cancel: CancelToken
    trace: Trace
    calls: ModelCalls
    choice: ModelChoice
    empty: bool = False
    """No library of the question has a chunk."""
    notices: tuple[Notice, ...] = ()

    def noted(self, *notices: Notice) -> Asked:
        """Return the question with further notices, each code and message once."""
        return replace(self, notices=tuple(dict.fromkeys((*self.notices, *notices))))

    def without_notice(self, code: NoticeCode) -> Asked:
        """Return the question without the notices of a code."""
        return replace(self, notices=tuple(one for one in self.notices if one.code != code))


@dataclass(frozen=True, slots=True)
class Found:
    """Numbered passages for a question, and how they were found."""

    asked: Asked
    search: Search
    query: str = ""
    evidence: tuple[Evidence, ...] = ()
    memory: Memory = field(default_factory=Memory)
    rewritten: str | None = None
    strategy: Strategy = "baseline"
    confidence: float = 0.0
    """Of the search, in [0, 1]."""

    @property
    def searched(self) -> str | None:
        """What was searched, where a word was respelt or the question was rewritten."""
        searched = self.search.searched(self.query)
        return searched if searched != self.asked.text else self.rewritten

    def noted(self, *notices: Notice) -> Found:
        """Return what was found with further notices."""
        return replace(self, asked=self.asked.noted(*notices))

    def using(self, evidence: Sequence[Evidence]) -> Found:
        """Return it with evidence of which some passed the cutoff: the rest is no fallback."""
        return replace(
            self,
            asked=self.asked.without_notice("fallback_used"),
            evidence=tuple(item for item in evidence if not item.hit.fallback),
        )


@dataclass(frozen=True, slots=True)
class Quoted:
    """The sentences of the passages that answer best."""

    found: Found
    selection: Selection
    quote: Quote | None
    """None if nothing is likely enough to answer."""
    confidence: float
    """Probability that the quote answers the question."""
    missing: tuple[str, ...]
    """What the question names and no passage does."""
    shaped: bool = False
    """The quote is a table or a list, as the question's mode asks for it."""


@dataclass(frozen=True, slots=True)
class Written:
    """What is going to be said, and who wrote it."""

    found: Found
    outcome: Outcome
    generator: str
    confidence: float | None = None
    """None: as of the search."""
    missing: tuple[str, ...] = ()
    quote: Quote | None = None
    """The quote that was shown before a model wrote."""


def answer_of(
    asked: Asked, text: str, status: AnswerStatus, generator: str, found: Found | None = None
) -> Answer:
    """Return an answer; one that is no answer to the question has no sources and confidence 0."""
    shown = status in ("answered", "retrieved")
    if not shown:  # these point to sources
        asked = asked.without_notice("fallback_used")
    return Answer(
        asked.answer_id,
        text,
        status,
        asked.question,
        generator,
        asked.embedder,
        strategy=found.strategy if found else "baseline",
        evidence=found.evidence if found and shown else (),
        notices=asked.notices,
        rewritten_query=found.searched if found and found.query else None,
        confidence=found.confidence if found and shown else 0.0,
        trace=asked.trace.report(),
        usage=asked.calls.usage,
        conversation_id=asked.question.conversation_id,
    )


def closed(written: Written) -> Answer:
    """Return the answer with its confidence; the refusal is an abstention that says why."""
    found, outcome = written.found, written.outcome
    refused = outcome.text == REFUSAL
    notices = (
        *flagged_notice(found, outcome),
        *(missing_notice(written.missing) if refused else ()),
    )
    answer = answer_of(
        found.asked.noted(*notices),
        outcome.text,
        "abstained" if refused else "answered",
        written.generator,
        found,
    )
    if refused:
        return replace(answer, model_text=outcome.model_text)
    confidence = answer.confidence if written.confidence is None else written.confidence
    return replace(
        answer,
        sentences=outcome.sentences,
        evidence=tuple(_as_cited(answer.evidence, outcome)),
        confidence=confidence * supported_share(outcome),
        model_text=outcome.model_text,
        quote=written.quote,
    )


def _as_cited(evidence: Sequence[Evidence], outcome: Outcome) -> Iterator[Evidence]:
    """Yield the evidence; what a supported sentence cites is not far from the question."""
    held = {
        one.n
        for sentence in outcome.sentences
        if sentence.verdict == "supported"
        for one in sentence.citations
    }
    for item in evidence:
        is_far = item.hit.band == "weak" and item.n in held
        yield replace(item, hit=replace(item.hit, band="partial")) if is_far else item


def missing_notice(missing: Sequence[str]) -> tuple[Notice, ...]:
    """Return the notice `subject_missing` if no passage names the question's subject."""
    if not missing:
        return ()
    names = ", ".join(repr(name) for name in missing)
    return (Notice("subject_missing", f"no passage that was found names {names}"),)


def flagged_notice(found: Found, outcome: Outcome) -> tuple[Notice, ...]:
    """Return the notice `injection_flagged`: instructions in a passage that was used.

    A passage is used when it is cited or was handed to a model. What stands elsewhere in its
    document is told by the document's flags.
    """
    cited = {one.n for sentence in outcome.sentences for one in sentence.citations}
    used = found.asked.calls.handed | {item.n: item for item in found.evidence if item.n in cited}
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


def hosted_notice(asked: Asked) -> tuple[Notice, ...]:
    """Return the notice that words left the machine, when a hosted model was asked."""
    host = asked.choice.model or asked.choice.helper
    if not asked.choice.hosted or host is None or not asked.trace.llm_calls:
        return ()
    said = (
        "the question, and passages of your documents where they were read, were sent to"
        f" {host.name}"
    )
    return (Notice("hosted_provider", f"{said}, which is not on this machine"),)
