from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.core.errors import InvalidInput
from app.core.types import Heading, PageSpan, ParsedDocument
from app.ingest.chunking import chunk, halves
from app.ingest.options import IngestOptions
from app.ingest.parsers.blocks import Block, Cell, write
from tests.fakes.embedders import HashEmbedder

WORDS = st.sampled_from(
    [
        "relay",
        "a",
        "Crystals.",
        "slow",
        "e.g.",
        "42",
        "漢字が",
        "好きです。",
        "\n",
        "\n\n",
        "👩‍🔬",
        "naïve",
        "x" * 70,
        "(see",
        "[3]).",
    ]
)
TEXTS = st.lists(WORDS, max_size=120).map(" ".join)
OPTIONS = st.tuples(st.integers(20, 200), st.floats(0, 0.9)).map(
    lambda pair: IngestOptions(chunk_size=pair[0], chunk_overlap=int(pair[0] * pair[1]))
)


def document(
    text: str, cuts: list[int] | None = None, heads: list[int] | None = None
) -> ParsedDocument:
    bounds = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts or [])}) if cuts else []
    pages = tuple(PageSpan(n, a, b) for n, (a, b) in enumerate(pairwise(bounds), start=1))
    starts = sorted({h % max(1, len(text)) for h in heads or []} if text else set())
    return ParsedDocument(
        text, "text", pages, tuple(Heading(s, min(len(text), s + 1), 1, text[s]) for s in starts)
    )


@settings(max_examples=150)
@example(
    "x" * 70 + " " * 30 + "x" * 70, IngestOptions(chunk_size=70, chunk_overlap=0), [], [], False
)
@example(
    "relay relay" + (" " + "x" * 70) * 3,
    IngestOptions(chunk_size=165, chunk_overlap=82),
    [],
    [],
    True,
)
@given(
    TEXTS,
    OPTIONS,
    st.lists(st.integers(0, 5000), max_size=4),
    st.lists(st.integers(0, 5000), max_size=3),
    st.booleans(),
)
def test_chunks_cover_every_non_blank_character_and_keep_their_bounds(
    text: str, options: IngestOptions, cuts: list[int], heads: list[int], counted: bool
) -> None:
    parsed = document(text, cuts, heads)
    embedder = HashEmbedder(max_tokens=12)
    spans = chunk(parsed, options, embedder.count_tokens, 12) if counted else chunk(parsed, options)
    covered = bytearray(len(text))
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)
        assert span.end - span.start <= options.chunk_size
        assert not text[span.start].isspace()
        assert not text[span.end - 1].isspace()
        covered[span.start : span.end] = b"\1" * (span.end - span.start)
        if counted and span.end - span.start > 1:
            assert embedder.count_tokens([text[span.start : span.end]])[0] <= 12
    assert all(done or char.isspace() for done, char in zip(covered, text, strict=True))
    for before, after in pairwise(spans):
        assert after.start > before.start
        assert after.ordinal == before.ordinal + 1
        assert before.end - after.start <= options.chunk_overlap
    for page in parsed.pages:
        for span in spans:
            assert (
                span.end <= page.start
                or span.start >= page.end
                or (page.start <= span.start and span.end <= page.end)
            )


@settings(max_examples=60)
@given(
    TEXTS,
    OPTIONS,
    st.lists(st.integers(0, 5000), max_size=4),
    st.lists(st.integers(0, 5000), max_size=3),
)
def test_the_recursive_chunker_covers_everything_and_stays_on_its_page(
    text: str, options: IngestOptions, cuts: list[int], heads: list[int]
) -> None:
    parsed = document(text, cuts, heads)
    spans = chunk(parsed, replace(options, chunker="recursive"))
    covered = {at for span in spans for at in range(span.start, span.end)}
    assert all(at in covered or char.isspace() for at, char in enumerate(text))
    for page in parsed.pages:
        assert all(
            span.end <= page.start
            or span.start >= page.end
            or page.start <= span.start < span.end <= page.end
            for span in spans
        )


