"""Compose a prompt that fits a model's window: passages, history, answer."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TypeVar

from app.core.sentences import sentence_spans
from app.core.types import Evidence, Message, Mode, Notice, Prompt, Reasoning, Scope
from app.generation.language.tokens import MESSAGE_TOKENS, TokenEstimate
from app.generation.prompt.prompts import PromptLibrary
from app.generation.quote.candidates import Candidate
from app.generation.quote.quoting import Selection

# Render a passage for a prompt: between random marks, with nothing in it that looks like one.

_FENCE_BYTES = 6
_NATIVE_MARK = re.compile(r"\[(\d{1,4}(?:\s*[,;\u2013-]\s*\d{1,4})*)\]")


def new_fence(*texts: str) -> str:
    """Return a random delimiter that stands in none of the texts."""
    while True:
        fence = secrets.token_hex(_FENCE_BYTES)
        if not any(fence in text for text in texts):
            return fence


def rendered_evidence(
    item: Evidence, fence: str, text: str | None = None, *, titled: bool = False
) -> str:
    """Return a passage for the prompt: between marks with title, section and page.

    Without a fence it is one plain line, without the title that the document begins with: small
    models recite it. `text` replaces the chunk's own. Anything that looks like
    a mark is disarmed, and the source's own `[12]` becomes `(12)`, so that it is not taken for a
    citation.
    """
    chunk, title = item.hit.passage.chunk, _attribute(item.hit.passage.document.title)
    body = _disarmed(chunk.text if text is None else text, fence)
    if not fence:
        first, _, rest = body.lstrip().partition("\n")
        line = " ".join((rest if rest.strip() and _attribute(first) == title else body).split())
        return f"{title}: {line}" if titled else line
    head = f'<passage-{fence} n="{item.n}" library="{chunk.library.value}" title="{title}"'
    if chunk.section and chunk.section != "body":
        head += f' section="{_attribute(chunk.section)}"'
    if chunk.page is not None:
        head += f' page="{chunk.page}"'
    return f"{head}>\n{body}\n</passage-{fence}>"


def _disarmed(text: str, fence: str) -> str:
    text = (
        (text.replace(fence, "") if fence else text)
        .replace("<passage", "&lt;passage")
        .replace("</passage", "&lt;/passage")
    )
    return _NATIVE_MARK.sub(r"(\1)", text)


def _attribute(text: str) -> str:
    return re.sub(r"[\s<>\"]+", " ", text).strip()[:200]


# Choose and order the passages of a prompt.

_T = TypeVar("_T")
_MIN_TRIMMED_CHARS = 200
"""A passage cut to less than this says too little to be worth its header."""


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """Passages that fit, and the outcome of each; evidence numbers in rank order."""

    text: str
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
        tuple(n for n, _ in used),
        tuple(trimmed),
        tuple(dropped),
        max(0, budget_tokens - left),
        budget_tokens,
    )


def best_at_both_ends(ranked: Sequence[_T]) -> list[_T]:
    """Return ranks 1, 3, 5, ... from the front and 2, 4, 6, ... from the back."""
    return [*ranked[::2], *reversed(ranked[1::2])]


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


_UNTITLED: frozenset[Mode] = frozenset({"general", "summary"})
"""Modes whose plain lines have no title in front: small models recite it."""


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """A prompt that fits its window, with the evidence it holds."""

    prompt: Prompt
    plan: ContextPlan
    instructions: tuple[str, ...]
    """The prompt's own words, without passages, question and history."""


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
    told = prompts.answer(request.mode, request.library, compact=request.compact)
    overlaid = prompts.is_overlaid("compact" if request.compact else request.mode)
    temperature, length = told.temperature, max_answer_tokens
    if request.temperature is not None and (temperature is None or not overlaid):
        temperature = request.temperature
    if told.max_tokens is not None and (request.max_tokens is None or overlaid):
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
    return ComposedPrompt(prompt, plan, instructions)


def _built(
    prompts: PromptLibrary,
    request: PromptRequest,
    context: str,
    history: Sequence[Message],
    fence: str,
    question: str,
) -> tuple[Message, ...]:
    messages = prompts.build(
        request.mode,
        request.library,
        question,
        context,
        history,
        fence=fence,
        reasoning=request.reasoning,
        compact=request.compact,
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


# Choose the evidence sentences that a model reads, passage by passage.

_GAP = " \u2026 "
"""Between sentences that do not follow each other in their passage."""
_HEAD_TOKENS = 12
"""What a passage's number and title take."""


def extracts(
    selection: Selection, budget_tokens: int, estimate: TokenEstimate
) -> list[list[Candidate]]:
    """Return the sentences to hand over, by rank of their passages.

    Args:
        selection: Sentences as the quoting answerer chose and ranked them.
        budget_tokens: Most that may be handed over; the chosen sentences are handed over in any
            case.
        estimate: How many tokens a text may take.

    Returns:
        Sentences in reading order of each passage that has some, that of the best sentence first.
    """
    taken = {one.key: one for one in selection.chosen}
    left = budget_tokens - sum(_cost(one, estimate) for one in selection.chosen)
    left -= _HEAD_TOKENS * len({one.item.n for one in selection.chosen})
    for one in _further(selection):
        cost = _cost(one, estimate)
        head = 0 if any(one.item.n == other.item.n for other in taken.values()) else _HEAD_TOKENS
        if one.key not in taken and cost + head <= left:
            taken[one.key] = one
            left -= cost + head
    lead = [one.item.n for one in selection.chosen]
    order = {n: lead.index(n) for n in lead}
    found: dict[int, list[Candidate]] = {}
    for one in sorted(
        taken.values(),
        key=lambda one: (order.get(one.item.n, len(order) + one.item.n), one.ordinal),
    ):
        found.setdefault(one.item.n, []).append(one)
    return list(found.values())


def _further(selection: Selection) -> list[Candidate]:
    """Return the neighbours of the chosen sentences, then the best of the rest."""
    near = {(one.item.n, one.ordinal + step) for one in selection.chosen for step in (-1, 1)}
    return [
        *(one for one in selection.ranked if one.key in near),
        *(one for one in selection.ranked if one.key not in near),
    ]


def joined(sentences: Sequence[Candidate]) -> str:
    """Return sentences of one passage, in reading order, as a text that shows its gaps."""
    text = sentences[0].text
    for before, one in pairwise(sentences):
        text += (" " if one.ordinal == before.ordinal + 1 else _GAP) + one.text
    return text


def _cost(one: Candidate, estimate: TokenEstimate) -> int:
    return estimate.tokens(one.text) + 1
