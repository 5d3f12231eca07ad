"""Define tantivy's schema and analyzer, equal to `app.core.text.tokenise`.

A property test compares them.
"""

from __future__ import annotations

import tantivy

from app.core.text import MAX_TOKEN_BYTES

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
    """Return the schema: positions for the body only, frequencies for scores.

    Phrases may be asked of the body.
    """
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
    """Return the analyzer: split, drop tokens over 40 bytes, lower-case, stem.

    Split at non-alphanumerics; Snowball English.
    """
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(
            tantivy.Filter.remove_long(MAX_TOKEN_BYTES + 1)
        )  # tantivy keeps what is shorter than its limit
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )
