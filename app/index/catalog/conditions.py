"""Turn filters into conditions, and columns into the facts that filters ask."""

from __future__ import annotations

from app.core.types import Filters
from app.index.catalog.dialect import SqlDialect
from app.index.catalog.facts import DocumentFacts
from app.index.catalog.rows import author_key, pack_strings


def facts_from(
    doc: int, doc_id: str, kind: str, year: int | None, author_keys: str
) -> DocumentFacts:
    """Return a document's facts from its columns."""
    return DocumentFacts(
        doc, doc_id, kind, year, tuple(author_keys.split("\n")) if author_keys else ()
    )


def filter_condition(dialect: SqlDialect, filters: Filters) -> tuple[str, tuple[object, ...]]:
    """Return filters as an SQL condition on chunk (c) and document (d), with values."""
    author = author_key(filters.author or "")
    asked: dict[str, object] = {
        name: pack_strings(wanted)
        for name, wanted in (
            ("sections", filters.sections),
            ("doc_ids", filters.doc_ids),
            ("types", filters.types),
        )
        if wanted
    }
    years = {"year_from": filters.year_from, "year_to": filters.year_to}
    asked |= {name: year for name, year in years.items() if year is not None}
    if author:
        asked["author"] = author
    return " AND ".join(["TRUE", *(dialect.FILTERS[name] for name in asked)]), tuple(asked.values())
