"""Write an answer: quotes first, then the model's words.

The model reads as much evidence as its host can.
"""

from __future__ import annotations

import re
from collections.abc import Generator as Steps
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

from app.answer.models import ModelCalls, PromptPlan
from app.core.errors import InvalidInput
from app.core.ports import Generator
from app.core.text import tokenise
from app.core.types import (
    REFUSAL,
    ContextTrace,
    Evidence,
    Message,
    Mode,
    Notice,
    Question,
    Quote,
    ReadingEvent,
    Sentence,
    TokenEvent,
)
from app.generation.check.citations import StreamGuard, without_marks
from app.generation.check.grounding import Grounded, Grounder
from app.generation.flags.injection import without_instructions
from app.generation.language.tokens import TokenCalibrator, TokenEstimate
from app.generation.prompt.context import (
    ComposedPrompt,
    PromptRequest,
    compose_prompt,
    cut_notice,
    extracts,
    joined,
    rendered_evidence,
)
from app.generation.prompt.prompts import GenerationOptions, PromptLibrary
from app.generation.prompt.runaway import Runaway, RunawayGuard
from app.generation.quote.quoting import ExtractiveGenerator, Selection, behind, quoted_text
from app.generation.quote.yes_no import settled_by

DEFAULT_WINDOW_TOKENS = 4096
"""Of a model host that does not say; the smallest default of the hosts in use."""
_SECOND_TRY = 0.6
"""Share of the window planned for once a host said that a prompt is too long: its text takes
more tokens than any before."""
CONFIDENT = 0.5
"""Probability that the quoted sentences bear on the question from which a model's refusal is
overruled."""


_GO_ON = (
    "Your answer was cut. Go on after its last sentence with what is still missing: cite as before,"
    " and repeat nothing."
)
"""Asked of every host alike: few go on with a message of the assistant that ends a prompt."""
_ANSWER_CUT = Notice(
    "answer_cut",
    "the model's answer ends at the length limit (LLM_MAX_TOKENS); `begun` lets it go on",
)
_WHOLE = re.compile(
    r"(?s:.*)(?:[.!?\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*(?:[ \t]*\[[\d, ]+\])*(?=\s|\Z)|\n)"
)


def whole_sentences(begun: str) -> str:
    """Return a text that was cut up to its last whole sentence or line, ready to go on."""
    found = _WHOLE.match(begun)
    text = found[0] if found else ""
    return f"{text} " if text and not text.endswith("\n") else text


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes answers from evidence; shared by all questions."""

    extractive: ExtractiveGenerator
    prompts: PromptLibrary
    tokens: TokenCalibrator
    options: GenerationOptions

    def has_own_prompt(self, mode: Mode) -> bool:
        """Return whether the user wrote the full prompt of a mode and no compact one."""
        overlaid = self.prompts.is_overlaid
        return (
            mode != "datasets"
            and not overlaid("compact")
            and (overlaid(mode) or overlaid("contract"))
        )

    def with_settings(self, request: PromptRequest, question: Question) -> PromptRequest:
        """Return a request with the temperature and length that the user set.

        And with the way of reasoning: the question's, its mode's prompt's, or the default.
        """
        options = self.options
        of_mode = self.prompts.answer(question.mode, question.library).reasoning
        return replace(
            request,
            reasoning=question.reasoning or of_mode or options.reasoning,
            temperature=options.temperature if "temperature" in options.explicit else None,
            max_tokens=options.max_tokens if "max_tokens" in options.explicit else None,
        )


@dataclass(frozen=True, slots=True)
class ModelText:
    """A model's text after guards, why it was ended early, and its notices."""

    text: str
    """Of a model that began to repeat a sentence above it, that sentence."""
    stopped: Runaway | None = None
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """The task of a model: question, evidence, and manner."""

    question: Question
    text: str
    """The user's own words, or what they mean where the prompt has no room for a history."""
    evidence: tuple[Evidence, ...]
    selection: Selection
    history: tuple[Message, ...]
    manner: PromptPlan
    missing: tuple[str, ...] = ()
    """What the question names and no passage does: the model is told."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """What is handed over of each passage, by evidence number; empty: as the manner says."""
    begun: str = ""
    """Whole sentences of an answer that was cut, after which the model goes on."""
    above: tuple[str, ...] = ()
    """Sentences that the reader sees above the model's words."""

    @property
    def asked(self) -> str:
        """The question, and what of it no passage names."""
        if not self.missing:
            return self.text
        return f"{self.text}\n(No passage names {', '.join(self.missing)}.)"

    def _by_rank(self) -> tuple[Evidence, ...]:
        """Return the evidence by its best sentence, where sentences were ranked."""
        places: dict[int, int] = {}
        for place, one in enumerate(self.selection.ranked):
            places.setdefault(one.item.n, place)
        last = len(self.selection.ranked)
        return tuple(sorted(self.evidence, key=lambda item: places.get(item.n, last)))

    def prompt(self, share: float, estimate: TokenEstimate) -> tuple[PromptRequest, int]:
        """Return what the prompt is made of and how much evidence it may take, in tokens."""
        manner = self.manner
        budget = int(manner.budget_tokens * share)
        compact = manner.prompts == "compact"
        if self.texts:
            evidence, texts = self.evidence, dict(self.texts)
        elif manner.evidence == "short" and self.selection.chosen:
            found = extracts(self.selection, budget, estimate)
            evidence = tuple(sentences[0].item for sentences in found)
            texts = {one.n: joined(said) for one, said in zip(evidence, found, strict=True)}
            lines = (rendered_evidence(one, "", texts[one.n]) for one in evidence)
            budget = max(budget, sum(estimate.tokens(line) + 24 for line in lines))
        else:
            evidence = self._by_rank()
            texts = (
                {one.n: without_instructions(one.hit.passage.chunk.text) for one in evidence}
                if compact
                else {}
            )
        question = self.question
        request = PromptRequest(
            question.mode,
            question.library,
            self.asked,
            evidence,
            texts,
            compact,
            self.history,
            wishes=question.wishes,
        )
        return request, budget


