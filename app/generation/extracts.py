"""Choose the evidence sentences that a model reads, passage by passage.

The quoting answerer has ranked the sentences already. Its own choice comes first, then what stands
next to those sentences, then the best of the rest, until the budget is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.core.sentences import sentence_spans
from app.core.types import Evidence
from app.generation.candidates import Candidate
from app.generation.extractive import Selection
from app.generation.injection import findings_at
from app.generation.tokens import TokenEstimate

_GAP = " \u2026 "
"""Between sentences that do not follow each other in their passage."""
_HEAD_TOKENS = 12
"""What a passage's number and title take."""


@dataclass(frozen=True, slots=True)
class Extract:
    """A passage's sentences in reading order; `spans` are places in the chunk."""

    item: Evidence
    text: str
    spans: tuple[tuple[int, int], ...]


def extracts(
    selection: Selection, budget_tokens: int, estimate: TokenEstimate, *, only_chosen: bool = False
) -> tuple[Extract, ...]:
    """Return what to hand over, by rank of the passages.

    Args:
        selection: Sentences as the quoting answerer chose and ranked them.
        budget_tokens: Most that may be handed over; the chosen sentences are handed over in any
            case.
        estimate: How many tokens a text may take.
        only_chosen: Leave out neighbours and the rest: what the smallest models do best with.

    Returns:
        One extract per passage that has a sentence in it, that of the best sentence first.
    """
    taken = {one.key: one for one in selection.chosen}
    left = budget_tokens - sum(_cost(one, estimate) for one in selection.chosen)
    left -= _HEAD_TOKENS * len({one.item.n for one in selection.chosen})
    for one in () if only_chosen else _further(selection):
        cost = _cost(one, estimate)
        head = 0 if any(one.item.n == other.item.n for other in taken.values()) else _HEAD_TOKENS
        if one.key not in taken and cost + head <= left:
            taken[one.key] = one
            left -= cost + head
    lead = [one.item.n for one in selection.chosen]
    order = {n: lead.index(n) for n in lead}
    return _by_passage(
        sorted(
            taken.values(),
            key=lambda one: (order.get(one.item.n, len(order) + one.item.n), one.ordinal),
        )
    )


def _further(selection: Selection) -> list[Candidate]:
    """Return the neighbours of the chosen sentences, then the best of the rest."""
    near = {(one.item.n, one.ordinal + step) for one in selection.chosen for step in (-1, 1)}
    return [
        *(one for one in selection.ranked if one.key in near),
        *(one for one in selection.ranked if one.key not in near),
    ]


def _by_passage(sentences: Sequence[Candidate]) -> tuple[Extract, ...]:
    found: dict[int, list[Candidate]] = {}
    for one in sentences:
        found.setdefault(one.item.n, []).append(one)
    return tuple(
        Extract(group[0].item, _joined(group), tuple((one.start, one.end) for one in group))
        for group in found.values()
    )


def _joined(group: Sequence[Candidate]) -> str:
    text = group[0].text
    for before, one in pairwise(group):
        text += (" " if one.ordinal == before.ordinal + 1 else _GAP) + one.text
    return text


def _cost(one: Candidate, estimate: TokenEstimate) -> int:
    return estimate.tokens(one.text) + 1


def without_instructions(text: str) -> str:
    """Return a passage without the sentences that read like instructions to a model."""
    spans = sentence_spans(text)
    sentences = [text[start:end] for start, end in spans]
    return " ".join(
        sentence for at, sentence in enumerate(sentences) if not findings_at(sentences, at)
    )
