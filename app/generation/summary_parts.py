"""Cut documents into parts that a model reads one after another, whole where they fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from app.core.types import Evidence
from app.generation.document_parts import document_parts, text_below_heading
from app.generation.extracts import without_instructions
from app.generation.key_sentences import key_sentences, telling_texts
from app.generation.tokens import TokenEstimate

MOST_PARTS = 24
"""Calls of a model for one summary. A longer document gives the most telling sentences of each
part."""
_FRAME_TOKENS = 40
"""What a passage's number, title and section take in a prompt."""


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Consecutive passages, and what is handed over of each, by evidence number."""

    evidence: tuple[Evidence, ...]
    texts: Mapping[int, str]


def summary_parts(
    whole: Sequence[Evidence], budget_tokens: int, estimate: TokenEstimate
) -> tuple[SummaryPart, ...]:
    """Return the parts of documents, each within a budget, in reading order.

    Args:
        whole: All passages of the documents, in reading order.
        budget_tokens: Most that one part may take.
        estimate: How many tokens a text may take.

    Returns:
        At most 24 parts and one more per document. A part ends with its document, and with its
        section where it is half full. Lists of references and the like, headings, and sentences
        that read like instructions are left out.
    """
    costs: list[list[tuple[Evidence, int]]] = []
    for _, group in groupby(whole, key=lambda item: item.hit.passage.document.doc_id):
        kept = [item for part in document_parts(tuple(group)) for item in part.evidence]
        costs.append(
            [(one, estimate.tokens(one.hit.passage.chunk.text) + _FRAME_TOKENS) for one in kept]
        )
    total = sum(cost for found in costs for _, cost in found)
    size = max(budget_tokens, math.ceil(total / MOST_PARTS))
    packed = [evidence for found in costs for evidence in _packed(found, size)]
    texts = [
        _whole_texts(one)
        if size <= budget_tokens
        else telling_texts(one, _characters(one, budget_tokens, size))
        for one in packed
    ]
    return tuple(
        SummaryPart(tuple(item for item in one if item.n in found), found)
        for one, found in zip(packed, texts, strict=True)
    )


def _whole_texts(evidence: Sequence[Evidence]) -> dict[int, str]:
    found = {item.n: without_instructions(text_below_heading(item)) for item in evidence}
    return {n: text for n, text in found.items() if text.strip()}


def key_texts(evidence: Sequence[Evidence]) -> dict[int, str]:
    """Return the two key sentences of a part, by evidence number."""
    found = key_sentences(document_parts(evidence), 2)
    chosen = [sentence for part in found for sentence in part.sentences]
    texts: dict[int, str] = {}
    for one in chosen:
        texts[one.item.n] = f"{texts[one.item.n]} {one.text}" if one.item.n in texts else one.text
    return texts


def _packed(found: Sequence[tuple[Evidence, int]], size: int) -> list[tuple[Evidence, ...]]:
    groups: list[list[Evidence]] = []
    taken = size
    for item, cost in found:
        section = item.hit.passage.chunk.section
        turns = bool(groups) and groups[-1][-1].hit.passage.chunk.section != section
        if not groups or taken + cost > size or (turns and taken * 2 > size):
            groups.append([])
            taken = 0
        groups[-1].append(item)
        taken += cost
    return [tuple(group) for group in groups]


def _characters(evidence: Sequence[Evidence], budget_tokens: int, size_tokens: int) -> int:
    """Return how many characters of a part fit the budget, by its share of the whole size."""
    length = sum(len(item.hit.passage.chunk.text) for item in evidence)
    return int(length * budget_tokens / size_tokens)