def quote_of(
    grounder: Grounder,
    query: str,
    selection: Selection,
    evidence: Sequence[Evidence],
    *,
    leads: bool,
) -> Quote | None:
    """Return the quote of what was selected; None if nothing is on topic."""
    if not selection.chosen:
        return None
    grounded = grounder.ground(quoted_text(selection.chosen), evidence, by="engine")
    text, sentences = grounded.text, grounded.sentences
    if word := settled_by(query, selection.chosen):
        text, sentences = behind(f"{word}. ", text, sentences)
    return Quote(text, sentences, leads)


def write(
    answer_writer: AnswerWriter, task: GenerationRequest, model: Generator, calls: ModelCalls
) -> Steps[ReadingEvent | TokenEvent, None, ModelText]:
    """Yield what a model writes, provisionally, and return all that was let through.

    A prompt that proves too long for the model is made shorter once. Where a question is strict
    nothing is shown before it is checked.

    Raises:
        InvalidInput: Not even a shorter prompt fits the model's window.
        ProviderError: The host failed.
        Cancelled: The question was cancelled.
    """
    window = model.context_tokens or DEFAULT_WINDOW_TOKENS
    estimate = answer_writer.tokens.estimate(model.name)
    shares = (1.0, _SECOND_TRY)
    for share in shares:
        request, evidence_tokens = task.prompt(share, estimate)
        request = answer_writer.with_settings(request, task.question)
        calls.handed |= {item.n: item for item in request.evidence}
        composed = compose_prompt(
            answer_writer.prompts,
            request,
            window_tokens=int(window * share) - estimate.tokens(task.begun),
            max_answer_tokens=answer_writer.options.max_tokens,
            estimate=estimate,
            evidence_tokens=evidence_tokens,
        )
        stream = _Stream(composed, task, answer_writer.tokens, calls)
        try:
            for event in stream.events(model):
                if not (task.question.strict and isinstance(event, TokenEvent)):
                    yield event
        except InvalidInput:
            if stream.guard.text or share == shares[-1]:
                raise
        else:
            break
    cut = cut_notice(composed.plan, was_cut=stream.was_cut)
    ended = _ANSWER_CUT if stream.is_unfinished and not request.compact else None
    notices = tuple(one for one in (cut, ended) if one is not None)
    guard = stream.guard
    return ModelText(guard.repeated or guard.text, guard.stopped, notices)


