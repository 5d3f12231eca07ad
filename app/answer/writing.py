"""Evidence to text: the model of the question, or quotes where there is none or it fails before its first word."""

from __future__ import annotations

from collections.abc import Generator as Steps
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.answer.models import ModelCalls
from app.core.errors import InvalidInput, ModelNotInstalled, ProviderError
from app.core.ports import Generator
from app.core.types import Evidence, Message, Notice, Prompt, Question, Reasoning, TokenEvent
from app.generation.citations import StreamGuard
from app.generation.context import ComposedPrompt, ContextPlan, compose_prompt, context_trace, cut_notice
from app.generation.options import GenerationOptions
from app.generation.prompts import PromptLibrary
from app.generation.tokens import TokenCalibrator

DEFAULT_WINDOW_TOKENS = 4096
"""Of a model host that does not say; the smallest default of the hosts in use (facts/ollama.md, section 2)."""
_SECOND_TRY = 0.6
"""Share of the window planned for once a host said that a prompt is too long: its text takes more tokens than any before."""


@dataclass(frozen=True, slots=True)
class Draftsman:
    """What writing takes besides the evidence; shared by all questions."""

    extractive: Generator
    prompts: PromptLibrary
    tokens: TokenCalibrator
    options: GenerationOptions

    def reasoning(self, question: Question) -> Reasoning:
        """Return how a model is told to work: as the question says, else its mode's prompt, else the configuration."""
        of_mode = self.prompts.answer(question.mode, question.library).reasoning
        return question.reasoning or of_mode or self.options.reasoning


@dataclass(frozen=True, slots=True)
class Written:
    """Text as it was generated, before the guard, and who wrote it."""

    text: str
    generator: str
    notices: tuple[Notice, ...] = ()


def write(
    draftsman: Draftsman,
    question: Question,
    query: str,
    evidence: Sequence[Evidence],
    history: Sequence[Message],
    model: Generator | None,
    calls: ModelCalls,
) -> Steps[TokenEvent, None, Written]:
    """Yield provisional text and return all of it.

    Args:
        draftsman: What writes.
        question: As it was asked; a model sees the user's own words.
        query: What was searched for; the quoting answerer goes by it.
        evidence: Numbered passages, best first; not empty.
        history: Earlier turns.
        model: Who answers; None quotes.
        calls: Counts the call and knows the cancel token.

    Raises:
        InvalidInput: Not even a shorter prompt fits the model's window.
        ModelNotInstalled: The host answers but lacks the model.
        ProviderError: The host failed after its first word.
        Cancelled: The question was cancelled.
    """
    if model is None:
        return (yield from _quote(draftsman, query, evidence, calls))
    pieces: list[str] = []
    try:
        plan, was_cut = yield from _ask(draftsman, question, evidence, history, model, calls, pieces)
    except ModelNotInstalled:
        raise
    except ProviderError as error:
        if pieces:  # the reader has seen the beginning: half an answer must not turn into another one
            raise
        reason = f"{model.name} is not available ({error.message}); the answer quotes the passages instead"
        written = yield from _quote(draftsman, query, evidence, calls)
        return replace(written, notices=(Notice("generator_unavailable", reason),))
    cut = cut_notice(plan, was_cut=was_cut)
    return Written("".join(pieces), model.name, (cut,) if cut else ())


def _ask(
    draftsman: Draftsman,
    question: Question,
    evidence: Sequence[Evidence],
    history: Sequence[Message],
    model: Generator,
    calls: ModelCalls,
    pieces: list[str],
) -> Steps[TokenEvent, None, tuple[ContextPlan, bool]]:
    """Ask the model; a prompt that proves too long for it is made shorter once. Return the plan and whether the host cut it."""
    window = model.context_tokens or DEFAULT_WINDOW_TOKENS
    shares = (1.0, _SECOND_TRY)
    for share in shares:
        composed = compose_prompt(
            draftsman.prompts,
            mode=question.mode,
            library=question.library,
            question=question.text,
            evidence=evidence,
            history=history,
            window_tokens=int(window * share),
            max_answer_tokens=draftsman.options.max_tokens,
            estimate=draftsman.tokens.estimate(model.name),
            reasoning=draftsman.reasoning(question),
        )
        try:
            was_cut = yield from _stream(composed, question, model, draftsman.tokens, calls, pieces)
        except InvalidInput:
            if pieces or share == shares[-1]:
                raise
        else:
            break
    return composed.plan, was_cut


def _stream(
    composed: ComposedPrompt, question: Question, model: Generator, tokens: TokenCalibrator, calls: ModelCalls, pieces: list[str]
) -> Steps[TokenEvent, None, bool]:
    """Yield what may be shown of a model's tokens, collect all of them in `pieces`, and return whether the host cut the prompt."""
    prompt = replace(composed.prompt, model=question.model)
    guard = StreamGuard([item.n for item in prompt.evidence])
    seen: int | None = None
    calls.trace.context = context_trace(composed.plan, None)
    for token in calls.stream(model, prompt):
        if token.usage is not None:
            seen = token.usage.prompt_tokens
        if token.text:
            pieces.append(token.text)
            if shown := guard.feed(token.text):
                yield TokenEvent(shown)
    if shown := guard.close():
        yield TokenEvent(shown)
    calls.trace.context = context_trace(composed.plan, seen)
    return tokens.observe(model.name, composed.prompt_size, len(prompt.messages), seen)


def _quote(draftsman: Draftsman, query: str, evidence: Sequence[Evidence], calls: ModelCalls) -> Steps[TokenEvent, None, Written]:
    """Yield the best supporting sentences; evidence that did not pass the cutoff is not worth quoting."""
    calls.trace.context = None
    pieces: list[str] = []
    usable = tuple(item for item in evidence if not item.hit.fallback)
    for token in draftsman.extractive.stream(Prompt((), query, usable), calls.cancel):
        if token.text:
            pieces.append(token.text)
            yield TokenEvent(token.text)
    return Written("".join(pieces), draftsman.extractive.name)
