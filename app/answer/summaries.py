"""Summarise whole documents: key sentences at once, then a model's words if there is one.

A model reads the document part by part (map) and then the sentences that held (reduce). What no
passage supports is dropped in both steps; where a part gives nothing, its key sentences stand in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Generator as Steps
from contextlib import closing
from dataclasses import dataclass, replace

from app.answer import intent
from app.answer.intent import any_of, folded, without_politeness
from app.answer.judging import judged_answer
from app.answer.models import PromptPlan
from app.answer.steps import CERTAIN, AnswerSteps, Asked, Found, Written, closed, hosted_notice
from app.answer.strategies import numbered
from app.answer.targets import MOST_DOCUMENTS, Targets
from app.answer.writing import (
    DEFAULT_WINDOW_TOKENS,
    AnswerWriter,
    GenerationRequest,
    ModelText,
    Outcome,
    choose_outcome,
    is_refusal,
    quoted_instead,
    write,
)
from app.core.errors import InvalidInput, ProviderError
from app.core.ports import Generator
from app.core.sentences import sentence_spans
from app.core.types import (
    REFUSAL,
    AnswerEvent,
    CheckBy,
    Document,
    Evidence,
    Notice,
    Question,
    Quote,
    QuoteEvent,
    ReadingEvent,
    SourcesEvent,
    TokenEvent,
)
from app.generation.check.citations import without_marks
from app.generation.check.grounding import Grounder
from app.generation.language.claims import content_tokens
from app.generation.quote.quoting import QuotedText, Selection
from app.generation.quote.summaries import (
    SummaryPart,
    key_texts,
    outline,
    quoted_summary,
    summary_parts,
)

_WINDOW_SHARE = 0.5
"""Of a model's window that the text of one part may take."""
WHICH_DOCUMENT = Notice(
    "document_unclear", "It is not clear which document to summarise: select it, or name its title."
)
_MOST_OF_PART = 2
"""Passages that the summary of one part may name: what a small model says after that is copied."""
_PART = "What does this text say? Answer in one or two sentences."
_WHOLE = "Summarise {title} in about five sentences."

_STOPS = (".", "!", "?", "\u3002", ")", '"', "\u201d", "|")

ManneredBy = Callable[[Asked, Generator], PromptPlan]
"""Returns how a model is asked."""


