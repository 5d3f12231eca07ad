"""Keep how many links lead to each document, for the order of embedding."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import bindparam, select, update

from app.core.types import Library
from app.index.catalog.database import Database
from app.index.catalog.schema import documents

_LINKS_PAGE = 10_000
_LAST_CHARACTER = "\U0010ffff"
"""Sorts after any continuation of a prefix, in the order of code points, which is SQLite's."""
_LINKED = (
    update(documents).where(documents.c.doc == bindparam("of")).values(links=bindparam("count"))
)


def store_links(
    database: Database,
    library: Library,
    prefix: str,
    links_of: Callable[[str], int],
    after: str = "",
) -> str | None:
    """Store link counts of documents under `prefix`, one page after `after`.

    Args:
        database: Holds the documents.
        library: Whose documents.
        prefix: Of source keys.
        links_of: Returns the count for a file name.
        after: The source key that ended the page before.

    Returns:
        The source key to go on after, None at the end.

    Raises:
        DiskFull: No space; pages before are kept.
    """
    key = documents.c.source_key
    page = (
        select(key, documents.c.doc, documents.c.filename, documents.c.links)
        .where(
            documents.c.library == library.value,
            key > max(prefix, after),
            key < prefix + _LAST_CHARACTER,
        )
        .order_by(key)
        .limit(_LINKS_PAGE)
    )
    rows = database.rows(page)
    counted = ((links_of(filename), doc, links) for _, doc, filename, links in rows)
    if more := [{"of": doc, "count": count} for count, doc, links in counted if count > links]:
        with database.write("links") as sql:
            sql.execute(_LINKED, more)
    return rows[-1][0] if len(rows) == _LINKS_PAGE else None
