"""Build tantivy queries from terms; user text is never parsed as syntax."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import tantivy

from app.core.languages import language_of
from app.core.text import MAX_TOKEN_BYTES, content_or_all, tokenise
from app.core.types import Filters
from app.storage.catalog.rows import author_key

# Define tantivy's schema and analyzer, equal to `app.core.text.tokenise`.

ANALYZER = "documind"

BODY, TITLE, SECTION = "body", "title", "section"
"""Analysed fields."""

CHUNK_ID, DOC, DOC_ID, SECTION_NAME, TYPE, YEAR, AUTHOR, LANGUAGE = (
    "chunk_id",
    "doc",
    "doc_id",
    "section_name",
    "type",
    "year",
    "author",
    "language",
)
"""Exact fields: `doc` is the catalog's key and what deletions name; `author` holds one folded
name per author, `language` the code by whose rules the words are stemmed."""


def build_schema() -> tantivy.Schema:
    """Return the schema: positions, for phrases, of the body only; frequencies for scores."""
    builder = tantivy.SchemaBuilder()
    for name in (TITLE, SECTION, BODY):
        builder.add_text_field(name, stored=False, tokenizer_name=ANALYZER, index_option="freq")
    builder.add_integer_field(CHUNK_ID, stored=False, indexed=True, fast=True)
    builder.add_integer_field(DOC, stored=False, indexed=True, fast=False)
    builder.add_integer_field(YEAR, stored=False, indexed=True, fast=True)
    for name in (DOC_ID, SECTION_NAME, TYPE, AUTHOR, LANGUAGE):
        builder.add_text_field(name, stored=False, tokenizer_name="raw", index_option="basic")
    return builder.build()


def build_analyzer() -> tantivy.TextAnalyzer:
    """Return the analyzer: split at non-alphanumerics, drop over 40 bytes, lower-case, stem."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(
            tantivy.Filter.remove_long(MAX_TOKEN_BYTES + 1)
        )  # tantivy keeps what is shorter than its limit
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


MAX_QUERY_TERMS = 1024
"""Distinct terms of one query; a longer text (a pasted page) is searched by its most frequent
ones."""

_RECENT = 8
"""Questions that are searched at the same time, more or less."""

_NOT_WORD = re.compile(r"[^\w ]")


class QueryBuilder:
    """Builds queries for one schema with fixed field weights; immutable."""

    def __init__(self, schema: tantivy.Schema, *, title_boost: float, section_boost: float) -> None:
        """Set weights of title and section against the body's 1.0; 0 is not searched."""
        self._schema = schema
        self._recent = lru_cache(maxsize=_RECENT)(self._text)
        self._fields = [
            (name, boost)
            for name, boost in ((BODY, 1.0), (TITLE, title_boost), (SECTION, section_boost))
            if boost > 0
        ]

    def text(self, text: str, languages: tuple[str, ...]) -> tantivy.Query | None:
        """Return the disjunction of a text's content terms; None without a term.

        A word is searched as each of these languages stems it: a document's words are stemmed by
        the rules of its own.

        Where it holds nothing but function words, they are searched. They would cost most of a
        search (a word of every document has the longest postings), and their scores only add noise.

        Those of the last few texts are at hand: a question is asked once for hits and once more for
        the scores of other chunks.
        """
        return self._recent(text, languages)

    def _text(self, text: str, languages: tuple[str, ...]) -> tantivy.Query | None:
        counts: Counter[str] = Counter()
        for language in languages:
            counts |= Counter(content_or_all(tokenise(text, language), language, language_of(text)))
        if not counts:
            return None
        terms = [
            (tantivy.Occur.Should, self._term(field, token, boost * n))
            for token, n in counts.most_common(MAX_QUERY_TERMS)
            for field, boost in self._fields
        ]
        return tantivy.Query.boolean_query(terms)

    def _term(self, field: str, token: str, boost: float) -> tantivy.Query:
        query = tantivy.Query.term_query(self._schema, field, token, "freq")
        return query if boost == 1.0 else tantivy.Query.boost_query(query, boost)

    def filters(self, filters: Filters) -> list[tantivy.Query]:
        """Return the conditions, each of which must hold."""
        conditions: list[tantivy.Query] = []
        for field, values in (
            (SECTION_NAME, filters.sections),
            (DOC_ID, filters.doc_ids),
            (TYPE, filters.types),
        ):
            if values:
                conditions.append(tantivy.Query.term_set_query(self._schema, field, list(values)))
        if filters.year_from is not None or filters.year_to is not None:
            conditions.append(
                tantivy.Query.range_query(
                    self._schema,
                    YEAR,
                    tantivy.FieldType.Integer,
                    lower_bound=filters.year_from,
                    upper_bound=filters.year_to,
                )
            )
        name = author_key(filters.author or "")
        if name:
            # As code points: tantivy's dialect gives meaning to more escaped signs than the usual
            # ones.
            pattern = _NOT_WORD.sub(lambda sign: f"\\x{{{ord(sign.group()):X}}}", name)
            conditions.append(tantivy.Query.regex_query(self._schema, AUTHOR, f"(?s).*{pattern}.*"))
        return conditions

    def chunks(self, chunk_ids: Sequence[int]) -> tantivy.Query:
        """Return a query for exactly these chunks, one term each.

        A term set would walk the whole dictionary of ids: 0.45 ms against 0.1 at 50,000 chunks.
        """
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, CHUNK_ID, chunk_id))
            for chunk_id in chunk_ids
        ]
        return tantivy.Query.boolean_query(terms)


def conjunction(
    scored: tantivy.Query, conditions: Sequence[tantivy.Query], *, required: bool = True
) -> tantivy.Query:
    """Return a query of all conditions, scored by `scored`, which may miss if not `required`."""
    if not conditions:
        return scored
    parts = [
        (tantivy.Occur.Must, tantivy.Query.const_score_query(condition, 0.0))
        for condition in conditions
    ]
    parts.append((tantivy.Occur.Must if required else tantivy.Occur.Should, scored))
    return tantivy.Query.boolean_query(parts)
