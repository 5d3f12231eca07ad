"""Turn filters into conditions, and columns into the facts that filters ask."""

from __future__ import annotations

from app.core.types import Filters
from app.index.catalog.facts import DocumentFacts
from app.index.catalog.rows import author_key, pack_strings


def facts_from(
    doc: int, doc_id: str, kind: str, year: int | None, author_keys: str
) -> DocumentFacts:
    """Return a document's facts from its columns."""
    return DocumentFacts(
        doc, doc_id, kind, year, tuple(author_keys.split("\n")) if author_keys else ()
    )


def filter_condition(filters: Filters) -> tuple[str, tuple[object, ...]]:
    """Return filters as an SQL condition on chunk (c) and document (d), with values."""
    parts: list[str] = ["1"]
    values: list[object] = []
    for column, wanted in (
        ("c.section", filters.sections),
        ("d.doc_id", filters.doc_ids),
        ("d.type", filters.types),
    ):
        if wanted:
            parts.append(f"{column} IN (SELECT value FROM json_each(?))")  # noqa: S608
            values.append(pack_strings(wanted))
    if filters.year_from is not None:
        parts.append("d.year >= ?")
        values.append(filters.year_from)
    if filters.year_to is not None:
        parts.append("d.year <= ?")
        values.append(filters.year_to)
    if name := author_key(filters.author or ""):
        parts.append("instr(d.author_keys, ?)")
        values.append(name)
    return " AND ".join(parts), tuple(values)
