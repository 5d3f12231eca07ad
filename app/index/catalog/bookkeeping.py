"""Keep counters, duplicates and changes true in every catalog transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from app.core.types import DocumentDraft, Library
from app.index.catalog.rows import pack_ids
from app.index.catalog.schema import (
    builds,
    changes,
    chunks,
    documents,
    libraries,
    passage_codes,
    type_counts,
    vectors,
)
from app.index.catalog.statements import OF_REVISION, add, key_of, pieces

_OF = documents.c.doc == bindparam("of")
_CHUNKS = select(chunks.c.chunk_id).join(documents, OF_REVISION).where(_OF)
_REMOVE_CODES = delete(passage_codes).where(passage_codes.c.chunk_id.in_(_CHUNKS))
_KEYS = (
    select(key_of(builds.c.build))
    .select_from(chunks)
    .join(documents, OF_REVISION)
    .join(builds, builds.c.library == documents.c.library)
)
_REMOVE_VECTORS = delete(vectors).where(vectors.c.key.in_(_KEYS.where(_OF)))
_COUNTED = select(
    documents.c.library,
    documents.c.type,
    documents.c.chunks,
    documents.c.embedded,
    documents.c.bytes,
).where(_OF)
_ADD_CHANGE = insert(changes)
_SAME_CONTENT = (
    select(documents.c.sha256, documents.c.doc, documents.c.doc_id, documents.c.duplicate_of)
    .where(
        documents.c.library == bindparam("of"),
        documents.c.state == "live",
        documents.c.sha256.in_(bindparam("shas", expanding=True)),
    )
    .order_by(documents.c.doc)
)
_REPOINT = update(documents).where(_OF).values(duplicate_of=bindparam("target"))


def search_key(title: str, filename: str) -> str:
    """Return what `Catalog.documents` looks for a query in."""
    return f"{title}\n{filename}".casefold()


def live_chunk_ids(sql: Connection, doc: int) -> list[int]:
    """Return the chunks of a document's live revision."""
    return list(sql.execute(_CHUNKS, {"of": doc}).scalars())


def delete_chunk_vectors(sql: Connection, doc: int) -> list[int]:
    """Remove vectors and codes of a live revision in every build; return chunk ids."""
    ids = live_chunk_ids(sql, doc)
    sql.execute(_REMOVE_CODES, {"of": doc})
    sql.execute(_REMOVE_VECTORS, {"of": doc})
    return ids


def count_document(sql: Connection, doc: int, sign: int) -> None:
    """Add (1) or take (-1) a document as it stands to or from its library's counters."""
    library, kind, chunks, embedded, size = sql.execute(_COUNTED, {"of": doc}).one()
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


def add_counts(
    sql: Connection, library: Library, documents: int, chunks: int, embedded: int, size_bytes: int
) -> None:
    """Add to a library's counters."""
    numbers = {"documents": documents, "chunks": chunks, "embedded": embedded, "bytes": size_bytes}
    add(sql, libraries, {"library": library.value, **numbers})


def add_type(sql: Connection, library: Library, kind: str, documents: int) -> None:
    """Add to a library's counter of documents of one type."""
    add(sql, type_counts, {"library": library.value, "type": kind, "documents": documents})


def add_change(
    sql: Connection, library: Library, kind: str, doc: int, revision: int, ids: Sequence[int] | None
) -> None:
    """Queue a change for the projections."""
    packed = pack_ids(ids) if ids else None
    values = {
        "library": library.value,
        "kind": kind,
        "doc": doc,
        "revision": revision,
        "ids": packed,
    }
    sql.execute(_ADD_CHANGE, values)


def repoint_duplicates(sql: Connection, library: Library, shas: set[str]) -> dict[str, str]:
    """Make each content's first live document the original, the others duplicates.

    Return the duplicates' originals.
    """
    rows = [
        row
        for some in pieces(sorted(shas))
        for row in sql.execute(_SAME_CONTENT, {"of": library.value, "shas": some}).all()
    ]
    firsts: dict[str, str] = {}
    duplicates: dict[str, str] = {}
    for sha256, doc, doc_id, duplicate_of in rows:
        first = firsts.setdefault(sha256, doc_id)
        target = None if first == doc_id else first
        if target is not None:
            duplicates[doc_id] = target
        if target != duplicate_of:
            sql.execute(_REPOINT, {"of": doc, "target": target})
    return duplicates
