"""Deletion: hidden at once, purged when the grace is over, undone until then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import bindparam, delete, select, update

from app.core.errors import NotFound
from app.core.types import DeleteResult, Library, LibraryCounts
from app.storage.catalog.answers import purge_quotes
from app.storage.catalog.database import Database
from app.storage.catalog.documents import SqliteCatalog
from app.storage.catalog.rows import (
    add_change,
    count_document,
    delete_chunk_vectors,
    live_chunk_ids,
    repoint_duplicates,
)
from app.storage.catalog.schema import documents, meta, meta_value, pieces, put_meta, revisions
from app.storage.catalog.state import (
    ORIGINALS,
    awaited_originals,
    delete_claims,
    record_unlinks,
    supersede,
)
from app.storage.catalog.texts import TextCache
from app.storage.files.durable import utc_now
from app.storage.files.originals import Originals
from app.storage.projector import Projector

CLEAR_BATCH = 500
"""Documents per transaction when a library is cleared."""

_OF_LIBRARY = select(documents.c.doc).where(documents.c.library == bindparam("library"))
_KEY = _OF_LIBRARY.where(
    documents.c.doc_id == bindparam("doc_id"), documents.c.state == bindparam("state")
)
_USED = ORIGINALS.where(revisions.c.sha256 == bindparam("sha256"))
# The library is not asked for: with it SQLite would read all documents of the library.
_DUE = select(documents.c.doc, documents.c.library).where(
    documents.c.state == "deleted", documents.c.purge_at <= bindparam("now")
)
_OF = documents.c.doc == bindparam("of")
_SEEN = (documents.c.sha256, documents.c.revision)
_RESTORE = (
    update(documents)
    .where(_OF)
    .values(state="live", purge_at=None, updated_at=bindparam("now"))
    .returning(*_SEEN)
)
_HIDE = (
    update(documents)
    .where(_OF)
    .values(state="deleted", purge_at=bindparam("due"), duplicate_of=None)
    .returning(*_SEEN)
)
_NAMED = documents.c.doc.in_(bindparam("docs", expanding=True))
_KEYS = select(documents.c.source_key).where(_NAMED)
_PURGED = select(
    documents.c.doc, documents.c.doc_id, documents.c.embedded, documents.c.source_key
).where(_NAMED)
_KEPT = ORIGINALS.where(revisions.c.doc.in_(bindparam("docs", expanding=True)))
_DELETE = delete(documents).where(_NAMED)


@dataclass(frozen=True, slots=True)
class _Purged:
    vectors: int
    quotes: int
    originals: int


class Remover:
    """Removes documents from catalog, projections, originals and stored answers."""

    def __init__(
        self,
        database: Database,
        catalog: SqliteCatalog,
        projector: Projector,
        originals: Originals,
        texts: TextCache,
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._projector = projector
        self._originals = originals
        self._texts = texts

    def delete(self, library: Library, doc_id: str, grace_s: float) -> DeleteResult:
        """Hide a document at once; purge it after `grace_s` seconds.

        0 purges now; else `purge_due` does it.

        Raises:
            NotFound: No such document in this library.
        """
        self._catalog.document(library, doc_id)  # raises the NotFound that says where it is
        self._projector.flush_lexical(library)
        with self._projector.writing:
            doc = self._key(library, doc_id, "live")
            hidden = self._hide(library, [doc], grace_s)
            purged = self._purge(library, [doc]) if grace_s <= 0 else _Purged(0, 0, 0)
        self._projector.apply(library)
        return DeleteResult(
            doc_id, len(hidden), purged.vectors, purged.originals, purged.quotes, grace_s <= 0
        )

    def delete_all(self, library: Library) -> LibraryCounts:
        """Delete and purge every live document of a library; return what it held."""
        before = self._catalog.counts(library)
        self._projector.flush_lexical(library)
        while True:
            with self._projector.writing:
                docs = self._live(library, CLEAR_BATCH)
                if not docs:
                    with self._database.write("remove") as sql:
                        supersede(sql, library, None)
                    break
                self._hide(library, docs, 0)
                self._purge(library, docs)
        self._projector.apply(library)
        return before

    def restore(self, library: Library, doc_id: str) -> None:
        """Undo a deletion within its grace.

        Raises:
            NotFound: Not deleted, unknown, or purged.
        """
        self._projector.flush_lexical(library)
        with self._projector.writing:
            doc = self._key(library, doc_id, "deleted")
            with self._database.write("restore") as sql:
                sha256, revision = sql.execute(_RESTORE, {"of": doc, "now": utc_now()}).one()
                count_document(sql, doc, 1)
                add_change(sql, library, "restore", doc, revision, live_chunk_ids(sql, doc))
                repoint_duplicates(sql, library, {sha256})
            self._projector.catch_up_lexical(library)
        self._projector.apply(library)

    def purge_due(self) -> int:
        """Purge every deleted document whose grace is over; return how many."""
        done = 0
        for library in Library:
            with self._projector.writing:
                due = self._database.rows(_DUE, {"now": utc_now()})
                docs = [row.doc for row in due if row.library == library.value]
                if docs:
                    self._purge(library, docs)
                    done += len(docs)
        return done

    def deleted_at(self, library: Library) -> str | None:
        """Return the last deletion whose bytes files may still hold; None if none.

        The time of it.
        """
        with self._database.read() as sql:
            return meta_value(sql, _deleted_key(library))

    def mark_purged(self, library: Library, until: str) -> None:
        """Record that the projections' files were rebuilt after the time `until`.

        Later deletions still wait.
        """
        with self._database.write("purge") as sql:
            sql.execute(
                delete(meta).where(meta.c.key == _deleted_key(library), meta.c.value <= until)
            )

    def delete_unaccepted(self, shas: Collection[str]) -> None:
        for sha256 in set(shas) - awaited_originals(self._database):
            self.delete_original(sha256)

    def delete_original(self, sha256: str) -> int:
        """Remove an original that no revision refers to; return how many files went."""
        with self._projector.writing:
            used = self._database.rows(_USED, {"sha256": sha256})
            return 0 if used else int(self._originals.delete(sha256))

    def _key(self, library: Library, doc_id: str, state: str) -> int:
        rows = self._database.rows(
            _KEY, {"library": library.value, "doc_id": doc_id, "state": state}
        )
        if not rows:
            raise NotFound(f"no {state} document {doc_id!r} in library {library.value!r}")
        return int(rows[0].doc)

    def _live(self, library: Library, limit: int) -> list[int]:
        live = _OF_LIBRARY.where(documents.c.state == "live").limit(limit)
        return [row.doc for row in self._database.rows(live, {"library": library.value})]

    def _hide(self, library: Library, docs: Sequence[int], grace_s: float) -> list[int]:
        """Take documents out of every search, durably; return their chunk ids."""
        due = (
            (datetime.now(UTC) + timedelta(seconds=grace_s))
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
        hidden: list[int] = []
        with self._database.write("remove") as sql:
            self._projector.log.save_into(sql)
            supersede(sql, library, sql.execute(_KEYS, {"docs": docs}).scalars().all())
            shas: set[str] = set()
            for doc in docs:
                count_document(sql, doc, -1)
                sha256, revision = sql.execute(_HIDE, {"of": doc, "due": due}).one()
                ids = live_chunk_ids(sql, doc)
                add_change(sql, library, "remove", doc, revision, ids)
                hidden.extend(ids)
                shas.add(sha256)
            repoint_duplicates(sql, library, shas)
        self._projector.hide(library, hidden)
        self._projector.catch_up_lexical(library)
        return hidden

    def _purge(self, library: Library, docs: Sequence[int]) -> _Purged:
        """Remove hidden documents: rows, quotes in answers, and originals."""
        quotes = vectors = 0
        with self._database.write("purge") as sql:
            rows = [row for some in pieces(docs) for row in sql.execute(_PURGED, {"docs": some})]
            shas = {
                sha256
                for some in pieces(docs)
                for sha256 in sql.execute(_KEPT, {"docs": some}).scalars()
            }
            for doc, doc_id, embedded, _ in rows:
                quotes += purge_quotes(sql, library, doc_id)
                vectors += embedded
                delete_chunk_vectors(sql, doc)
            put_meta(sql, _deleted_key(library), utc_now())
            record_unlinks(sql, shas)
            delete_claims(sql, library, [source_key for _, _, _, source_key in rows])
            # Chunks and revisions go with their document (ON DELETE CASCADE).
            for some in pieces(docs):
                sql.execute(_DELETE, {"docs": some})
        for doc in docs:
            self._texts.delete(doc)
        unneeded = shas - awaited_originals(
            self._database
        )  # another upload of the same bytes may wait for its turn
        return _Purged(vectors, quotes, sum(self.delete_original(sha256) for sha256 in unneeded))


def _deleted_key(library: Library) -> str:
    return f"deleted_since_purge/{library.value}"
