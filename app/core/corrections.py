"""Mend a text that was read: spans of it, and the words that stand there instead.

A document's bytes are read into the reader's text; corrections of that text make the text that is
stored. Neither what was read at a place nor what is written there is ever empty, so that each end
of a span outside of corrections has one place in either text.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from app.core.errors import InvalidInput, TooLarge
from app.core.normalisation import normalise
from app.core.types import BlockSpan, Correction, Heading, PageSpan, ParsedDocument

AROUND = 32
"""Characters kept in front of and behind a correction, to know its place by in another reading."""
CLOSE = 8
"""Of these the next ones, which tell a place that is the only one with them."""
MOST_CORRECTIONS = 5_000
"""Of one document."""


class Edit(NamedTuple):
    """Characters `[start, end)` of a stored text, and what is to stand there."""

    start: int
    end: int
    text: str


class Mending:
    """Placed corrections in the order of the text, applied or taken back; maps offsets."""

    def __init__(self, corrections: Sequence[Correction]) -> None:
        self.corrections = sorted((c for c in corrections if c.placed), key=lambda one: one.start)
        self._read = [(one.start, one.end) for one in self.corrections]
        gains = accumulate((len(c.text) - len(c.before) for c in self.corrections), initial=0)
        self.spans = [
            (one.start + gain, one.start + gain + len(one.text))
            for one, gain in zip(self.corrections, gains, strict=False)
        ]
        """Where the texts stand in the mended text."""

    def apply(self, text: str) -> str:
        """Return the mended text of a reader's text."""
        return _replaced(text, self._read, [one.text for one in self.corrections])

    def undo(self, text: str) -> str:
        """Return the reader's text of a mended text."""
        return _replaced(text, self.spans, [one.before for one in self.corrections])

    def forward(self, at: int, *, is_end: bool = False) -> int:
        """Return an offset of the reader's text as one of the mended text.

        Within what was replaced it is where the replacement starts, or ends if it ends a span.
        """
        return _moved(at, self._read, self.spans, is_end)

    def back(self, at: int, *, is_end: bool = False) -> int:
        """Return an offset of the mended text as one of the reader's text; see `forward`."""
        return _moved(at, self.spans, self._read, is_end)

    def cuts(self, at: int) -> bool:
        """Return whether an offset of the reader's text is within what was replaced."""
        before = bisect_left(self._read, (at, at)) - 1
        return before >= 0 and at < self._read[before][1]

    def fits(self, text: str) -> bool:
        """Return whether a mended text has every replacement at its place, none over another."""
        ends = [0, *(end for _, end in self._read)]
        return all(end <= start for end, (start, _) in zip(ends, self._read, strict=False)) and all(
            one.before and one.text and text[start:end] == one.text
            for one, (start, end) in zip(self.corrections, self.spans, strict=True)
        )


def _replaced(text: str, spans: Sequence[tuple[int, int]], texts: Sequence[str]) -> str:
    parts, at = list[str](), 0
    for (start, end), one in zip(spans, texts, strict=True):
        parts += (text[at:start], one)
        at = end
    return "".join((*parts, text[at:]))


def _moved(
    at: int, spans: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]], is_end: bool
) -> int:
    before = bisect_left(spans, (at, at)) - 1  # the last one that starts in front
    if before < 0:
        return at
    if at < spans[before][1]:
        return others[before][1 if is_end else 0]
    return at - spans[before][1] + others[before][1]


def mended(parsed: ParsedDocument, corrections: Sequence[Correction]) -> ParsedDocument:
    """Return a document as it was read with its placed corrections.

    Pages and headings keep their places. A heading that a correction reaches into or out of is its
    first line. A block that one reaches out of is cut like other text.
    """
    mending = Mending(corrections)
    if not mending.corrections:
        return parsed
    text = mending.apply(parsed.text)
    return replace(
        parsed,
        text=text,
        pages=tuple(
            PageSpan(page.number, mending.forward(page.start), mending.forward(page.end))
            for page in parsed.pages
        ),
        headings=tuple(_headings(parsed.headings, text, mending)),
        blocks=tuple(
            BlockSpan(kind, mending.forward(start), mending.forward(end))
            for kind, start, end in parsed.blocks
            if not mending.cuts(start) and not mending.cuts(end)
        ),
    )


