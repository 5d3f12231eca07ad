"""Any text is a question: no sign acts as syntax, and what is found is what shares a word, or a piece of a name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import tantivy
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.languages import language_of
from app.core.text import content_or_all, lexical_form, tokenise
from app.core.types import Filters
from app.storage.catalog.rows import author_key
from app.storage.words.tantivy import (
    ANALYZER,
    AUTHOR,
    BODY,
    CHUNK_ID,
    MAX_QUERY_TERMS,
    QueryBuilder,
    build_analyzer,
    build_schema,
    conjunction,
)

BODIES = (
    "The C++ standard, section 4.2: templates AND concepts",
    "what is rag? retrieval OR generation, not both",
    "数据库 and search",
    'title:secret "quoted phrase" ~3 ^2 [1999 TO 2005]',
    "naïve Bayes \u2014 in Émile's café (winter)",
)
AUTHORS = ("Ann (Li)", "Émile d'Roux-Smith", "数据 库", "[a-z]*+?.\\x{41}", "O\u2019Neill & Sons")
WORDS = [
    "AND",
    "OR",
    "NOT",
    "TO",
    "templates",
    "rag",
    "数据",
    "title:",
    "body:secret",
    "café",
    "concepts",
    "^2",
    "~3",
]
SIGNS = st.text(alphabet="+-!(){}[]^\"~*?:\\/<>=&|@#$'.,; \t\n", max_size=12)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.one_of(st.sampled_from(WORDS), SIGNS), max_size=12).map(" ".join),
    st.lists(st.one_of(st.sampled_from(WORDS), SIGNS), max_size=12).map("".join),
)
SCHEMA = build_schema()
BUILDER = QueryBuilder(SCHEMA, title_boost=0.0, section_boost=0.0)


def searcher() -> tantivy.Searcher:
    index = tantivy.Index(SCHEMA)
    index.register_tokenizer(ANALYZER, build_analyzer())
    writer = index.writer(15_000_000, 1)
    for number, (body, author) in enumerate(zip(BODIES, AUTHORS, strict=True)):
        fields = tantivy.Document()
        fields.add_integer(CHUNK_ID, number)
        fields.add_text(BODY, lexical_form(body))
        fields.add_text(AUTHOR, author_key(author))
        writer.add_document(fields)
    writer.commit()
    index.reload()
    return index.searcher()


SEARCHER = searcher()


def found(query: tantivy.Query) -> list[tuple[int, float]]:
    """Return number and score of what a query finds, by number."""
    hits = SEARCHER.search(query, len(BODIES)).hits
    return sorted((address.doc, score) for score, address in hits)


def answer(text: str) -> list[tuple[int, float]]:
    query = BUILDER.text(text, ("en",))
    return [] if query is None else found(query)


@given(TEXTS)
@example('"unbalanced AND (foo NEAR/2')
@example("C++ * ? [ ] { } ~ ^ \\")
@example("\u0000\ud800")
def test_a_text_finds_what_shares_a_word_with_it(text: str) -> None:
    asked = set(content_or_all(tokenise(text), "en", language_of(text)))
    assert (BUILDER.text(text, ("en",)) is None) == (not asked)
    assert [number for number, _ in answer(text)] == [
        n for n, body in enumerate(BODIES) if asked & set(tokenise(body))
    ]
    assert all(score > 0 for _, score in answer(text))


@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6),
    st.lists(SIGNS, min_size=7, max_size=7),
)
def test_signs_between_words_change_nothing(chosen: Sequence[str], signs: Sequence[str]) -> None:
    signed = (
        "".join(f" {sign} {word}" for sign, word in zip(signs, chosen, strict=False))
        + f" {signs[-1]}"
    )
    assert answer(signed) == answer(" ".join(chosen))


@given(
    st.one_of(
        st.text(max_size=20),
        SIGNS,
        st.sampled_from(AUTHORS).map(str.upper),
        st.sampled_from(["li", "roux", ".*", "a|b", "[a-z]", "&"]),
    )
)
@example("\\x{41}")
@example("(?s).*")
def test_an_author_is_found_by_any_piece_of_the_name_and_by_nothing_else(name: str) -> None:
    wanted = author_key(name)
    conditions = BUILDER.filters(Filters(author=name))
    if not wanted:
        assert conditions == []
        return
    query = conjunction(tantivy.Query.all_query(), conditions)
    assert [number for number, _ in found(query)] == [
        n for n, author in enumerate(AUTHORS) if wanted in author_key(author)
    ]


@pytest.mark.parametrize(
    "text", ["word " * 50_000, " ".join(f"w{n}" for n in range(20_000)), "a" * 200_000]
)
def test_a_pasted_book_is_a_question_too(text: str) -> None:
    assert answer(text) == []


def test_a_long_text_is_searched_by_its_most_frequent_words() -> None:
    text = " ".join(f"w{n}" for n in range(2 * MAX_QUERY_TERMS)) + " templates templates"
    assert [number for number, _ in answer(text)] == [0]
