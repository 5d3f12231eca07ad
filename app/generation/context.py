"""Compose a prompt that fits a model's window: passages, history, answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.core.types import Evidence, Message, Mode, Prompt, Reasoning, Scope
from app.generation.context_plan import ContextPlan, plan_context
from app.generation.fencing import new_fence
from app.generation.prompt_sets import CompactPrompt
from app.generation.prompts import PromptLibrary
from app.generation.tokens import MESSAGE_TOKENS, TokenEstimate, text_size

_UNTITLED: frozenset[Mode] = frozenset({"general", "summary"})
"""Modes whose plain lines have no title in front: small models recite it."""


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """A prompt that fits its window, with the evidence it holds."""

    prompt: Prompt
    plan: ContextPlan
    prompt_size: int
    """Size of all messages, see `tokens.text_size`."""
    instructions: tuple[str, ...]
    """The prompt's own words, without passages, question and history."""
    history_dropped: int = 0
    """Turns left out, oldest first, because they did not fit."""


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """The inputs of a prompt."""

    mode: Mode
    library: Scope
    question: str
    """The user's own words."""
    evidence: tuple[Evidence, ...]
    """Numbered passages, best first."""
    texts: Mapping[int, str] = field(default_factory=dict)
    """What is handed over of a passage, by evidence number, where that is not the whole one."""
    compact: bool = False
    """The compact prompt instead of the whole contract."""
    history: tuple[Message, ...] = ()
    """Earlier turns, oldest first; the compact prompt does without."""
    reasoning: Reasoning = "grounded"
    wishes: str = ""
    """What the client's own system message asks for."""
    temperature: float | None = None
    """Overrides the temperature of the packaged prompt."""
    max_tokens: int | None = None
    """Overrides the longest answer of the packaged compact prompt."""


def compose_prompt(
    prompts: PromptLibrary,
    request: PromptRequest,
    *,
    window_tokens: int,
    max_answer_tokens: int,
    estimate: TokenEstimate,
    evidence_tokens: int | None = None,
) -> ComposedPrompt:
    """Return a prompt whose passages, history and answer fit the model's window.

    History gives way before evidence does: its oldest turns go until it takes at most a quarter of
    the budget.

    Args:
        prompts: Where the wording comes from.
        request: The question and what may be handed over.
        window_tokens: What the model reads, answer included.
        max_answer_tokens: Room kept for the answer.
        estimate: How many tokens a text may take.
        evidence_tokens: Evidence to hand over at most; None: as much as the window takes.

    Raises:
        InvalidInput: The mode has no prompt.
    """
    fence = new_fence(request.question, *(item.hit.passage.chunk.text for item in request.evidence))
    budget = max(0, window_tokens - max_answer_tokens)
    kept = () if request.compact else _fitting_history(request.history, estimate, budget // 4)
    bare = _built(prompts, request, "", kept, fence, request.question)
    fixed = _tokens(bare, estimate) + (0 if request.compact else estimate.tokens("\n" * 8))
    allowed = budget if evidence_tokens is None else min(budget, fixed + evidence_tokens)
    plan = plan_context(
        request.evidence,
        fixed_tokens=fixed,
        budget_tokens=allowed,
        estimate=estimate,
        fence="" if request.compact else fence,
        texts=request.texts,
        titled=request.mode not in _UNTITLED,
    )
    messages = _built(prompts, request, plan.text, kept, fence, request.question)
    chosen = set(plan.used)
    told = (
        prompts.compact[request.mode]  # type: ignore[index]  # `_built` has refused other modes
        if request.compact
        else prompts.answer(request.mode, request.library)
    )
    overlaid = prompts.is_overlaid("compact" if request.compact else request.mode)
    temperature, length = told.temperature, max_answer_tokens
    if request.temperature is not None and (temperature is None or not overlaid):
        temperature = request.temperature
    if isinstance(told, CompactPrompt) and (request.max_tokens is None or overlaid):
        length = min(length, told.max_tokens)
    prompt = Prompt(
        messages,
        request.question,
        tuple(item for item in request.evidence if item.n in chosen),
        temperature,
        length,
    )
    plan = replace(plan, planned_tokens=_tokens(messages, estimate), by_window=allowed == budget)
    told_alone = _built(prompts, replace(request, wishes=""), "", (), fence, "")
    instructions = tuple(message.content for message in told_alone if message.role != "assistant")
    size = sum(text_size(message.content) for message in messages)
    return ComposedPrompt(prompt, plan, size, instructions, len(request.history) - len(kept))


def _built(
    prompts: PromptLibrary,
    request: PromptRequest,
    context: str,
    history: Sequence[Message],
    fence: str,
    question: str,
) -> tuple[Message, ...]:
    if request.compact:
        messages = prompts.small(request.mode, question, context, request.reasoning)
    else:
        messages = prompts.build(
            request.mode,
            request.library,
            question,
            context or "\n",
            history,
            fence=fence,
            reasoning=request.reasoning,
        )
    return _wished(messages, request.wishes)


def _wished(messages: tuple[Message, ...], wishes: str) -> tuple[Message, ...]:
    """Return the prompt with the client's wishes behind our own instructions."""
    if not wishes:
        return messages
    ours = messages[0].content if messages[0].role == "system" else ""
    rest = messages[1:] if ours else messages
    return (Message("system", f"{ours}\n\n{wishes}".strip()), *rest)


def _fitting_history(
    history: Sequence[Message], estimate: TokenEstimate, budget_tokens: int
) -> tuple[Message, ...]:
    kept: list[Message] = []
    left = budget_tokens
    for message in reversed(history):
        left -= estimate.tokens(message.content) + MESSAGE_TOKENS
        if left < 0:
            break
        kept.append(message)
    return tuple(reversed(kept))


def _tokens(messages: Sequence[Message], estimate: TokenEstimate) -> int:
    return sum(estimate.tokens(message.content) + MESSAGE_TOKENS for message in messages)