def test_headings_part_chunks_and_the_recursive_chunker_reads_over_them() -> None:
    text = "Abstract\nCopper is red.\nMethods\nWe melted it.\n"
    heads = tuple(
        Heading(text.index(title), text.index(title) + len(title), 1, title)
        for title in ("Abstract", "Methods")
    )
    parsed = ParsedDocument(text, "text/plain", (), heads)
    by_heading = chunk(parsed, IngestOptions())
    assert [(text[s.start : s.end], s.section) for s in by_heading] == [
        ("Abstract\nCopper is red.", "abstract"),
        ("Methods\nWe melted it.", "methodology"),
    ]
    (whole,) = chunk(parsed, IngestOptions(chunker="recursive"))
    assert (text[whole.start : whole.end], whole.section) == (text.strip(), "abstract")
    parts = chunk(parsed, IngestOptions(chunk_size=26, chunk_overlap=0, chunker="recursive"))
    assert [span.section for span in parts] == ["abstract", "methodology"]
    assert chunk(ParsedDocument("", "text/plain", (), ()), IngestOptions(chunker="recursive")) == ()


def test_a_line_too_short_to_be_a_chunk_joins_its_neighbour() -> None:
    paragraph = " ".join(f"Sentence number {number} says a little." for number in range(24))
    text = f"12 The head of a page\n\n{paragraph}\n\n13"
    options = IngestOptions()
    found = [text[span.start : span.end] for span in chunk(document(text), options)]
    assert found[0].startswith("12 The head of a page\n\nSentence number 0")
    assert found[-1].endswith("\n\n13")
    assert len(found) == len(chunk(document(paragraph), options))
    assert all(len(one) <= options.chunk_size for one in found)


@settings(max_examples=50)
@given(st.text(max_size=400), OPTIONS)
def test_any_unicode_is_covered(text: str, options: IngestOptions) -> None:
    spans = chunk(ParsedDocument(text, "text/plain"), options)
    covered: set[int] = set()
    for span in spans:
        covered.update(range(span.start, span.end))
    assert all(i in covered or char.isspace() for i, char in enumerate(text))


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "漢" * 300_000, "ab. " * 60_000, "\n" * 200_000 + "x" * 3_000]
)
def test_odd_texts_are_cut_before_the_test_times_out(text: str) -> None:
    spans = chunk(ParsedDocument(text, "text/plain"), IngestOptions())
    assert max(span.end - span.start for span in spans) <= 1000
    assert spans[-1].end == len(text.rstrip())


def test_chunks_start_and_end_at_sentences_where_they_can() -> None:
    rng = random.Random(7)
    sentences = [
        " ".join(
            rng.choices("lattice quartz slow cold night laser plate".split(), k=rng.randint(5, 15))
        )
        + "."
        for _ in range(200)
    ]
    text = " ".join(s.capitalize() for s in sentences)
    spans = chunk(
        ParsedDocument(text, "text/plain"), IngestOptions(chunk_size=400, chunk_overlap=120)
    )
    assert all(text[span.end - 1] == "." for span in spans)
    assert all(text[span.start].isupper() for span in spans)
    overlaps = [a.end - b.start for a, b in pairwise(spans)]
    assert sum(o > 0 for o in overlaps) > 0.8 * len(overlaps)


def test_a_chunk_does_not_begin_within_the_sentence_before_it() -> None:
    long = "The keeper of the valley, who read the gauge each morning, wrote " + "it down, " * 20
    text = " ".join(f"{long}and went, e.g. by boat, to lock {lock}." for lock in range(9))
    options = IngestOptions(chunk_size=400, chunk_overlap=100)
    spans = chunk(ParsedDocument(text, "text/plain"), options)
    assert [text[span.start :][:10] for span in spans] == ["The keeper"] * 9
    unbroken = "it is written down, " * 60
    spans = chunk(ParsedDocument(unbroken, "text/plain"), options)
    assert all(60 < a.end - b.start <= 100 for a, b in pairwise(spans)), "no sentence begins there"


