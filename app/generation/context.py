"""The context window: what fits, in which order, and whether the model host cut it after all.

Passages are taken by rank until the window is full; the first that does not fit is trimmed at a sentence end, the rest is dropped.
They are laid out with the best at both ends, because models read the middle of a long context worst, but keep their numbers by
rank.

References:
    Liu 2023, Lost in the Middle, arXiv 2307.03172 (order). Hines 2024, Spotlighting, arXiv 2403.14720 (random delimiters).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from app.core.sentences import sentence_spans
from app.core.types import ContextTrace, Evidence, Message, Mode, Notice, Prompt, Reasoning, Scope
from app.generation.prompts import PromptLibrary
from app.generation.tokens import MESSAGE_TOKENS, TokenEstimate, text_size

_T = TypeVar("_T")
_FENCE_BYTES = 6
_MIN_TRIMMED_CHARS = 200
"""A passage cut to less than this says too little to be worth its header."""
_NATIVE_MARK = re.compile(r"\[(\d{1,4}(?:\s*[,;\u2013-]\s*\d{1,4})*)\]")


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """Fenced passages that fit, and what became of each one; numbers are evidence numbers, in rank order."""

    text: str
    fence: str
    used: tuple[int, ...]
    trimmed: tuple[int, ...]
    dropped: tuple[int, ...]
    planned_tokens: int
    """Tokens of the whole prompt, over-estimated by the safety margin."""
    budget_tokens: int
    """Tokens that a prompt may have: the window less the answer."""


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """A prompt that fits its window, with the evidence it holds."""

    prompt: Prompt
    plan: ContextPlan
    prompt_size: int
    """Size of all messages, see `tokens.text_size`."""
    history_dropped: int = 0
    """Turns left out, oldest first, because they did not fit."""


def compose_prompt(
    prompts: PromptLibrary,
    *,
    mode: Mode,
    library: Scope,
    question: str,
    evidence: Sequence[Evidence],
    history: Sequence[Message] = (),
    window_tokens: int,
    max_answer_tokens: int,
    estimate: TokenEstimate,
    reasoning: Reasoning = "grounded",
    temperature: float | None = None,
) -> ComposedPrompt:
    """Return an answer prompt whose passages, history and answer fit the model's window together.

    History gives way before evidence does: its oldest turns go until it takes at most a quarter of the budget.

    Args:
        prompts: Where the wording comes from.
        mode: What the answer is for; not `datasets`.
        library: The shelf asked.
        question: The user's own words.
        evidence: Numbered passages, best first.
        history: Earlier turns, oldest first.
        window_tokens: What the model reads, answer included.
        max_answer_tokens: Room kept for the answer.
        estimate: How many tokens a text may take.
        reasoning: How the model is told to work.
        temperature: Overrides the temperature of the mode.

    Raises:
        InvalidInput: The mode has no prompt.
    """
    fence = new_fence(question, *(item.hit.passage.chunk.text for item in evidence))
    budget = max(0, window_tokens - max_answer_tokens)
    kept = _fitting_history(history, estimate, budget // 4)
    bare = prompts.build(mode, library, question, "\n", kept, fence=fence, reasoning=reasoning)
    plan = plan_context(evidence, fixed_tokens=_tokens(bare, estimate), budget_tokens=budget, estimate=estimate, fence=fence)
    messages = prompts.build(mode, library, question, plan.text, kept, fence=fence, reasoning=reasoning)
    chosen = set(plan.used)
    prompt = Prompt(
        messages,
        question,
        tuple(item for item in evidence if item.n in chosen),
        prompts.answer(mode, library).temperature if temperature is None else temperature,
        max_answer_tokens,
    )
    plan = replace(plan, planned_tokens=_tokens(messages, estimate))
    return ComposedPrompt(prompt, plan, sum(text_size(message.content) for message in messages), len(history) - len(kept))


def plan_context(
    evidence: Sequence[Evidence], *, fixed_tokens: int, budget_tokens: int, estimate: TokenEstimate, fence: str
) -> ContextPlan:
    """Return the passages that fit beside everything else.

    Args:
        evidence: Numbered passages, best first.
        fixed_tokens: What the prompt takes without passages.
        budget_tokens: What it may take with them.
        estimate: How many tokens a text may take.
        fence: Delimiter of this request, from `new_fence`.

    Returns:
        A plan whose `used` are in rank order; at least the best passage is used, trimmed if need be, when any evidence fits at all.
    """
    left = budget_tokens - fixed_tokens
    used: list[tuple[int, str]] = []
    trimmed: list[int] = []
    dropped: list[int] = []
    for item in evidence:
        block = render_passage(item, fence)
        cost = estimate.tokens(block)
        if trimmed or dropped:  # one gap ends it: a worse passage must not take the place of a better one
            dropped.append(item.n)
        elif cost <= left:
            used.append((item.n, block))
            left -= cost
        else:
            shorter = _trimmed(item, fence, left, estimate)
            if shorter is None:
                dropped.append(item.n)
            else:
                used.append((item.n, shorter))
                trimmed.append(item.n)
                left -= estimate.tokens(shorter)
    text = "\n\n".join(block for _, block in best_at_both_ends(used))
    return ContextPlan(
        text, fence, tuple(n for n, _ in used), tuple(trimmed), tuple(dropped), max(0, budget_tokens - left), budget_tokens
    )


def best_at_both_ends(ranked: Sequence[_T]) -> list[_T]:
    """Return the items with ranks 1, 3, 5, ... from the front and 2, 4, 6, ... from the back."""
    return [*ranked[::2], *reversed(ranked[1::2])]


def new_fence(*texts: str) -> str:
    """Return a random delimiter that stands in none of the texts."""
    while True:
        fence = secrets.token_hex(_FENCE_BYTES)
        if not any(fence in text for text in texts):
            return fence


def render_passage(item: Evidence, fence: str, text: str | None = None) -> str:
    """Return one passage between its marks, with title, section and page; `text` replaces the chunk's own.

    Whatever looks like a mark is disarmed, and the source's own `[12]` becomes `(12)`, so that it is not taken for a citation.
    """
    chunk, document = item.hit.passage.chunk, item.hit.passage.document
    head = f'<passage-{fence} n="{item.n}" library="{chunk.library.value}" title="{_attribute(document.title)}"'
    if chunk.section and chunk.section != "body":
        head += f' section="{_attribute(chunk.section)}"'
    if chunk.page is not None:
        head += f' page="{chunk.page}"'
    body = _disarmed(chunk.text if text is None else text, fence)
    return f"{head}>\n{body}\n</passage-{fence}>"


def context_trace(plan: ContextPlan, seen_tokens: int | None) -> ContextTrace:
    """Return the plan beside what the model host says it read."""
    return ContextTrace(plan.budget_tokens, plan.planned_tokens, seen_tokens, plan.used, plan.trimmed, plan.dropped)


def cut_notice(plan: ContextPlan, *, was_cut: bool) -> Notice | None:
    """Return the notice `context_cut` when passages did not fit or the host read less than it was sent; None otherwise."""
    if was_cut:
        return Notice(
            "context_cut",
            "The model host cut the prompt: it read fewer tokens than it was sent. Set LLM_NUM_CTX to what it allows.",
        )
    if not (plan.trimmed or plan.dropped):
        return None
    what = [f"{len(plan.trimmed)} passage shortened"] if plan.trimmed else []
    what += [f"{len(plan.dropped)} left out"] if plan.dropped else []
    return Notice("context_cut", f"Not all evidence fits the model's window: {', '.join(what)}. Raise LLM_NUM_CTX to use it all.")


def _trimmed(item: Evidence, fence: str, left: int, estimate: TokenEstimate) -> str | None:
    """Return the passage cut after the last sentence that fits; None when too little would remain."""
    text = item.hit.passage.chunk.text
    for _, end in reversed(sentence_spans(text)):
        if end < min(_MIN_TRIMMED_CHARS, len(text)):
            return None
        block = render_passage(item, fence, text[:end])
        if end < len(text.rstrip()) and estimate.tokens(block) <= left:
            return block
    return None


def _fitting_history(history: Sequence[Message], estimate: TokenEstimate, budget_tokens: int) -> tuple[Message, ...]:
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


def _disarmed(text: str, fence: str) -> str:
    text = text.replace(fence, "").replace("<passage", "&lt;passage").replace("</passage", "&lt;/passage")
    return _NATIVE_MARK.sub(r"(\1)", text)


def _attribute(text: str) -> str:
    return re.sub(r"[\s<>\"]+", " ", text).strip()[:200]
