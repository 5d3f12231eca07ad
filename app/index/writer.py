"""Write to the index: acknowledged means in the catalog and searchable."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from app.core.errors import InvalidInput, NotFound
from app.core.types import (
    Chunk,
    DeleteResult,
    Document,
    DocumentDraft,
    Fingerprint,
    FloatArray,
    LedgerPage,
    Library,
    LibraryCounts,
    Metadata,
    WriteResult,
)
from app.index.catalog.bookkeeping import add_change, search_key
from app.index.catalog.builds import Builds
from app.index.catalog.database import Database
from app.index.catalog.documents import SqliteCatalog
from app.index.catalog.rows import author_keys, pack_strings, pack_vector
from app.index.catalog.schema import BUILD_SHIFT
from app.index.catalog.settling import Settling
from app.index.catalog.vectors import claim_fingerprint, store_vectors
from app.index.files.durable import utc_now
from app.index.files.originals import Originals
from app.index.projector import Projector
from app.index.removal import Remover
from app.index.text_writes import TextWriter

_PENDING_ORDER = {
    "id": "ix_documents_pending",
    "longest": "ix_documents_longest",
    "linked": "ix_documents_linked",
}
_LINKS_PAGE = 10_000
_LAST_CHARACTER = "\U0010ffff"
"""Sorts after any continuation of a prefix, in the order of code points, which is SQLite's."""
_ORDER_BY = {"id": "d.doc", "longest": "d.characters DESC, d.doc", "linked": "d.links DESC, d.doc"}