@dataclass(frozen=True, slots=True)
class Summaries:
    """Writes summaries of named documents; stateless."""

    targets: Targets
    answer_writer: AnswerWriter
    grounder: Grounder
    manner_of: ManneredBy
    check_by: CheckBy = "reader"

    def events(
        self, found: Found, documents: Sequence[Document], *, read_all: bool = False
    ) -> AnswerSteps:
        """Yield sources, the quoted summary and a model's words; return the answer.

        Args:
            found: The request; nothing needs to be found for it.
            documents: What is summarised.
            read_all: A model reads them part by part, where they do not fit one call. Else it reads
                their outline.
        """
        found, whole, quoted = self._quoted(found, documents)
        asked, model, quote = found.asked, found.asked.choice.model, None
        yield SourcesEvent(found.evidence)
        outcome, writer = Outcome(quoted.text, quoted.sentences), self.answer_writer.extractive.name
        if not quoted.text:
            outcome = Outcome(REFUSAL, ())
            yield TokenEvent(REFUSAL)
        elif model is None:
            yield TokenEvent(quoted.text)
        else:
            how = self.manner_of(asked, model)
            quote = Quote(quoted.text, quoted.sentences, how.leads)
            yield QuoteEvent(quote)
            if how.leads:
                yield TokenEvent(f"{quoted.text}\n\n")
            parts = self._parts(whole, model, how, read_all=read_all)
            found, outcome = yield from self._phrased(found, parts, model, how, quote)
            writer = writer if outcome.quoted else model.name
        asked.cancel.raise_if_cancelled()
        if outcome.notice:
            found = found.noted(outcome.notice)
        found = found.noted(*hosted_notice(asked))
        return closed(Written(found, outcome, writer, CERTAIN, quote=quote))

    def _quoted(
        self, found: Found, documents: Sequence[Document]
    ) -> tuple[Found, tuple[Evidence, ...], QuotedText]:
        """Return all passages and the key sentences; the evidence is what those stand in."""
        if len(documents) > MOST_DOCUMENTS:
            said = f"the first {MOST_DOCUMENTS} of {len(documents)} documents are summarised"
            found = found.noted(Notice("context_cut", said))
        with found.asked.trace.stage("summarise", len(documents)) as stage:
            whole = self.targets.evidence(documents[:MOST_DOCUMENTS])
            quoted = quoted_summary(whole)
            stage.n_out = len(quoted.sentences)
        found = replace(found, evidence=quoted.evidence)
        return found, numbered([one.hit for one in whole], quoted.evidence), quoted

    def _parts(
        self, whole: Sequence[Evidence], model: Generator, how: PromptPlan, *, read_all: bool
    ) -> tuple[SummaryPart, ...]:
        """Return what a model reads, one call each."""
        window = model.context_tokens or DEFAULT_WINDOW_TOKENS
        budget = min(how.budget_tokens, int(window * _WINDOW_SHARE))
        estimate = self.answer_writer.tokens.estimate(model.name)
        parts = summary_parts(whole, budget, estimate)
        return parts if read_all or len(parts) == 1 else (outline(whole, budget, estimate),)

    def _phrased(
        self,
        found: Found,
        parts: Sequence[SummaryPart],
        model: Generator,
        how: PromptPlan,
        quote: Quote,
    ) -> Steps[AnswerEvent, None, tuple[Found, Outcome]]:
        """Yield progress and the model's summary; return what becomes of it."""
        asked = found.asked
        calls = 1 if len(parts) == 1 else len(parts) + 1
        try:
            told = parts[0] if len(parts) == 1 else (yield from self._map(asked, parts, model, how))
            found = replace(found, evidence=_joined(found.evidence, told.evidence))
            yield SourcesEvent(found.evidence)
            with asked.trace.stage("generate", len(told.evidence)) as stage:
                task = self._assignment(asked, told, how, _WHOLE)
                written = yield from _numbered_reading(
                    write(self.answer_writer, task, model, asked.calls), calls, calls
                )
                stage.n_out = 1
        except (ProviderError, InvalidInput) as error:
            reason = f"{model.name} failed ({error.message})"
            return found, quoted_instead(quote, reason, None)
        with asked.trace.stage("ground") as stage:
            grounded = self.grounder.ground(finished(written.text), found.evidence)
            judge = asked.choice.judge or model
            grounded = judged_answer(self.check_by, grounded, found.evidence, judge, asked.calls)
            stage.n_out = sum(len(sentence.citations) for sentence in grounded.sentences)
        outcome = choose_outcome(
            quote, grounded, written.stopped, confident=True, strict=asked.question.strict
        )
        return found.noted(*written.notices), outcome

    def _map(
        self, asked: Asked, parts: Sequence[SummaryPart], model: Generator, how: PromptPlan
    ) -> Steps[AnswerEvent, None, SummaryPart]:
        """Yield progress; return the sentences that hold, each with its passage.

        A part of which the model says nothing that holds gives its key sentences.
        """
        held: dict[int, str] = {}
        for at, part in enumerate(parts, 1):
            task = self._assignment(asked, part, how, _PART)
            with asked.trace.stage("map", len(part.evidence)) as stage:
                written = yield from _numbered_reading(
                    write(self.answer_writer, task, model, asked.calls), at, len(parts) + 1
                )
                found = self._holding(written, part) or key_texts(part.evidence)
                stage.n_out = len(found)
            held |= found
        told = tuple(item for part in parts for item in part.evidence if item.n in held)
        return SummaryPart(told, held)

    def _holding(self, written: ModelText, part: SummaryPart) -> dict[int, str]:
        """Return the supported sentences of a part's summary, by the passage that holds them."""
        found: dict[int, str] = {}
        if written.stopped or is_refusal(written.text):
            return found
        for one in self.grounder.ground(finished(written.text), part.evidence).sentences:
            if len(found) < _MOST_OF_PART and one.verdict == "supported" and one.citations:
                n, said = one.citations[0].n, without_marks(one.text)
                found[n] = f"{found[n]} {said}" if n in found else said
        return found

    def _assignment(
        self, asked: Asked, part: SummaryPart, how: PromptPlan, text: str
    ) -> GenerationRequest:
        titles = dict.fromkeys(item.hit.passage.document.title for item in part.evidence)
        return GenerationRequest(
            asked.question,
            text.format(title=" and ".join(repr(title) for title in titles)),
            part.evidence,
            Selection((), CERTAIN),
            (),
            how,
            texts=part.texts,
        )


