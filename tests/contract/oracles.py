"""What a search must find, computed the slow way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from datetime import date

from app.core.text import content_or_all, tokenise
from app.core.types import Condition, Filters, Passage, Value


def matches(passage: Passage, filters: Filters | None) -> bool:
    """Whether a passage fulfils every given condition."""
    if not filters:
        return True
    chunk, document = passage.chunk, passage.document
    return (
        (not filters.sections or chunk.section in filters.sections)
        and (not filters.doc_ids or chunk.doc_id in filters.doc_ids)
        and chunk.doc_id not in filters.exclude_doc_ids
        and (not filters.types or document.type in filters.types)
        and (
            filters.year_from is None
            or (document.year is not None and document.year >= filters.year_from)
        )
        and (
            filters.year_to is None
            or (document.year is not None and document.year <= filters.year_to)
        )
        and (
            not filters.author
            or any(filters.author.lower() in author.lower() for author in document.authors)
        )
        and (
            not filters.tags
            or any(tag.lower() in map(str.lower, document.tags) for tag in filters.tags)
        )
        and all(_holds(asked, document.metadata.get(asked.key)) for asked in filters.metadata)
    )


def _holds(asked: Condition, value: Value | None) -> bool:
    if value is None:
        return False
    if asked.values:
        return str(value).lower() in asked.values
    ordered = date.fromisoformat(value).toordinal() if isinstance(value, str) else value
    return (asked.low is None or asked.low <= ordered) and (
        asked.high is None or ordered <= asked.high
    )


def textbook_bm25(passages: Mapping[int, Passage], text: str) -> dict[int, float]:
    """Return the Okapi BM25 of every passage, by id; all are English, title and body are one field.

    Lucene's idf, k1 = 1.2, b = 0.75; Robertson and Zaragoza 2009.
    """
    bags = {i: Counter(tokenise(f"{p.document.title} {p.chunk.text}")) for i, p in passages.items()}
    n, mean = len(bags), sum(bag.total() for bag in bags.values()) / len(bags)
    scores = dict.fromkeys(bags, 0.0)
    for token in set(content_or_all(tokenise(text), "en", "en")):
        held = sum(token in bag for bag in bags.values())
        idf = math.log(1 + (n - held + 0.5) / (held + 0.5))
        for i, bag in bags.items():
            length = 0.25 + 0.75 * bag.total() / mean
            scores[i] += idf * bag[token] * 2.2 / (bag[token] + 1.2 * length)
    return scores