class _Stream:
    """One call of a model, its words read by both guards."""

    def __init__(
        self,
        composed: ComposedPrompt,
        task: GenerationRequest,
        tokens: TokenCalibrator,
        calls: ModelCalls,
    ) -> None:
        self._composed, self._task, self._tokens, self._calls = composed, task, tokens, calls
        quoted = [REFUSAL, task.asked, *(item.hit.passage.chunk.text for item in task.evidence)]
        self.guard = RunawayGuard(composed.instructions, quoted, task.above)
        self.was_cut = False
        self.is_unfinished = False
        """The model reached the length limit of its answer."""

    def events(self, model: Generator) -> Steps[ReadingEvent | TokenEvent, None, None]:
        """Yield how long reading takes, then what may be shown of the model's words."""
        task, plan = self._task, self._composed.plan
        prompt = self._composed.prompt
        if task.begun:
            on = (Message("assistant", task.begun.strip()), Message("user", _GO_ON))
            prompt = replace(prompt, messages=(*prompt.messages, *on))
        prompt = replace(prompt, model=task.question.model)
        marks = StreamGuard([item.n for item in task.evidence])
        seen: int | None = None
        self._trace(None)
        speed = task.manner.reads_tokens_s
        reading = ReadingEvent(
            model.name, plan.planned_tokens, plan.planned_tokens / speed if speed else None
        )
        yield reading
        waits_for = self._calls.watch()
        if shown := marks.feed(self.guard.feed(task.begun)):
            yield TokenEvent(shown)
        with closing(self._calls.paced(model, prompt)) as tokens:
            for token in tokens:
                if token is None:
                    late = replace(reading, waits_for=waits_for())
                    if late != reading:
                        yield (reading := late)
                    continue
                if token.usage is not None:
                    seen = token.usage.prompt_tokens
                self.is_unfinished = token.finish == "length"
                if token.text and (shown := marks.feed(self.guard.feed(token.text))):
                    yield TokenEvent(shown)
                if self.guard.stopped:
                    break
        if shown := marks.feed(self.guard.close()) + marks.close():
            yield TokenEvent(shown)
        self._trace(seen)
        texts = [message.content for message in prompt.messages]
        self.was_cut = self._tokens.observe(model.name, texts, seen)

    def _trace(self, seen: int | None) -> None:
        plan, manner = self._composed.plan, self._task.manner
        self._calls.trace.context = ContextTrace(
            plan.budget_tokens,
            plan.planned_tokens,
            seen,
            plan.used,
            plan.trimmed,
            plan.dropped,
            manner.prompts,
            manner.evidence,
            manner.why,
        )


# Decide the outcome of a model's words: kept, below the quote, or replaced.