class CatalogIndexWriter:
    """The IndexWriter port; one per process, thread-safe, writes are serialised."""

    def __init__(
        self,
        database: Database,
        catalog: SqliteCatalog,
        projector: Projector,
        remover: Remover,
        originals: Originals,
        settling: Settling,
        builds: Builds,
    ) -> None:
        """Write to `database` and keep `projector`'s projections in step."""
        self._database = database
        self._catalog = catalog
        self._projector = projector
        self._remover = remover
        self._originals = originals
        self._builds = builds
        self._texts = TextWriter(database, projector, settling)

    def current(self, library: Library, source_key: str) -> Document | None:
        """Return the live document under a source key."""
        return self._catalog.by_source_key(library, source_key)

    def source_revision(self, document: Document) -> str | None:
        """Return the source's edition of a live document.

        See `IndexWriter.source_revision`.
        """
        return self._catalog.source_revision(document)

    def store_original(self, content: bytes | Path) -> str:
        """Keep the bytes as `<sha256>.bin`, durably, and return the SHA-256.

        Raises:
            DiskFull: No space; nothing half-written stays.
        """
        return self._originals.store(content)

    def original_path(self, sha256: str) -> Path:
        """Return where the original with this SHA-256 is kept."""
        return self._originals.path(sha256)

    def discard_unaccepted(self, shas: Collection[str]) -> None:
        """Remove originals of a refused upload, unless a revision or a job needs them."""
        self._remover.discard_unaccepted(shas)

    def discard_original(self, sha256: str) -> None:
        """Remove an original that no document refers to; otherwise nothing happens."""
        self._remover.discard_original(sha256)

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        """Make drafts live in one atomic batch, in order.

        On return they are durable and found by lexical search: acknowledged.

        Raises:
            DiskFull: No space; the batch is not acknowledged.
            Conflict: A source key belongs to another document.
        """
        return self._texts.write(drafts) if drafts else []

    def store(self, drafts: Sequence[DocumentDraft], page: LedgerPage | None = None) -> list[WriteResult]:
        """Store drafts and a ledger page atomically; their words follow.

        See `IndexWriter.store`.

        Raises:
            DiskFull: No space; the batch is not stored, or words of batches before it cannot be committed.
            Conflict: A source key belongs to another document.
        """
        return self._texts.store(drafts, page)

    def settle(self, library: Library) -> None:
        """Wait until everything stored is durable in the lexical index and found.

        Raises:
            DiskFull: No space; rows are safe, and their words follow with the next write.
        """
        self._texts.settle(library)

    # --- vectors

    def claim(self, library: Library, fingerprint: Fingerprint) -> None:
        """Declare what makes the next vectors; a library's first claim sets it.

        While the library has no vectors.

        Raises:
            FingerprintMismatch: The library holds vectors made otherwise; the message names the cure.
        """
        with self._projector.writing, self._database.write("claim") as sql:
            claim_fingerprint(sql, library, fingerprint)

    def pending_vectors(
        self, library: Library, limit: int, order: str = "id", doc_ids: Sequence[str] | None = None, build: int | None = None
    ) -> list[Chunk]:
        """Return up to `limit` live chunks without a vector, in an order of documents.

        The order is `id`, `longest` or `linked`; chunks as they stand.

        Args:
            library: Whose chunks.
            limit: At most this many.
            order: Which documents first.
            doc_ids: Only of these documents; None takes all. A backlog of millions does not slow this down.
            build: Without a vector in this build; None is the live one. A staged build is filled in the order of chunks.

        Raises:
            InvalidInput: Unknown order.
            FingerprintMismatch: The build takes no vectors any more.
        """
        if build is not None and build != self._builds.live_number(library):
            return self._catalog.chunks_by_id(library, self._builds.pending(library, build, limit))
        if order not in _ORDER_BY:
            raise InvalidInput(f"order {order!r} must be one of {', '.join(_ORDER_BY)}")
        if doc_ids is None:
            documents = f"documents d INDEXED BY {_PENDING_ORDER[order]}"
        else:
            documents = "json_each(?3) k CROSS JOIN documents d ON d.library = ?1 AND d.doc_id = k.value"
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                f"SELECT c.chunk_id FROM {documents}"  # noqa: S608
                " CROSS JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision"
                " LEFT JOIN vectors v"
                f" ON v.key = (SELECT live_build << {BUILD_SHIFT} FROM libraries WHERE library = ?1) | c.chunk_id"
                " WHERE d.library = ?1 AND d.state = 'live' AND d.embedded < d.chunks AND v.key IS NULL"
                f" ORDER BY {_ORDER_BY[order]}, c.ordinal LIMIT ?2",
                (library.value, limit) if doc_ids is None else (library.value, limit, json.dumps(list(doc_ids))),
            ).fetchall()
        return self._catalog.chunks_by_id(library, [row[0] for row in rows])

    def write_links(self, library: Library, prefix: str, links_of: Callable[[str], int], after: str = "") -> str | None:
        """Store link counts of documents under `prefix`, one page after `after`.

        Returns:
            The source key to go on after, None at the end.

        Raises:
            DiskFull: No space; pages before are kept.
        """
        with self._database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT source_key, doc, filename, links FROM documents WHERE library = ? AND source_key > ? AND source_key < ?"
                " ORDER BY source_key LIMIT ?",
                (library.value, max(prefix, after), prefix + _LAST_CHARACTER, _LINKS_PAGE),
            ).fetchall()
        counted = ((links_of(filename), doc, links) for _, doc, filename, links in rows)
        if more := [(count, doc) for count, doc, links in counted if count > links]:
            with self._database.write("links") as sql:
                sql.exec_driver_sql("UPDATE documents SET links = ? WHERE doc = ?", more)
        return rows[-1][0] if len(rows) == _LINKS_PAGE else None

    def write_vectors(self, library: Library, chunk_ids: Sequence[int], vectors: FloatArray, build: int | None = None) -> None:
        """Store L2-normalised rows `[n, dim]` durably and queue them for dense search.

        They are stored as float16. Deleted and superseded chunks are left out.

        Raises:
            FingerprintMismatch: The rows do not fit the build, the library has none yet (see `claim`), or it was re-embedded.
            InvalidInput: Not one row per chunk, not finite, or not of norm 1.
        """
        rows = np.asarray(vectors, dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(chunk_ids):
            raise InvalidInput(f"{len(chunk_ids)} chunks need as many rows; got an array of shape {rows.shape}")
        if len(rows) == 0:
            return
        if not np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-2):  # NaN fails too
            raise InvalidInput("vectors must be finite and of L2 norm 1; normalise them with app.core.vectors.l2_normalise")
        self.write_packed_vectors(
            library, {chunk_id: pack_vector(row) for chunk_id, row in zip(chunk_ids, rows, strict=True)}, build
        )

    def write_packed_vectors(self, library: Library, packed: Mapping[int, bytes], build: int | None = None) -> None:
        """Store float16 rows by chunk id as they are, for imports.

        Imports must not round twice.

        Raises:
            FingerprintMismatch: The rows do not fit the library's fingerprint.
        """
        if packed:
            with self._projector.writing, self._database.write("vectors") as sql:
                self._projector.log.save_into(sql)
                store_vectors(sql, library, packed, build, followed=self._projector.log.holds(library))

    def apply(self, library: Library) -> None:
        """Bring every projection of the library up to the last change."""
        self._projector.apply(library)

    # --- single documents

    def delete(self, library: Library, doc_id: str, grace_s: float = 0) -> DeleteResult:
        """Hide at once; purge when the grace (seconds) is over.

        Raises:
            NotFound: No such document in this library.
        """
        return self._remover.delete(library, doc_id, grace_s)

    def restore(self, library: Library, doc_id: str) -> Document:
        """Undo a deletion within its grace.

        Raises:
            NotFound: No such document, or it is purged.
        """
        self._remover.restore(library, doc_id)
        return self._catalog.document(library, doc_id)

    def clear(self, library: Library) -> LibraryCounts:
        """Delete every document of a library; return what was removed."""
        return self._remover.clear(library)

    def correct(self, library: Library, doc_id: str, metadata: Metadata) -> Document:
        """Replace title, authors and year of a live document, for later revisions too.

        Raises:
            NotFound: No such document in this library.
        """
        before = self._catalog.document(library, doc_id)
        self._projector.flush_lexical(library)
        with self._projector.writing:
            with self._database.write("correct") as sql:
                doc = sql.exec_driver_sql(
                    "UPDATE documents SET title = ?, authors = ?, author_keys = ?, year = ?, search_key = ?, corrected = 1,"
                    " updated_at = ? WHERE library = ? AND doc_id = ? AND state = 'live' RETURNING doc",
                    (
                        metadata.title,
                        pack_strings(metadata.authors),
                        author_keys(metadata.authors),
                        metadata.year,
                        search_key(metadata.title, before.filename),
                        utc_now(),
                        library.value,
                        doc_id,
                    ),
                ).scalar()
                if doc is None:
                    raise NotFound(f"no document {doc_id!r} in library {library.value!r}; it was deleted since")
                add_change(sql, library, "correct", doc, before.revision, None)
            self._projector.catch_up_lexical(library)
        self._projector.apply(library)
        return self._catalog.document(library, doc_id)
