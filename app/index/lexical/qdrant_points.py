"""Turn chunks into points of words, and what is asked of them into filters of Qdrant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from qdrant_client import models

from app.core.languages import DEFAULT
from app.core.text import tokenise
from app.core.types import Filters
from app.index.catalog.facts import LexicalDocument
from app.index.catalog.rows import author_key
from app.index.lexical.weights import BODY, SECTION, TITLE, chunk_vector

WORDS = "words"
"""The name of a point's vector, and how the names of these collections begin."""

LANGUAGE = "language"
"""The payload by whose rules a chunk's words are stemmed."""

FIELDS = {
    "doc": models.PayloadSchemaType.INTEGER,
    "year": models.PayloadSchemaType.INTEGER,
    **dict.fromkeys(
        ("doc_id", "type", "section", LANGUAGE, BODY, TITLE), models.PayloadSchemaType.KEYWORD
    ),
}
"""Payload that filters name; the tokens of body and title count and find single words."""

_NO_SECTION = "body"
"""The section name of text without headings; it says nothing, so it is not searched as words."""


def chunk_points(document: LexicalDocument) -> Iterator[models.PointStruct]:
    """Yield one point a chunk, in order."""
    language = document.language or DEFAULT
    title = tokenise(document.title, language)
    authors = [author_key(name) for name in document.authors]
    for chunk_id, section, text in document.chunks:
        tokens = {BODY: tokenise(text, language), TITLE: title}
        if section != _NO_SECTION:
            tokens[SECTION] = tokenise(section, language)
        vector = chunk_vector(tokens)
        payload = {
            "doc": document.doc,
            "doc_id": document.doc_id,
            "type": document.type,
            "section": section,
            LANGUAGE: language,
            "authors": authors,
            "year": document.year,
            BODY: sorted(set(tokens[BODY])),
            TITLE: sorted(set(title)),
        }
        yield models.PointStruct(id=chunk_id, vector={WORDS: sparse(vector)}, payload=payload)


def sparse(weights: Mapping[int, float]) -> models.SparseVector:
    """Return weights by dimension as the engine takes them."""
    return models.SparseVector(indices=list(weights), values=list(weights.values()))


def holds(field: str, values: Sequence[str]) -> models.Filter:
    """Return a filter for points whose field has one of these values."""
    return models.Filter(must=held_in(field, values))


def held_in(field: str, values: Sequence[str]) -> list[models.Condition]:
    """Return the condition that a field has one of these values, as a list."""
    return [models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))]


def of_ids(chunk_ids: Iterable[int]) -> models.Filter:
    """Return a filter for these points."""
    return models.Filter(must=[models.HasIdCondition(has_id=list(chunk_ids))])


def of_documents(docs: set[int], kept: Sequence[int]) -> models.Filter:
    """Return a filter for the chunks of some documents, except those that are kept."""
    these = models.FieldCondition(key="doc", match=models.MatchAny(any=sorted(docs)))
    spared = [models.HasIdCondition(has_id=list(kept))] if kept else None
    return models.Filter(must=[these], must_not=spared)


def conditions(filters: Filters | None) -> models.Filter | None:
    """Return what the payload has to meet, the author aside; None where everything does."""
    if not filters:
        return None
    must: list[models.Condition] = []
    for field, values in (
        ("section", filters.sections),
        ("doc_id", filters.doc_ids),
        ("type", filters.types),
    ):
        if values:
            must += held_in(field, values)
    if filters.year_from is not None or filters.year_to is not None:
        between = models.Range(gte=filters.year_from, lte=filters.year_to)
        must.append(models.FieldCondition(key="year", range=between))
    return models.Filter(must=must) if must else None