def _headings(headings: Sequence[Heading], text: str, mending: Mending) -> Iterator[Heading]:
    before = 0
    for one in headings:
        start, end = mending.forward(one.start), mending.forward(one.end, is_end=True)
        if mending.cuts(one.start) or mending.cuts(one.end):
            end = start + len(text[start:end].partition("\n")[0])
        title = " ".join(text[start:end].split())
        if title and start >= before:
            yield Heading(start, end, one.level, title)
            before = end


# Make corrections of what a person changes in the text that is stored now.


def with_edits(
    text: str,
    pages: Sequence[PageSpan],
    held: Sequence[Correction],
    edits: Sequence[Edit],
    author: str,
    created_at: str,
    most_characters: int,
) -> tuple[Correction, ...]:
    """Return the corrections of a document once its stored text was edited.

    A correction of before that an edit reaches into becomes one with it.

    Args:
        text: The stored text.
        pages: Where its pages stand.
        held: The corrections that it has.
        edits: In any order; none over another.
        author: Name of the key.
        created_at: The time, as the store writes it.
        most_characters: Of a text.

    Raises:
        InvalidInput: A span is not one of the text, is over another, or reaches over a page; or
            nothing would change, or nothing be left.
        TooLarge: The text or the list would be too long.
    """
    edits = _checked(text, pages, edits)
    mending = Mending(held)
    read = mending.undo(text)
    found = [one for one in held if not one.placed]
    for start, end, one, group in _groups(mending, edits):
        if one is not None and not group:
            found.append(one)
            continue
        written = _replaced(
            text[start:end],
            [(edit.start - start, edit.end - start) for edit in group],
            [edit.text for edit in group],
        )
        at, until = mending.back(start), mending.back(end)
        if (before := read[at:until]) != written:
            left, right = read[max(0, at - AROUND) : at], read[until : until + AROUND]
            found.append(Correction(at, before, written, left, right, author, created_at))
    if len(found) > MOST_CORRECTIONS:
        raise TooLarge(
            f"a document has at most {MOST_CORRECTIONS:,} corrections; correct its file, and send"
            " that"
        )
    whole = Mending(found).apply(read)
    if len(whole) > most_characters:
        raise TooLarge(
            f"the text would have {len(whole):,} characters; at most {most_characters:,} are kept"
        )
    if not whole or whole.isspace():
        raise InvalidInput("nothing would be left of the text; delete the document instead")
    if not unicodedata.is_normalized("NFC", whole) and unicodedata.is_normalized("NFC", text):
        raise InvalidInput(
            "a correction begins or ends between a letter and its accent; let its span hold both"
        )
    return tuple(sorted(found, key=lambda one: one.start))


def _checked(text: str, pages: Sequence[PageSpan], edits: Sequence[Edit]) -> list[Edit]:
    """Return edits that change something, cleaned and in order, no span and no text empty."""
    for edit in edits:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise InvalidInput(
                f"span {edit.start}..{edit.end} must lie within 0..{len(text)} of the text"
            )
        if crossed := _crossed(pages, edit.start, edit.end):
            raise InvalidInput(
                f"span {edit.start}..{edit.end} reaches over an end of page {crossed}; correct"
                " each page by itself"
            )
    kept = [
        Edit(edit.start, edit.end, clean)
        for edit in sorted(edits)
        if (clean := normalise(edit.text)[0]) != text[edit.start : edit.end]
    ]
    for one, other in pairwise(kept):
        if other.start < one.end or other.start == one.start:
            raise InvalidInput(
                f"spans {one.start}..{one.end} and {other.start}..{other.end} lie over each other;"
                " make them one"
            )
    if not kept:
        raise InvalidInput("the corrections change nothing; the text already says so")
    return _widened(text, pages, kept)


def _crossed(pages: Sequence[PageSpan], start: int, end: int) -> int | None:
    """Return the number of a page that begins or ends within a span."""
    for page in pages:
        if start < page.start < end or start < page.end < end:
            return page.number
    return None