def finished(text: str) -> str:
    """Return a text without its last sentence, if that was cut off; never empty for it."""
    spans = sentence_spans(text)
    if len(spans) < 2 or without_marks(text.rstrip()).endswith(_STOPS):
        return text
    return text[: spans[-2][1]]


def _numbered_reading(
    events: Steps[ReadingEvent | TokenEvent, None, ModelText], part: int, parts: int
) -> Steps[ReadingEvent | TokenEvent, None, ModelText]:
    """Yield what a model does for one part of several; only the last part's words are shown."""
    with closing(events):
        while True:
            try:
                event = next(events)
            except StopIteration as ended:
                written: ModelText = ended.value
                return written
            if isinstance(event, ReadingEvent):
                yield replace(event, part=part, parts=parts)
            elif part == parts:
                yield event


def _joined(evidence: Sequence[Evidence], more: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence and more of it, each passage once, by number."""
    found = {item.n: item for item in (*evidence, *more)}
    return tuple(found[n] for n in sorted(found))


# Recognise requests for a summary, and what they want summarised.

_EXPLICIT = re.compile(rf"\W*{any_of(intent.SUMMARIES)}")
_ABOUT = re.compile(rf"\W*(?:{'|'.join(intent.ABOUTS)})\W*\Z")
_QUOTED = re.compile(
    r"[\"\u201c\u201e\u00ab](?P<title>[^\"\u201c\u201d\u00bb]{2,200})[\"\u201c\u201d\u00bb]"
)
_ALL = re.compile(rf"\b{any_of(intent.ALL_OF_IT)}")
_LEADING = re.compile(rf"\W*(?:{any_of((*intent.SUMMARY_LEADS, *intent.ALL_OF_IT))}\W*)+")
_TRAILING = re.compile(rf"\W*\b{any_of(intent.SUMMARY_ENDINGS)}\W*\Z")


@dataclass(frozen=True, slots=True)
class SummaryWish:
    """A request for a summary."""

    about: str
    """The title or topic, as typed; empty where the request says "this paper"."""
    explicit: bool
    """Says "summarise". What asks what something is about may be a plain question."""
    read_all: bool = False
    """Says "all of it", "the whole paper"."""

    @property
    def names_something(self) -> bool:
        """Return whether the request names a document or a topic."""
        return bool(content_tokens(self.about))


def summary_wish(question: str) -> SummaryWish | None:
    """Return what a question wants summarised; None if it asks for no summary."""
    text = without_politeness(question)
    plain = folded(text)
    if match := _EXPLICIT.match(plain):
        return _explicit(text[match.end() :])
    if match := _ABOUT.match(plain):
        group = "title" if match["title"] else "named"
        named = text[slice(*match.span(group))] if match[group] else ""
        return SummaryWish(_named(named), explicit=False)
    return None


def wish_of(question: Question) -> SummaryWish | None:
    """Return what a question wants summarised; None if it asks for something else.

    In the mode `summary` all of its words name the document.
    """
    if question.retrieve_only:
        return None
    if question.mode == "summary":
        return summary_wish(question.text) or _explicit(question.text)
    return summary_wish(question.text) if question.mode == "general" else None


def _explicit(rest: str) -> SummaryWish:
    about = _named(rest)
    said = folded(rest).replace(folded(about), " ") if about else folded(rest)
    return SummaryWish(about, explicit=True, read_all=_ALL.search(said) is not None)


def _named(rest: str) -> str:
    """Return the title or topic in the rest of a request, without words around it."""
    if quoted := _QUOTED.search(rest):
        return quoted["title"].strip()
    plain = folded(rest)
    end = len(rest)
    while match := _TRAILING.search(plain, 0, end):
        end = match.start()
    leading = _LEADING.match(plain, 0, end)
    return rest[leading.end() if leading else 0 : end].strip(" \t\n.?!:,;\"'")