def test_a_chunk_never_crosses_a_heading_or_a_page_and_knows_both() -> None:
    text = "Abstract\nShort.\nIntroduction\nAlso short.\nMore on the next page."
    pages = (PageSpan(1, 0, text.index("More") - 1), PageSpan(2, text.index("More"), len(text)))
    headings = (Heading(0, 8, 1, "Abstract"), Heading(16, 28, 1, "Introduction"))
    spans = chunk(ParsedDocument(text, "application/pdf", pages, headings), IngestOptions())
    assert [(text[s.start : s.end], s.section, s.page) for s in spans] == [
        ("Abstract\nShort.", "abstract", 1),
        ("Introduction\nAlso short.", "introduction", 1),
        ("More on the next page.", "introduction", 2),
    ]


def test_chunks_over_the_token_limit_are_halved_at_sentences() -> None:
    text = (
        "One two three four. Five six seven eight. Nine ten eleven twelve. Thirteen fourteen"
        " fifteen sixteen."
    )
    spans = chunk(
        ParsedDocument(text, "text/plain"), IngestOptions(), HashEmbedder().count_tokens, 13
    )
    assert [text[s.start : s.end] for s in spans] == [
        "One two three four. Five six seven eight.",
        "Nine ten eleven twelve. Thirteen fourteen fifteen sixteen.",
    ]
    halved = chunk(
        ParsedDocument(text, "text/plain"), IngestOptions(), HashEmbedder().count_tokens, 11
    )
    assert len(halved) == 4
    assert all(text[span.end - 1] == "." for span in halved)
    assert [s.ordinal for s in halved] == list(range(4))


def test_halves_prefer_sentences_then_words_then_the_middle() -> None:
    assert halves("Aa bb. Cc dd.", 0, 13) == ((0, 6), (7, 13))
    assert halves("aaa bbb ccc", 0, 11) == ((0, 3), (4, 11))
    assert halves("abcdef", 0, 6) == ((0, 3), (3, 6))


@pytest.mark.parametrize(("size", "overlap"), [(100, 100), (100, 150), (100, -1)])
def test_an_overlap_that_cannot_advance_is_refused(size: int, overlap: int) -> None:
    with pytest.raises(InvalidInput, match="CHUNK_OVERLAP"):
        chunk(
            ParsedDocument("x", "text/plain"), IngestOptions(chunk_size=size, chunk_overlap=overlap)
        )


@pytest.mark.parametrize("limit", [None, 60])
def test_rows_and_items_are_whole_in_a_chunk(limit: int | None) -> None:
    rows = [
        [Cell(f"Person{at} Vik. Jr."), Cell(f"22 85 37 {at}"), Cell("a hall. It is red" * 3)]
        for at in range(60)
    ]
    heads = [Cell("Name"), Cell("Phone"), Cell("Room")]
    items = [Block("item", f"Step {at}. Open it. Then wait for the sign.") for at in range(40)]
    table = Block("table", rows=[heads, *rows])
    parsed = write(
        [Block("paragraph", "They work here. " * 30), table, *items, Block("paragraph", "End.")],
        "text",
    )
    embedder = HashEmbedder()
    spans = chunk(
        parsed,
        IngestOptions(chunk_size=400, chunk_overlap=100),
        embedder.count_tokens if limit else None,
        limit,
    )
    for one in parsed.blocks:
        assert any(span.start <= one.start and one.end <= span.end for span in spans), one
    starts = {one.start for one in parsed.blocks}
    inside = [
        span.start
        for span in spans
        for one in parsed.blocks
        if one.start < span.start < one.end or one.start < span.end < one.end
    ]
    assert not inside
    assert starts & {span.start for span in spans}