def _widened(text: str, pages: Sequence[PageSpan], edits: Sequence[Edit]) -> list[Edit]:
    """Return edits in order; one whose span or text is empty takes in a neighbour on its page."""
    bounds = sorted([0, len(text), *(at for page in pages for at in (page.start, page.end))])
    joined = list[Edit]()
    for edit in edits:
        if joined and edit.start == joined[-1].end and edit.start not in bounds:
            joined[-1] = Edit(joined[-1].start, edit.end, joined[-1].text + edit.text)
        else:
            joined.append(edit)
    nexts = [*(edit.start for edit in joined[1:]), len(text)]
    found, taken = list[Edit](), 0
    for edit, following in zip(joined, nexts, strict=True):
        start, end, written = edit
        low = bounds[bisect_right(bounds, min(start, len(text) - 1)) - 1]
        high = bounds[min(bisect_left(bounds, max(end, start + 1)), len(bounds) - 1)]
        if start < end and written:
            found.append(edit)
        elif start > max(low, taken):
            found.append(Edit(start - 1, end, text[start - 1] + written))
        elif end < min(high, following):
            found.append(Edit(start, end + 1, written + text[end]))
        elif found and found[-1].end == start > low:
            found[-1] = Edit(found[-1].start, end, found[-1].text + written)
        else:
            raise InvalidInput(
                f"span {start}..{end} is empty, or would be, and no character beside it stays: name"
                " the words around it too"
            )
        taken = found[-1].end
    return found


def _groups(
    mending: Mending, edits: Sequence[Edit]
) -> Iterator[tuple[int, int, Correction | None, list[Edit]]]:
    """Yield spans of the mended text with the edits in them; without any, with its correction.

    Edits are in one span where a correction reaches from one to the other.
    """
    parts: list[tuple[int, int, Correction | None, list[Edit]]] = [
        *((*span, one, []) for span, one in zip(mending.spans, mending.corrections, strict=True)),
        *((edit.start, edit.end, None, [edit]) for edit in edits),
    ]
    parts.sort(key=lambda part: part[:2])
    held = parts[:1]
    for part in parts[1:]:
        start, end, one, group = held[-1]
        if part[0] < end:
            held[-1] = start, max(end, part[1]), one, group + part[3]
        else:
            held.append(part)
    yield from held


# Find the places of corrections in another reading of the same bytes.


def place(
    text: str, pages: Sequence[PageSpan], corrections: Sequence[Correction]
) -> tuple[Correction, ...]:
    """Return corrections with their places in a reader's text; one without a place is not placed.

    Its place is where its words stand with the same characters around them, of several the nearest
    to where it was; else the only place with the same next characters. One whose own text stands
    there is left out: it is read as it was corrected.
    """
    found: list[Correction] = []
    taken: list[tuple[int, int]] = []
    moved = 0
    for one in sorted(corrections, key=lambda one: one.start):
        at = _place_of(text, one, one.before, one.start + moved)
        if at is None and _place_of(text, one, one.text, one.start + moved) is not None:
            continue
        end = -1 if at is None else at + len(one.before)
        if (
            at is None
            or _crossed(pages, at, end)
            or any(start < end and at < stop for start, stop in taken)
        ):
            found.append(replace(one, placed=False))
            continue
        moved = at - one.start
        taken.append((at, end))
        found.append(replace(one, start=at, placed=True))
    return tuple(sorted(found, key=lambda one: one.start))


def _place_of(text: str, one: Correction, words: str, wanted: int) -> int | None:
    """Return where words stand with a correction's neighbours; None for nowhere."""
    whole, begin = f"{one.left}{words}{one.right}", max(0, wanted - len(one.left))
    found = text.rfind(whole, 0, begin + len(whole)), text.find(whole, begin)
    places = [at + len(one.left) for at in found if at >= 0]
    if places:
        return min(places, key=lambda at: abs(at - wanted))
    left, right = one.left[-CLOSE:], one.right[:CLOSE]
    at = text.find(whole := f"{left}{words}{right}")
    is_only = len(left) == len(right) == CLOSE and at >= 0 and text.find(whole, at + 1) < 0
    return at + len(left) if is_only else None
