"""Choose and order the passages of a prompt.

Passages are taken by rank until the window is full; the first that does not fit is trimmed at a
sentence end, the rest is dropped. They are laid out with the best at both ends, because models read
the middle of a long context worst, but keep their numbers by rank.

References:
    Liu 2023, Lost in the Middle, arXiv 2307.03172 (order).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from app.core.sentences import sentence_spans
from app.core.types import ContextTrace, Evidence, Notice
from app.generation.fencing import rendered_evidence
from app.generation.tokens import TokenEstimate

_T = TypeVar("_T")
_MIN_TRIMMED_CHARS = 200
"""A passage cut to less than this says too little to be worth its header."""


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """Passages that fit, and the outcome of each; evidence numbers in rank order."""

    text: str
    fence: str
    used: tuple[int, ...]
    trimmed: tuple[int, ...]
    dropped: tuple[int, ...]
    planned_tokens: int
    """Tokens of the whole prompt, over-estimated by the safety margin."""
    budget_tokens: int
    """Tokens that a prompt may have: the window less the answer, or what the host reads in time."""
    by_window: bool = True
    """The window is the bound, not the time that reading takes."""


def plan_context(
    evidence: Sequence[Evidence],
    *,
    fixed_tokens: int,
    budget_tokens: int,
    estimate: TokenEstimate,
    fence: str,
    texts: Mapping[int, str] = MappingProxyType({}),
    titled: bool = False,
) -> ContextPlan:
    """Return the passages that fit next to everything else.

    Args:
        evidence: Numbered passages, best first.
        fixed_tokens: What the prompt takes without passages.
        budget_tokens: What it may take with them.
        estimate: How many tokens a text may take.
        fence: Delimiter of this request, from `new_fence`; empty: plain lines.
        texts: What is handed over of a passage, by evidence number, where that is not the whole
            one.
        titled: Begin a plain line with the document's title.

    Returns:
        A plan whose `used` are in rank order; at least the best passage is used, trimmed if need
        be, when any evidence fits at all.
    """
    left = budget_tokens - fixed_tokens
    used: list[tuple[int, str]] = []
    trimmed: list[int] = []
    dropped: list[int] = []
    for item in evidence:
        block = rendered_evidence(item, fence, texts.get(item.n), titled=titled)
        cost = estimate.tokens(block)
        if (
            trimmed or dropped
        ):  # one gap ends it: a worse passage must not take the place of a better one
            dropped.append(item.n)
        elif cost <= left:
            used.append((item.n, block))
            left -= cost
        else:
            shorter = _trimmed(item, fence, left, estimate, texts.get(item.n))
            if shorter is None:
                dropped.append(item.n)
            else:
                used.append((item.n, shorter))
                trimmed.append(item.n)
                left -= estimate.tokens(shorter)
    laid_out = best_at_both_ends(used) if fence else used
    text = ("\n\n" if fence else "\n").join(block for _, block in laid_out)
    return ContextPlan(
        text,
        fence,
        tuple(n for n, _ in used),
        tuple(trimmed),
        tuple(dropped),
        max(0, budget_tokens - left),
        budget_tokens,
    )


def best_at_both_ends(ranked: Sequence[_T]) -> list[_T]:
    """Return ranks 1, 3, 5, ... from the front and 2, 4, 6, ... from the back."""
    return [*ranked[::2], *reversed(ranked[1::2])]


def context_trace(
    plan: ContextPlan,
    seen_tokens: int | None,
    *,
    prompts: str = "full",
    evidence: str = "full",
    why: str = "",
) -> ContextTrace:
    """Return the plan, the tokens the host says it read, and the reason.

    The reason says why so much was sent.
    """
    return ContextTrace(
        plan.budget_tokens,
        plan.planned_tokens,
        seen_tokens,
        plan.used,
        plan.trimmed,
        plan.dropped,
        prompts,
        evidence,
        why,
    )


def cut_notice(plan: ContextPlan, *, was_cut: bool) -> Notice | None:
    """Return the notice `context_cut` if text was dropped or cut; else None.

    Dropped by the plan, or cut by the host.
    """
    if was_cut:
        return Notice(
            "context_cut",
            "The model host cut the prompt: it read fewer tokens than it was sent. Set LLM_NUM_CTX"
            " to what it allows.",
        )
    if not plan.by_window or not (plan.trimmed or plan.dropped):
        return None
    what = [f"{len(plan.trimmed)} passage shortened"] if plan.trimmed else []
    what += [f"{len(plan.dropped)} left out"] if plan.dropped else []
    return Notice(
        "context_cut",
        f"Not all evidence fits the model's window: {', '.join(what)}. Raise LLM_NUM_CTX to use it"
        " all.",
    )


def _trimmed(
    item: Evidence, fence: str, left: int, estimate: TokenEstimate, text: str | None
) -> str | None:
    """Return the passage cut at the last sentence that fits; None if too short."""
    text = item.hit.passage.chunk.text if text is None else text
    for _, end in reversed(sentence_spans(text)):
        if end < min(_MIN_TRIMMED_CHARS, len(text)):
            return None
        block = rendered_evidence(item, fence, text[:end])
        if end < len(text.rstrip()) and estimate.tokens(block) <= left:
            return block
    return None
