"""Write to the index: acknowledged means in the catalog and searchable."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from app.storage.catalog.changes import STAGED, Settling
from app.storage.catalog.database import Database
from app.storage.catalog.documents import SqliteCatalog
from app.storage.catalog.revisions import RevisionBatch, Stored, Written, store_links
from app.storage.catalog.rows import (
    LexicalDocument,
    add_change,
    author_keys,
    pack_strings,
    pack_vector,
    search_key,
)
from app.storage.catalog.schema import documents
from app.storage.catalog.state import record_page, refuse_superseded
from app.storage.catalog.texts import TextCodec
from app.storage.catalog.vectors import Builds, checked_rows, claim_fingerprint, store_vectors
from app.storage.files.durable import utc_now
from app.storage.files.originals import Originals
from app.storage.projector import Projector
from app.storage.removal import Remover

# Write batches of revisions: rows in one transaction, words in groups.


class TextWriter:
    """Implements `IndexWriter.write`, `store` and `settle`; thread-safe, serial."""

    def __init__(self, database: Database, projector: Projector, settling: Settling) -> None:
        self._database = database
        self._projector = projector
        self._settling = settling
        self._codecs = threading.local()

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        """Store a batch and wait until it is found by its words (see `IndexWriter.write`)."""
        with self._projector.writing:
            written = self._store(drafts, None)
            commits = [
                self._projector.commit_lexical(library)
                for library in {draft.library for draft in drafts}
            ]
        for commit in commits:
            commit.result()
        return written.results

    def store(self, drafts: Sequence[DocumentDraft], page: LedgerPage | None) -> list[WriteResult]:
        """Store a batch whose words follow within seconds (see `IndexWriter.store`)."""
        for library in {draft.library for draft in drafts}:
            self._projector.wait_for_room(library)
            self._projector.set_background(library, True)
        with self._projector.writing:
            return self._store(drafts, page).results

    def settle(self, library: Library) -> None:
        """Wait until everything stored is found by its words (see `IndexWriter.settle`)."""
        self._projector.set_background(library, False)
        self._projector.flush_lexical(library)
        self._projector.catch_up_lexical(library)

    def _store(self, drafts: Sequence[DocumentDraft], page: LedgerPage | None) -> Written:
        """Store rows and bring their words.

        A batch that replaces documents is found on return: the old revision is shown until the new
        one is found, and no other write may come between the two.
        """
        for draft in drafts:
            _check_spans(draft)
        for library in sorted({draft.library for draft in drafts}):
            if not self._projector.gathering(library):
                self._projector.catch_up_lexical(library)
        superseded: list[tuple[int, int]] = []
        try:
            with self._database.write("documents") as sql:
                refuse_superseded(sql, drafts)
                self._projector.log.save_into(sql)
                written = RevisionBatch(sql, self._database.dialect, self._codec().pack).write(
                    drafts
                )
                if page is not None:
                    record_page(sql, page)
                superseded = [
                    (item.doc, item.superseded)
                    for item in written.stored
                    if item.superseded is not None
                ]
                self._settling.begin(superseded)
            self._gather(written)
            if superseded:
                for library in written.last_seq:
                    self._projector.commit_lexical(library).result()
        finally:
            self._settling.end(superseded)
        for library, ids in written.removed.items():
            self._projector.hide(library, ids)
        return written

    def _gather(self, written: Written) -> None:
        for library, seq in written.last_seq.items():
            stored = [item for item in written.stored if item.draft.library is library]
            replaced = frozenset(item.doc for item in stored if item.superseded is not None)
            try:
                self._projector.gather_lexical(
                    library, list(_lexical_documents(stored)), replaced, seq
                )
            except BaseException as exc:
                self._projector.rollback_lexical(library, exc)
                raise

    def _codec(self) -> TextCodec:
        codec: TextCodec | None = getattr(self._codecs, "codec", None)
        if codec is None:
            codec = self._codecs.codec = TextCodec()
        return codec


def _lexical_documents(stored: Iterable[Stored]) -> Iterable[LexicalDocument]:
    for item in stored:
        draft = item.draft
        chunks = [
            (number, span.section, draft.text[span.start : span.end])
            for number, span in enumerate(draft.chunks, item.first_chunk_id)
        ]
        facts = item.doc, draft.doc_id, item.title, item.authors, item.year, draft.type
        yield LexicalDocument(*facts, chunks, item.language)


def _check_spans(draft: DocumentDraft) -> None:
    length = len(draft.text)
    for span in draft.chunks:
        if not 0 <= span.start < span.end <= length:
            raise InvalidInput(
                f"chunk {span.ordinal} of {draft.source_key!r} spans {span.start}..{span.end},"
                f" outside 0..{length} of its text"
            )


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
        self._database = database
        self._catalog = catalog
        self._projector = projector
        self._remover = remover
        self._originals = originals
        self._builds = builds
        self._texts = TextWriter(database, projector, settling)

    def current(self, library: Library, source_key: str) -> Document | None:
        return self._catalog.by_source_key(library, source_key)

    def source_revision(self, document: Document) -> str | None:
        """Return the source's edition of a live document.

        See `IndexWriter.source_revision`.
        """
        return self._catalog.source_revision(document)

    def store_original(self, content: bytes | Path) -> str:
        return self._originals.store(content)

    def original_path(self, sha256: str) -> Path:
        """Return where the original with this SHA-256 is kept."""
        return self._originals.path(sha256)

    def delete_unaccepted(self, shas: Collection[str]) -> None:
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
        self._projector.apply(library)

    # --- single documents

    def delete(self, library: Library, doc_id: str, grace_s: float = 0) -> DeleteResult:
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
