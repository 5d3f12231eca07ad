"""Write to the index: acknowledged means in the catalog and searchable."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from sqlalchemy import update

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
from app.index.catalog.changes import STAGED
from app.index.catalog.database import Database
from app.index.catalog.documents import SqliteCatalog
from app.index.catalog.links import store_links
from app.index.catalog.rows import author_keys, pack_strings, pack_vector
from app.index.catalog.schema import documents
from app.index.catalog.settling import Settling
from app.index.catalog.vectors import checked_rows, claim_fingerprint, store_vectors
from app.index.files.durable import utc_now
from app.index.files.originals import Originals
from app.index.projector import Projector
from app.index.removal import Remover
from app.index.text_writes import TextWriter


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

    def delete_unaccepted(self, shas: Collection[str]) -> None:
        """Remove originals of a refused upload, unless a revision or a job needs them."""
        self._remover.delete_unaccepted(shas)

    def delete_original(self, sha256: str) -> None:
        """Remove an original that no document refers to; otherwise nothing happens."""
        self._remover.delete_original(sha256)

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        """Make drafts live in one atomic batch, in order.

        On return they are durable and found by lexical search: acknowledged.

        Raises:
            DiskFull: No space; the batch is not acknowledged.
            Conflict: A source key belongs to another document.
        """
        return self._texts.write(drafts) if drafts else []

    def store(
        self, drafts: Sequence[DocumentDraft], page: LedgerPage | None = None
    ) -> list[WriteResult]:
        """Store drafts and a ledger page atomically; their words follow.

        See `IndexWriter.store`.

        Raises:
            DiskFull: No space; the batch is not stored, or words of batches before it cannot be
                committed.
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
            FingerprintMismatch: The library holds vectors made otherwise; the message names the
                cure.
        """
        with self._projector.writing, self._database.write("claim") as sql:
            claim_fingerprint(sql, library, fingerprint)

    def pending_vectors(
        self,
        library: Library,
        limit: int,
        order: str = "id",
        doc_ids: Sequence[str] | None = None,
        build: int | None = None,
    ) -> list[Chunk]:
        """Return up to `limit` live chunks without a vector, in an order of documents.

        The order is `id`, `longest` or `linked`; chunks as they stand.

        Args:
            library: Whose chunks.
            limit: At most this many.
            order: Which documents first.
            doc_ids: Only of these documents; None takes all. A backlog of millions does not slow
                this down.
            build: Without a vector in this build; None is the live one. A staged build is filled in
                the order of chunks.

        Raises:
            InvalidInput: Unknown order.
            FingerprintMismatch: The build takes no vectors any more.
        """
        if build is not None and build != self._builds.live_number(library):
            return self._catalog.chunks_by_id(library, self._builds.pending(library, build, limit))
        sql = self._database.dialect.PENDING
        if order not in sql:
            raise InvalidInput(f"order {order!r} must be one of {', '.join(sql)}")
        if doc_ids is not None:
            sql = self._database.dialect.PENDING_OF
        named = () if doc_ids is None else (json.dumps(list(doc_ids)),)
        with self._database.read_raw() as cursor:
            rows = cursor.execute(sql[order], (library.value, limit, *named)).fetchall()
        return self._catalog.chunks_by_id(library, [row[0] for row in rows])

    def write_links(
        self, library: Library, prefix: str, links_of: Callable[[str], int], after: str = ""
    ) -> str | None:
        """Store link counts of documents under `prefix`, one page after `after`.

        Returns:
            The source key to go on after, None at the end.

        Raises:
            DiskFull: No space; pages before are kept.
        """
        return store_links(self._database, library, prefix, links_of, after)

    def write_vectors(
        self,
        library: Library,
        chunk_ids: Sequence[int],
        vectors: FloatArray,
        build: int | None = None,
    ) -> None:
        """Store L2-normalised rows `[n, dim]` durably and queue them for dense search.

        They are stored as float16. Deleted and superseded chunks are left out.

        Raises:
            FingerprintMismatch: The rows do not fit the build, the library has none yet (see
                `claim`), or it was re-embedded.
            InvalidInput: Not one row per chunk, not finite, or not of norm 1.
        """
        rows = checked_rows(vectors, len(chunk_ids))
        self.write_packed_vectors(
            library,
            {chunk_id: pack_vector(row) for chunk_id, row in zip(chunk_ids, rows, strict=True)},
            build,
        )

    def write_packed_vectors(
        self, library: Library, packed: Mapping[int, bytes], build: int | None = None
    ) -> None:
        """Store float16 rows by chunk id as they are, for imports.

        Imports must not round twice.

        Raises:
            FingerprintMismatch: The rows do not fit the library's fingerprint.
        """
        if packed:
            with self._projector.writing, self._database.write("vectors") as sql:
                self._projector.log.save_into(sql)
                store_vectors(
                    sql, library, packed, build, followed=self._projector.log.holds(library, STAGED)
                )

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

    def delete_all(self, library: Library) -> LibraryCounts:
        """Delete every document of a library; return what was removed."""
        return self._remover.delete_all(library)

    def correct(self, library: Library, doc_id: str, metadata: Metadata) -> Document:
        """Replace the facts of a live document, for later revisions too.

        Raises:
            NotFound: No such document in this library.
        """
        before = self._catalog.document(library, doc_id)
        corrected = (
            update(documents)
            .where(
                documents.c.library == library.value,
                documents.c.doc_id == doc_id,
                documents.c.state == "live",
            )
            .values(
                title=metadata.title,
                authors=pack_strings(metadata.authors),
                author_keys=author_keys(metadata.authors),
                year=metadata.year,
                language=metadata.language,
                search_key=search_key(metadata.title, before.filename),
                corrected=1,
                updated_at=utc_now(),
            )
        )
        self._projector.flush_lexical(library)
        with self._projector.writing:
            with self._database.write("correct") as sql:
                doc = sql.execute(corrected.returning(documents.c.doc)).scalar()
                if doc is None:
                    raise NotFound(
                        f"no document {doc_id!r} in library {library.value!r}; it was deleted since"
                    )
                add_change(sql, library, "correct", doc, before.revision, None)
            self._projector.catch_up_lexical(library)
        self._projector.apply(library)
        return self._catalog.document(library, doc_id)
