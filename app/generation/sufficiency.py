"""Compute what speaks for a quote being right.

No signal depends on the scale of an embedder: a passage's closeness is on one scale for all of
them, and the score of a sentence compares it with the others of its question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from app.core.types import Evidence
from app.generation.candidates import Candidate
from app.generation.features import FEATURES, Floats, tokens_with_title
from app.generation.kinds import question_kinds
from app.generation.opposites import opposites
from app.generation.reading import ReadPassage, content_tokens
from app.generation.subject import unnamed_in

SUFFICIENCY = (
    "lead",  # score of the best quoted sentence, log-odds
    "coverage_around",  # idf-weighted share of the question's words in it and its neighbours
    "coverage_passage",  # the same in the title and passage it stands in
    "closeness",  # of that passage, as retrieval saw it
    "absent",  # content words of the question that the best passage lacks
    "words",  # logarithm of the question's content words: the longer, the less of it is found
    "unnamed",  # a name or number of the question stands neither in the quote nor around it
    "undenied",  # the question denies, and the quote does not
    # the best sentence has the opposite of a word of the question that stands nowhere near
    "opposite",
    "time",  # asks for a time
)
"""Entries of `sufficiency_row`, in order."""

_DENIES = re.compile(
    r"\b(?:not|never|cannot|neither|nor|without|none|no|nothing)\b"
    r"|\b(?:is|are|was|were|do|does|did|has|have|had|ca|could|wo|would|should|must)n['\u2019]?t\b",
    re.IGNORECASE,
)
_DENIED = re.compile(rf"{_DENIES.pattern}|\w{{3}}less\b|\bnon-?\w{{3}}", re.IGNORECASE)


def sufficiency_row(
    question: str,
    found: Sequence[Candidate],
    rows: Floats,
    scores: Floats,
    chosen: Sequence[Candidate],
) -> Floats:
    """Return SUFFICIENCY of a question and a quote, float64 `[len(SUFFICIENCY)]`.

    Args:
        question: What was asked.
        found: The candidates.
        rows: Their `feature_rows`.
        scores: Their ranks' log-odds, float64 `[n]`.
        chosen: What would be quoted, at least one of them.
    """
    lead = lead_of(found, scores, chosen)
    best, asked = found[lead], content_tokens(question)
    items: list[Evidence] = list({one.item.n: one.item for one in found}.values())
    absent = min(len(set(asked) - tokens_with_title(item)) for item in items)
    covered = {
        name: float(rows[lead, FEATURES.index(name)])
        for name in ("coverage_around", "coverage_passage")
    }
    close, said = best.item.hit.closeness, _said(best, found, chosen)
    quote = " ".join(one.text for one in chosen)
    return np.asarray(
        [
            float(scores[lead]),
            *covered.values(),
            covered["coverage_passage"] if close is None else close,
            float(absent),
            math.log(1 + len(asked)),
            float(bool(unnamed_in(question, [said]))),
            float(_DENIES.search(question) is not None and not _DENIED.search(quote)),
            float(_says_the_opposite(set(asked), best, said)),
            float("time" in question_kinds(question)),
        ]
    )


def lead_of(found: Sequence[Candidate], scores: Floats, chosen: Sequence[Candidate]) -> int:
    """Return where in `found` the best of the chosen sentences is, by score."""
    quoted = {candidate.key for candidate in chosen}
    rows = (row for row, candidate in enumerate(found) if candidate.key in quoted)
    return max(rows, key=lambda row: scores[row])


def _says_the_opposite(asked: AbstractSet[str], best: Candidate, said: ReadPassage) -> bool:
    brought = best.tokens - asked
    return any(opposites(token) & brought for token in asked - said.known)


def _said(best: Candidate, found: Sequence[Candidate], chosen: Sequence[Candidate]) -> ReadPassage:
    """Return the quote with the neighbours of its best sentence, title and section."""
    passage = best.item.hit.passage
    near = [
        one.text
        for one in found
        if one.item.n == best.item.n and abs(one.ordinal - best.ordinal) <= 1
    ]
    above = (passage.document.title, passage.chunk.section)
    return ReadPassage.of_text("\n".join([*above, *near, *(one.text for one in chosen)]))
