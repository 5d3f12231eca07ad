"""Corrections: applied, taken back, mapped, merged with those of before, found again in another reading."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.corrections import Edit, Mending, mended, place, with_edits
from app.core.errors import InvalidInput, TooLarge
from app.core.types import BlockSpan, Correction, Heading, PageSpan, ParsedDocument

AT = "2026-11-26T07:00:00Z"
_LETTERS = st.text(alphabet="ab \n", max_size=5)


def corrected(
    text: str,
    *edits: tuple[int, int, str],
    held: tuple[Correction, ...] = (),
    pages: tuple[PageSpan, ...] = (),
) -> tuple[Correction, ...]:
    wanted = [Edit(*edit) for edit in edits]
    return with_edits(text, pages, held, wanted, "ann", AT, most_characters=10_000)


def plainly(text: str, edits: list[Edit]) -> str:
    """Apply edits from the last to the first: each leaves the places of those before it."""
    for start, end, words in sorted(edits, reverse=True):
        text = text[:start] + words + text[end:]
    return text


@st.composite
def _edited(draw: st.DrawFn, text: str) -> list[Edit]:
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = list(zip(cuts[::2], cuts[1::2], strict=False))
    return [Edit(start, end, draw(_LETTERS)) for start, end in spans]


@given(st.data())
def test_lists_of_edits_give_the_text_and_map_every_offset(data: st.DataObject) -> None:
    """Round by round, each of the text of the one before; then all is taken back at once."""
    read = data.draw(st.text(alphabet="abc \n", min_size=3, max_size=40))
    held: tuple[Correction, ...] = ()
    for _ in range(3):
        now = Mending(held).apply(read)
        edits = data.draw(_edited(now))
        try:
            held = corrected(now, *edits, held=held)
        except InvalidInput:  # nothing changes, or nothing would be left
            assert plainly(now, edits) == now or not plainly(now, edits).strip()
            continue
        mending = Mending(held)
        then = mending.apply(read)
        assert then == plainly(now, edits)
        assert mending.undo(then) == read
        assert mending.fits(then)
        for at in range(len(read) + 1):
            whole = [one for one in mending.corrections if one.end <= at]
            if not mending.cuts(at):
                assert then[: mending.forward(at)] == Mending(whole).apply(read[:at])
                assert mending.back(mending.forward(at)) == at
            else:
                assert mending.forward(at) < mending.forward(at, is_end=True)
        spots = [mending.back(at) for at in range(len(then) + 1)]
        assert spots == sorted(spots)
        for one, (start, end) in zip(mending.corrections, mending.spans, strict=True):
            assert then[start:end] == one.text
            assert read[one.start : one.end] == one.before


def test_a_correction_of_a_correction_becomes_one_and_remembers_what_was_read() -> None:
    read = "The cat sa t on the mat."
    (first,) = held = corrected(read, (8, 12, "sat"))
    assert (first.start, first.before, first.text) == (8, "sa t", "sat")
    assert (first.left, first.right) == ("The cat ", " on the mat.")
    now = Mending(held).apply(read)
    assert now == "The cat sat on the mat."
    (one,) = corrected(now, (9, 14, "lept on"), held=held)
    assert (one.before, one.text) == ("sa t on", "slept on")
    assert corrected(now, (8, 11, "sa t"), held=held) == ()  # it says again what was read


def test_an_empty_span_or_text_takes_a_neighbour_of_its_page_in() -> None:
    pages = PageSpan(1, 0, 4), PageSpan(2, 4, 8)
    (on_two,) = corrected("one\ntwo\n", (4, 4, "a "), pages=pages)
    assert (on_two.start, on_two.before, on_two.text) == (4, "t", "a t")
    (at_end,) = corrected("one\ntwo\n", (8, 8, "!"), pages=pages)
    assert (at_end.start, at_end.before, at_end.text) == (7, "\n", "\n!")
    (gone,) = corrected("one\ntwo\n", (4, 7, ""), pages=pages)
    assert (gone.start, gone.before, gone.text) == (4, "two\n", "\n")


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([(5, 99, "x")], "span 5..99 must lie within 0..8"),
        ([(3, 2, "x")], "span 3..2 must lie within 0..8"),
        ([(0, 3, "x"), (2, 3, "y")], "spans 0..3 and 2..3 lie over each other"),
        ([(2, 6, "x")], "span 2..6 reaches over an end of page 1"),
        ([(0, 3, "one")], "the corrections change nothing"),
        ([(0, 4, "")], "name the words around it too"),
        ([(0, 3, " "), (4, 7, " ")], "nothing would be left"),
        ([(1, 2, "\u0301")], "between a letter and its accent"),
    ],
)
def test_what_cannot_be_taken_is_told(edits: list[tuple[int, int, str]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        corrected("one\ntwo\n", *edits, pages=(PageSpan(1, 0, 4), PageSpan(2, 4, 8)))


def test_a_text_that_becomes_too_long_is_refused() -> None:
    with pytest.raises(TooLarge, match=r"10,003 characters; at most 10,000"):
        corrected("one", (0, 0, "x" * 10_000))


def test_a_text_is_cleaned_as_every_text_is() -> None:
    (one,) = corrected("one two", (0, 3, "e\u0301n\r\nn\u202eo\x07"))
    assert one.text == "\xe9n\nno"


def test_structure_moves_with_the_text() -> None:
    text = "1 Metod\n\nA row\nB row\nC row\n\n2 End\n\nLast."
    parsed = ParsedDocument(
        text,
        "text/plain",
        pages=(PageSpan(1, 0, 28), PageSpan(2, 28, len(text))),
        headings=(Heading(0, 7, 1, "1 Metod"), Heading(28, 33, 1, "2 End")),
        blocks=(BlockSpan("row", 9, 14), BlockSpan("row", 15, 20), BlockSpan("row", 21, 26)),
    )
    held = corrected(text, (2, 7, "Method"), (17, 24, "longer row\nCC"), (30, 33, "Ending"))
    found = mended(parsed, held)
    assert found.text == "1 Method\n\nA row\nB longer row\nCCow\n\n2 Ending\n\nLast."
    assert [(h.title, found.text[h.start : h.end]) for h in found.headings] == [
        ("1 Method", "1 Method"),
        ("2 Ending", "2 Ending"),
    ]
    assert [(p.number, found.text[p.start : p.end]) for p in found.pages] == [
        (1, "1 Method\n\nA row\nB longer row\nCCow\n\n"),
        (2, "2 Ending\n\nLast."),
    ]
    # The torn rows are cut like other text; the whole one stays a row.
    assert [found.text[a:b] for _, a, b in found.blocks] == ["A row"]
    torn = mended(parsed, corrected(text, (5, 12, "hod\nAs I")))
    assert [heading.title for heading in torn.headings] == ["1 Method", "2 End"]


READ = "Heat and light. The lamp bums at night. The keeper rovvs at dawn. Tea is hot."


def test_a_place_is_known_by_what_stands_around_it() -> None:
    lamp, keeper = corrected(READ, (25, 29, "burns"), (51, 56, "rows"))
    moved = "A new head.\n\n" + READ.replace("Heat", "Warmth").replace("The lamp", "A lamp")
    found = place(moved, (), [lamp, keeper])
    assert [(one.placed, one.start) for one in found] == [(False, 25), (True, 51 + 13 + 2 - 2)]
    assert Mending(found).apply(moved) == moved.replace("rovvs", "rows")
    twice = moved + moved
    assert [one.placed for one in place(twice, (), [keeper])] == [True]  # the nearest
    assert [one.placed for one in place(twice.replace("Tea", "tea"), (), [keeper])] == [False]
    (back,) = place(READ, (), [found[0]])  # a reading that is as the first one was
    assert back == lamp


def test_of_several_places_the_nearest_is_meant_and_none_twice() -> None:
    line = "x" * 32 + "bums" + "y" * 32
    text = f"{line} {line} {line}"
    middle = 69 + 32
    (one,) = corrected(text, (middle, middle + 4, "burns"))
    assert [found.start for found in place("12345" + text, (), [one])] == [middle + 5]
    both = place(line, (), [one, replace(one, start=middle + 69, text="turns")])
    assert [found.placed for found in both] == [True, False]


def test_what_is_read_as_it_was_corrected_needs_no_correction() -> None:
    lamp, keeper = corrected(READ, (25, 29, "burns"), (51, 56, "rows"))
    better = READ.replace("rovvs", "rows")
    assert place(better, (), [lamp, keeper]) == (lamp,)
    assert place(READ.replace("bums", "burns"), (), [lamp, keeper]) == (replace(keeper, start=52),)


def test_a_place_that_is_on_two_pages_now_is_none() -> None:
    (lamp,) = corrected(READ, (20, 29, "light burns"))
    (found,) = place(READ, (PageSpan(1, 0, 25), PageSpan(2, 25, len(READ))), [lamp])
    assert not found.placed
