"""Select live documents and their revisions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, select

from app.core.errors import NotFound
from app.core.types import Document, Library
from app.index.catalog.rows import DOCUMENTS, document_from
from app.index.catalog.schema import documents, revisions

_BY_ID = select(documents.c.doc, *DOCUMENTS.selected_columns).where(
    documents.c.library == bindparam("of"),
    documents.c.doc_id == bindparam("wanted"),
    documents.c.state == "live",
)


def live(library: Library, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return a query of live documents, of their columns or of given ones."""
    query = DOCUMENTS.with_only_columns(*columns) if columns else DOCUMENTS
    return query.where(documents.c.library == library.value, documents.c.state == "live")


def live_row(sql: Connection, library: Library, doc_id: str) -> tuple[int, Document]:
    """Return a live document with its key."""
    for place in (library, *(other for other in Library if other is not library)):
        row = sql.execute(_BY_ID, {"of": place.value, "wanted": doc_id}).first()
        if row is not None and place is library:
            return row[0], document_from(row[1:])
        if row is not None:
            raise NotFound(
                f"no document {doc_id!r} in library {library.value!r}; library {place.value!r} has"
                " it"
            )
    raise NotFound(f"no document {doc_id!r} in library {library.value!r}; list its documents first")


def of_revision(
    sql: Connection, document: Document, key: tuple[int, int], *columns: ColumnElement[Any]
) -> Row[*tuple[Any, ...]]:
    """Return columns of a revision, or raise NotFound."""
    row = sql.execute(
        select(*columns).where(revisions.c.doc == key[0], revisions.c.revision == key[1])
    ).first()
    if row is None:
        raise NotFound(
            f"document {document.doc_id!r} has no revision {key[1]!r}; the live one is"
            f" {document.revision}"
        )
    return row
