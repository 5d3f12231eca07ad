"""Choose the sentences of a quote and write them as an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from app.core.sentences import sentence_spans
from app.core.text import word_count
from app.generation.answer_room import PLAIN, SEVERAL, AnswerRoom
from app.generation.candidates import Candidate
from app.generation.features import Floats

_MOST_ENTRIES = 12
"""Of one list."""
_MIN_WORDS_ENTRY = 4
"""Words from which an entry of a list may be quoted without its list."""
_NEAR_DUPLICATE = 0.7
"""Jaccard similarity of words from which two sentences say the same."""
_CONTINUATION = 0.5
"""Score (log-odds) that the sentence after the best one may be worse and still be quoted: two in
a row read as a text."""
_ROWS_APART = 2.0
"""Score (log-odds) that another row of the table may be worse and still be quoted: from 2.6 on a
question for one cell gets its neighbours too (docs/decisions/0229)."""
_FULL_STOPS = (".", "\u3002", "\uff01")
_CLOSED = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]]*\Z")
_PREFERENCE = 0.5
"""Score (log-odds) that a whole sentence which does not dangle may be worse and still open the
answer."""


def choose(
    found: Sequence[Candidate], scores: Floats, room: AnswerRoom = PLAIN
) -> tuple[Candidate, ...]:
    """Return distinct sentences to quote: the best, then in reading order.

    Sentences that read like instructions are never chosen. One that is cut off or begins with a
    pronoun that means nothing alone opens the answer only when nothing comes near it, and then
    behind the sentence before it, where that can be quoted. One that announces a list gives way to
    the list. Rows of a table are quoted among themselves.
    """
    order = [int(row) for row in np.argsort(-scores, kind="stable") if _answers(found[int(row)])]
    if not order:
        return ()
    lead = next(
        (
            row
            for row in order
            if _stands_alone(found[row]) and scores[row] >= scores[order[0]] - _PREFERENCE
        ),
        order[0],
    )
    if items := _items_of(found, lead):
        return items
    if found[lead].row:
        return _rows_of(found, order, scores, lead)
    order = [row for row in order if not found[row].row]
    opening = _opening(found, order, lead, room)
    chosen = list(opening)
    left = room.words - sum(word_count(candidate.text) for candidate in chosen)
    after = (chosen[-1].item.n, chosen[-1].ordinal + 1)
    for row in sorted(
        order, key=lambda row: scores[row] + _CONTINUATION * (found[row].key == after), reverse=True
    ):
        candidate = found[row]
        length = word_count(candidate.text)
        if length > left or any(_alike(candidate, other) for other in chosen):
            continue
        chosen.append(candidate)
        left -= length
        if len(chosen) == room.sentences:
            break
    if room.in_order:
        return tuple(sorted(chosen, key=lambda candidate: candidate.key))
    return (*opening, *sorted(chosen[len(opening) :], key=lambda candidate: candidate.key))


def _items_of(found: Sequence[Candidate], lead: int) -> tuple[Candidate, ...]:
    """Return the list that a sentence announces, within the room; else none."""
    opening = found[lead]
    if not opening.announces:
        return ()
    items: list[Candidate] = []
    left = SEVERAL.words
    for candidate in found[lead + 1 :]:
        left -= word_count(candidate.text)
        follows = candidate.key == (opening.item.n, opening.ordinal + 1 + len(items))
        if (
            not (follows and candidate.entry and quotable(candidate))
            or left < 0
            or len(items) == _MOST_ENTRIES
        ):
            break
        items.append(candidate)
    return tuple(items)


def _rows_of(
    found: Sequence[Candidate], order: Sequence[int], scores: Floats, lead: int
) -> tuple[Candidate, ...]:
    """Return the row that answers best with those of its passage that answer as well."""
    rows = [found[lead]]
    for row in order:
        one = found[row]
        if one.row and one.item.n == rows[0].item.n and scores[row] >= scores[lead] - _ROWS_APART:
            rows += [one] if row != lead else []
    return tuple(sorted(rows[:_MOST_ENTRIES], key=lambda one: one.key))


def _opening(
    found: Sequence[Candidate], order: Sequence[int], lead: int, room: AnswerRoom
) -> list[Candidate]:
    """Return the opening: the best sentence, after the one it refers to if any."""
    best = found[lead]
    if best.dangles:
        before = (best.item.n, best.ordinal - 1)
        for row in order:
            candidate = found[row]
            if (
                candidate.key == before
                and word_count(candidate.text) + word_count(best.text) <= room.words
            ):
                return [candidate, best]
    return [best]


def _answers(candidate: Candidate) -> bool:
    """Return whether a candidate stands alone: no list entry too short for that."""
    return quotable(candidate) and (
        not candidate.entry or word_count(candidate.text) >= _MIN_WORDS_ENTRY
    )


def quoted_text(chosen: Sequence[Candidate]) -> str:
    """Return chosen candidates as an answer's text; entries and rows on own lines."""
    text, listed, several = "", False, len(chosen) > 1
    for one in chosen:
        item = one.entry or (one.row and several)
        gap = ("\n" if listed else "\n\n") if item else "\n\n" if listed else " "
        text += f"{gap if text else ''}{'- ' if item else ''}{rendered(one)}"
        listed = item
    return text


def quotable(candidate: Candidate) -> bool:
    """Return whether a candidate can be quoted.

    No instruction to a model, no entry of a list of references or a table of contents, and one
    sentence also when split again.
    """
    return not (candidate.suspicious or candidate.listed) and (
        len(sentence_spans(rendered(candidate))) == 1
    )


def rendered(candidate: Candidate) -> str:
    """Return a candidate as shown: its words and its mark.

    The mark stands before the full stop, or behind a closing quotation mark.
    """
    text, mark = candidate.text, f"[{candidate.item.n}]"
    if text.endswith(_FULL_STOPS) and not text.endswith(".."):
        return f"{text[:-1].rstrip()} {mark}{text[-1]}"
    return f"{text}{mark}" if _CLOSED.search(text) else f"{text} {mark}."


def _stands_alone(candidate: Candidate) -> bool:
    return candidate.row or (candidate.whole and not candidate.dangles)


def _alike(one: Candidate, other: Candidate) -> bool:
    return len(one.tokens & other.tokens) >= _NEAR_DUPLICATE * max(
        1, len(one.tokens | other.tokens)
    )