_SAME = 0.7
"""Share of words from which a model's sentence repeats a quoted one (Jaccard similarity)."""
_REFUSES = re.compile(
    r"(?:don't|do not|doesn't|does not|didn't|did not|isn't|is not|are not|aren't|not|no|cannot"
    r"|can't|unable to)\b.{0,40}?"
    r"\b(?:enough information|information|specif\w+|mention\w*|provid\w+|stat(?:e|ed)|giv(?:e|en)"
    r"|contain\w*|answer\w*"
    r"|determin\w+|availab\w+|know)\b.{0,60}?\b(?:facts?|text|passages?|documents?|context"
    r"|information|question|above|provided|given)\b",
    re.IGNORECASE,
)
_REASONS: dict[Runaway | Literal["failed", "refused", "unsupported"], str] = {
    "loop": "the model repeated itself",
    "leak": "the model recited its instructions",
    "repeat": "the model repeated the quote",
    "refused": "the model refused though the documents answer",
    "unsupported": "no passage says what the model wrote",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer's text, its checked sentences, and the fate of the model's words."""

    text: str
    sentences: tuple[Sentence, ...]
    model_text: str | None = None
    notice: Notice | None = None
    quoted: bool = False
    """The quote is the whole answer."""
    below: bool = False
    """The model's words stand below the quote."""


def choose_outcome(
    quote: Quote | None,
    grounded: Grounded,
    stopped: Runaway | None,
    *,
    confident: bool,
    strict: bool = False,
) -> Outcome:
    """Return what the reader gets.

    Args:
        quote: What the documents say word for word; None where nothing could be quoted.
        grounded: The model's words, checked.
        stopped: Why the model's stream was ended early, if it was.
        confident: The quote answers the question with good probability.
        strict: Sentences that are not supported are withheld, with everything between them.

    Returns:
        The model's answer, the quote with the model's words below it, the quote alone, or the
        refusal.
    """
    if stopped == "repeat" and quote is not None:
        return Outcome(quote.text, quote.sentences, grounded.text, quoted=True)
    withheld = None
    if strict:
        grounded, withheld = _supported_alone(grounded)
    own = _holding(grounded.sentences)
    words = " ".join(sentence.text for sentence in own)
    refused = is_refusal(grounded.text)
    if quote is None:
        return (
            Outcome(grounded.text, grounded.sentences, words, withheld)
            if own and not refused and not stopped
            else replace(_refusal(words), notice=withheld)
        )
    if refused or (not own and reads_as_refusal(grounded.text)):
        return (
            quoted_instead(quote, _REASONS["refused"], "")
            if confident or quote.leads
            else _refusal("")
        )
    if stopped or not own:
        reason = withheld.message if withheld else _REASONS["unsupported"]
        return quoted_instead(quote, _REASONS[stopped] if stopped else reason, words)
    if quote.leads:
        return replace(_below(quote, own, words), notice=withheld)
    return Outcome(grounded.text, grounded.sentences, words, withheld)


def quoted_instead(quote: Quote, reason: str, model_text: str | None) -> Outcome:
    """Return the quote as the answer, with the reason."""
    notice = Notice("quoted_instead", f"{reason}; the answer quotes your documents instead")
    return Outcome(quote.text, quote.sentences, model_text, notice, quoted=True)


def is_refusal(text: str) -> bool:
    """Return whether an answer is the refusal, quoted or first without a citation."""
    plain = text.replace("\u2019", "'").strip(" \n\"'*_>")
    return plain.startswith(REFUSAL.rstrip(".")) and ("[" not in plain)


def reads_as_refusal(text: str) -> bool:
    """Return whether a model says in its own words that it was not told the answer."""
    return bool(_REFUSES.search(text.replace("\u2019", "'")))


def supported_share(outcome: Outcome) -> float:
    """Return the supported share of an answer's claims, in [0, 1]; 1 if it claims nothing.

    Retrieval is calibrated on whether passages answer a question; what a model adds that they do
    not say lowers that. Quotes are always supported, so the calibration stands as it is for them,
    and what stands below a quote neither adds to it nor takes from it where it is unsure.
    """
    claims = [
        sentence.verdict
        for sentence in outcome.sentences
        if sentence.verdict != "no_claim" and not (outcome.below and sentence.verdict == "unsure")
    ]
    return claims.count("supported") / len(claims) if claims else 1.0


def _refusal(model_text: str) -> Outcome:
    return Outcome(REFUSAL, (), model_text)


def _holding(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    return tuple(
        one for one in sentences if one.verdict in ("supported", "unsure") and one.citations
    )


def _supported_alone(grounded: Grounded) -> tuple[Grounded, Notice | None]:
    """Return an answer's supported sentences, nothing else of it, and how many are withheld."""
    if is_refusal(grounded.text):
        return grounded, None
    kept: list[Sentence] = []
    text, at = "", 0
    for one in grounded.sentences:
        gap = "".join(filter(str.isspace, grounded.text[at : one.answer_start])) or " "
        at = one.answer_end
        if one.verdict == "supported":
            text += gap if text else ""
            kept.append(replace(one, answer_start=len(text), answer_end=len(text) + len(one.text)))
            text += one.text
    gone = len(grounded.sentences) - len(kept)
    said = "a sentence" if gone == 1 else f"{gone} sentences"
    notice = Notice("withheld", f"{said} of the model withheld: no passage is sure to say so")
    return Grounded(text, tuple(kept), grounded.dropped), notice if gone else None


def _below(quote: Quote, own: Sequence[Sentence], words: str) -> Outcome:
    """Return the quote, with the model's sentences below that say more."""
    said = [frozenset(tokenise(without_marks(sentence.text))) for sentence in quote.sentences]
    fresh = [one for one in own if not _repeats(one, said)]
    text, sentences = quote.text, list(quote.sentences)
    for at, one in enumerate(fresh):
        text += "\n\n" if at == 0 else " "
        moved = len(text) - one.answer_start
        sentences.append(
            replace(one, answer_start=one.answer_start + moved, answer_end=one.answer_end + moved)
        )
        text += one.text
    return Outcome(text, tuple(sentences), words, below=True)


def _repeats(one: Sentence, said: Sequence[frozenset[str]]) -> bool:
    tokens = frozenset(tokenise(without_marks(one.text)))
    return any(
        len(tokens & other) >= _SAME * max(1, len(tokens | other)) or tokens <= other
        for other in said
    )
