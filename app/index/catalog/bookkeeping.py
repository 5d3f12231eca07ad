"""Keep counters, duplicates and changes true in every catalog transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection

from app.core.types import DocumentDraft, Library
from app.index.catalog.rows import id_list, insert_rows, pack_ids, pack_strings
from app.index.catalog.schema import BUILD_SHIFT

INSERT_CHANGE = "INSERT INTO changes (library, kind, doc, revision, ids)"


def search_key(title: str, filename: str) -> str:
    """Return what `Catalog.documents` looks for a query in."""
    return f"{title}\n{filename}".casefold()


def retire_chunks(sql: Connection, doc: int) -> list[int]:
    """Remove vectors and codes of a live revision in every build; return chunk ids."""
    ids = [
        row[0]
        for row in sql.exec_driver_sql(
            "SELECT c.chunk_id FROM chunks c JOIN documents d ON d.doc = c.doc AND d.revision = c.revision WHERE d.doc = ?", (doc,)
        )
    ]
    sql.exec_driver_sql("DELETE FROM passage_codes WHERE chunk_id IN (SELECT value FROM json_each(?))", (id_list(ids),))
    for build in sql.exec_driver_sql(
        "SELECT b.build FROM builds b JOIN documents d ON d.library = b.library WHERE d.doc = ?", (doc,)
    ).scalars():
        sql.exec_driver_sql(
            f"DELETE FROM vectors WHERE key IN (SELECT (? << {BUILD_SHIFT}) | value FROM json_each(?))",  # noqa: S608
            (build, id_list(ids)),
        )
    return ids


def count_document(sql: Connection, doc: int, sign: int) -> None:
    """Add (1) or take (-1) a document as it stands to or from its library's counters."""
    library, kind, chunks, embedded, size = sql.exec_driver_sql(
        "SELECT library, type, chunks, embedded, bytes FROM documents WHERE doc = ?", (doc,)
    ).one()
    add_counts(sql, Library(library), sign, sign * chunks, sign * embedded, sign * size)
    add_type(sql, Library(library), kind, sign)


def count_inserted(sql: Connection, written: Sequence[DocumentDraft]) -> None:
    """Add freshly written documents to the counters."""
    for library in {draft.library for draft in written}:
        drafts = [draft for draft in written if draft.library is library]
        size = sum(len(draft.text.encode()) for draft in drafts)
        add_counts(sql, library, len(drafts), sum(len(draft.chunks) for draft in drafts), 0, size)
        for kind, n in Counter(draft.type for draft in drafts).items():
            add_type(sql, library, kind, n)


def add_counts(sql: Connection, library: Library, documents: int, chunks: int, embedded: int, size_bytes: int) -> None:
    """Add to a library's counters."""
    sql.exec_driver_sql(
        "INSERT INTO libraries (library, documents, chunks, embedded, bytes) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (library) DO UPDATE SET documents = documents + excluded.documents, chunks = chunks + excluded.chunks,"
        " embedded = embedded + excluded.embedded, bytes = bytes + excluded.bytes",
        (library.value, documents, chunks, embedded, size_bytes),
    )


def add_type(sql: Connection, library: Library, kind: str, documents: int) -> None:
    """Add to a library's counter of documents of one type."""
    sql.exec_driver_sql(
        "INSERT INTO type_counts (library, type, documents) VALUES (?, ?, ?)"
        " ON CONFLICT (library, type) DO UPDATE SET documents = documents + excluded.documents",
        (library.value, kind, documents),
    )


def add_change(sql: Connection, library: Library, kind: str, doc: int, revision: int, ids: Sequence[int] | None) -> int:
    """Queue a change for the projections and return its seq."""
    insert_rows(sql, INSERT_CHANGE, [(library.value, kind, doc, revision, pack_ids(ids) if ids else None)])
    return last_seq(sql)


def last_seq(sql: Connection) -> int:
    """Return the newest change of all libraries; 0 before the first."""
    return int(sql.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").scalar() or 0)


def repoint_duplicates(sql: Connection, library: Library, shas: set[str]) -> dict[str, str]:
    """Make each content's first live document the original, the others duplicates.

    Return the duplicates' originals.
    """
    rows = sql.exec_driver_sql(
        "SELECT sha256, doc, doc_id, duplicate_of FROM documents WHERE library = ? AND state = 'live'"
        " AND sha256 IN (SELECT value FROM json_each(?)) ORDER BY doc",
        (library.value, pack_strings(sorted(shas))),
    ).all()
    firsts: dict[str, str] = {}
    duplicates: dict[str, str] = {}
    for sha256, doc, doc_id, duplicate_of in rows:
        first = firsts.setdefault(sha256, doc_id)
        target = None if first == doc_id else first
        if target is not None:
            duplicates[doc_id] = target
        if target != duplicate_of:
            sql.exec_driver_sql("UPDATE documents SET duplicate_of = ? WHERE doc = ?", (target, doc))
    return duplicates
