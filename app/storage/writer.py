"""Write to the index: acknowledged means in the catalog and searchable.

A deletion is hidden at once, purged when its grace is over, undone until then.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    bindparam,
    delete,
    select,
    update,
)

from app.core.errors import InvalidInput, NotFound, StorageError
from app.core.types import (
    Chunk,
    DeleteResult,
    Document,
    DocumentDraft,
    Fingerprint,
    FloatArray,
    Labels,
    LedgerPage,
    Library,
    LibraryCounts,
    Metadata,
    WriteResult,
)
from app.storage.catalog.answers import purge_quotes
from app.storage.catalog.changes import STAGED, Claim
from app.storage.catalog.database import Database
from app.storage.catalog.documents import Catalog, read_key
from app.storage.catalog.folders import delete_claims
from app.storage.catalog.labels import LabelWriter
from app.storage.catalog.ledger import delete_sources, record_page
from app.storage.catalog.page_words import delete_words, keep_words, words_of
from app.storage.catalog.revisions import RevisionBatch, Written
from app.storage.catalog.rows import (
    add_change,
    author_keys,
    count_document,
    delete_chunk_vectors,
    live_chunk_ids,
    pack_strings,
    pack_vector,
    repoint_duplicates,
    search_key,
)
from app.storage.catalog.schema import documents, meta, pieces, put_meta, revisions, rows_of
from app.storage.catalog.uploads import (
    ORIGINALS,
    accepted_at,
    awaited_originals,
    keep_out,
    record_unlinks,
    unfinished_before,
)
from app.storage.catalog.vectors import Builds, checked_rows, claim_fingerprint, store_vectors
from app.storage.files.durable import utc_now, utc_text
from app.storage.files.originals import Originals
from app.storage.projector import Projector

log = logging.getLogger(__name__)

CLEAR_BATCH = 500
"""Documents per transaction when a library is cleared."""

_LINKS_PAGE = 10_000
_LAST_CHARACTER = "\U0010ffff"
"""Sorts after any continuation of a prefix, in the order of code points, which is SQLite's."""

_LINKED = update(documents).where(documents.c.doc == bindparam("of"))
_LINKS_OF = "source_key doc filename links other_titles state revision".split()
_PURGED = "doc doc_id embedded source_key".split()
_DOCS: BindParameter[int] = bindparam("docs", expanding=True)
_GONE = documents.c.doc.in_(_DOCS) & (documents.c.state == "deleted")


class CatalogIndexWriter:
    """Writes and deletes documents and vectors; one per process, thread-safe, writes in turn."""

    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        projector: Projector,
        originals: Originals,
        builds: Builds,
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._projector = projector
        self._words = projector.words
        self._originals = originals
        self._builds = builds
        self.apply = projector.apply
        self.current = catalog.by_source_key
        self.source_revision, self.corrections = catalog.source_revision, catalog.corrections
        self.store_original, self.store_originals = originals.store, originals.store_all
        self.original_path = originals.path
        self.page_words = partial(words_of, database)
        self.keep_words = partial(keep_words, database)

    # --- documents

    def note_read(self, library: Library, edition: str) -> None:
        """Keep which edition of the parsers has read all kept bytes of a library."""
        with self._database.write("meta") as sql:
            put_meta(sql, read_key(library), edition)

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        """Make drafts live in one atomic batch, in order, and wait until their words are found.

        On return they are durable: acknowledged. A draft whose sha256 and source_revision equal the
        live revision's is `unchanged`.

        Raises:
            DiskFull: No space; the batch is not acknowledged.
            Conflict: A source key belongs to another document.
            Superseded: A document was deleted or replaced after its job was accepted.
        """
        if not drafts:
            return []
        with self._projector.writing():
            written = self._store(drafts, None, leave_out=False)
        for library in sorted({draft.library for draft in drafts}):
            self._words[library].await_found(written.claims.get(library))
        self._apply_kept(written)
        return written.results

    def store(
        self, drafts: Sequence[DocumentDraft], page: LedgerPage | None = None
    ) -> list[WriteResult]:
        """Make drafts live and record a ledger page, atomically; durable on return.

        Documents that were deleted or replaced after their job was accepted are left out.

        Words are gathered over batches and found within seconds, or on return when a draft replaces
        a document; `settle` waits for them. After a crash the next start makes them found. A call
        may wait while too many words wait.

        Raises:
            DiskFull: No space; the batch is not stored, or words of batches before it cannot be
                committed.
            Conflict: A source key belongs to another document.
            Superseded: The library was cleared after the job was accepted.
        """
        for library in {draft.library for draft in drafts}:
            self._words[library].wait_for_room()
            self._words[library].background = True
        with self._projector.writing():
            written = self._store(drafts, page, leave_out=True)
        replaced = any(result.status == "replaced" for result in written.results)
        for library, claim in written.claims.items():
            if replaced:
                self._words[library].await_found(claim)
                continue
            chunks = sum(len(draft.chunks) for draft in drafts if draft.library is library)
            self._words[library].gather(claim, chunks)
        self._apply_kept(written)
        return written.results

    def _apply_kept(self, written: Written) -> None:
        """Bring vectors that chunks have from the revision before into the projections."""
        for library in sorted(written.kept):
            try:
                self.apply(library)
            except StorageError:  # they are stored; the next call goes on
                log.exception("vectors of %s could not be applied yet", library.value)

    def flush(self, library: Library) -> None:
        """Wait until everything stored is durable in the index of words and found.

        Raises:
            DiskFull: No space; rows are safe, and their words follow with the next write.
        """
        try:
            self._words[library].catch_up()
        finally:
            self._words[library].background = False

    def accept_again(self, live: Document, job_id: str) -> bool:
        """Note that a job brought the bytes that are live: what was accepted before is kept out.

        Returns:
            Whether they are live still.
        """
        of = _named(live.library, live.doc_id, "live") & (documents.c.sha256 == live.sha256)
        with self._database.read() as sql:
            accepted = accepted_at(sql, job_id)
            waiting = sql.execute(unfinished_before(accepted)).first()
            held = sql.execute(select(documents.c.accepted).where(of)).scalar()
        if held is None or held >= accepted or waiting is None:
            return held is not None
        with self._projector.writing(), self._database.write("accept") as sql:
            return bool(sql.execute(update(documents).where(of).values(accepted=accepted)).rowcount)

    def _store(
        self, drafts: Sequence[DocumentDraft], page: LedgerPage | None, *, leave_out: bool
    ) -> Written:
        """Store rows.

        A batch that replaces documents is found on return: the old revision is shown until the new
        one is found, and no other write may come between the two.
        """
        for draft in drafts:
            _check_spans(draft)
        for library in sorted({draft.library for draft in drafts}):
            if not self._words[library].in_step:
                self._words[library].catch_up()
        with self._database.write("documents") as sql:
            self._projector.log.save_into(sql)
            batch = RevisionBatch(sql, self._database.dialect, leave_out=leave_out)
            written = batch.write(drafts)
            if page is not None:
                record_page(sql, page)
            for library in written.claims:
                written.claims[library] = self._projector.log.claim(sql, library)
        if any(result.status == "replaced" for result in written.results):
            for library in written.claims:
                self._words[library].replace()
        for library, gone in written.gone.items():
            self._projector.dense[library].hide(gone)
        return written

    def write_links(
        self,
        library: Library,
        prefix: str,
        links_of: Callable[[str], int],
        titles_of: Callable[[str, str], str],
        after: str = "",
    ) -> str | None:
        """Store link counts and other titles of documents whose source key begins with `prefix`.

        The most links ever counted stay, so that a part of a dump takes nothing from the whole. On
        return other titles find their document by words.

        Args:
            library: Whose documents.
            prefix: Of their source keys.
            links_of: Returns how many articles link to a file name.
            titles_of: Returns the other titles of a file name, one a line, given those of before.
            after: Begin behind this source key; one call does a page of them.

        Returns:
            The source key to go on after, None at the end.

        Raises:
            DiskFull: No space; pages before are kept.
        """
        key = documents.c.source_key
        some = select(*(documents.c[name] for name in _LINKS_OF)).where(
            documents.c.library == library.value,
            key > max(prefix, after),
            key < prefix + _LAST_CHARACTER,
        )
        rows = self._database.rows(some.order_by(key).limit(_LINKS_PAGE))
        more = [
            {"of": row.doc, "count": count}
            for row in rows
            if (count := links_of(row.filename)) > row.links
        ]
        called = [
            (row, titles)
            for row in rows
            if (titles := titles_of(row.filename, row.other_titles)) != row.other_titles
        ]
        if more:
            with self._database.write("links") as sql:
                sql.execute(_LINKED.values(links=bindparam("count")), more)
        if called:
            with self._projector.writing(), self._database.write("titles") as sql:
                for row, titles in called:
                    sql.execute(_LINKED.values(other_titles=titles), {"of": row.doc})
                    if row.state == "live":
                        add_change(sql, library, "correct", row.doc, row.revision, None)
                claim = self._projector.log.claim(sql, library)
            self._words[library].apply(claim)
        return rows[-1].source_key if len(rows) == _LINKS_PAGE else None

    # --- vectors

    def claim(self, library: Library, fingerprint: Fingerprint) -> None:
        """Declare what makes the next vectors, which sets it while a library has none.

        Raises:
            FingerprintMismatch: The library holds vectors made otherwise; the message names the
                cure.
        """
        with self._projector.writing(), self._database.write("claim") as sql:
            claim_fingerprint(sql, library, fingerprint)

    def pending_vectors(
        self,
        library: Library,
        limit: int,
        order: str = "id",
        doc_ids: Sequence[str] | None = None,
        build: int | None = None,
    ) -> list[Chunk]:
        """Return up to `limit` live chunks without a vector.

        Args:
            library: Whose chunks.
            limit: At most this many.
            order: `id`, `longest` or `linked`; a staged build is filled in the order of chunks.
            doc_ids: Only of these documents, found at once in a backlog of millions.
            build: Which build lacks the vector; None is the live one.

        Raises:
            InvalidInput: Unknown order.
            FingerprintMismatch: The build takes no vectors any more.
        """
        live = None if build is None else self._builds.of(library, "live")
        if build is not None and (live is None or live.number != build):
            return self._catalog.chunks_by_id(library, self._builds.pending(library, build, limit))
        sql = self._database.dialect.PENDING
        if order not in sql:
            raise InvalidInput(f"order {order!r} must be one of {', '.join(sql)}")
        if doc_ids is not None:
            sql = self._database.dialect.PENDING_OF
        named = () if doc_ids is None else (json.dumps(list(doc_ids)),)
        rows = self._database.raw(sql[order], (library.value, limit, *named))
        return self._catalog.chunks_by_id(library, [row[0] for row in rows])

    def write_vectors(
        self,
        library: Library,
        chunk_ids: Sequence[int],
        vectors: FloatArray,
        build: int | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """Store L2-normalised rows `[n, dim]` of live chunks durably, as float16.

        `apply` brings them into the indexes. `build` None is the live one.

        Raises:
            Busy: Another one writes, and it is not to be waited for.
            FingerprintMismatch: The rows do not fit the build, the library has none yet (see
                `claim`), or it was re-embedded.
            InvalidInput: Not one row per chunk, not finite, or not of norm 1.
        """
        rows = checked_rows(vectors, len(chunk_ids))
        self.write_packed_vectors(
            library,
            {chunk_id: pack_vector(row) for chunk_id, row in zip(chunk_ids, rows, strict=True)},
            build,
            wait=wait,
        )

    def write_packed_vectors(
        self,
        library: Library,
        packed: Mapping[int, bytes],
        build: int | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """Store float16 rows by chunk id as they are, for imports, which must not round twice.

        Raises:
            FingerprintMismatch: The rows do not fit the library's fingerprint.
        """
        if packed:
            with (
                self._projector.writing(wait=wait),
                self._database.write("vectors", wait=wait) as sql,
            ):
                self._projector.log.save_into(sql)
                store_vectors(
                    sql,
                    library,
                    packed,
                    build,
                    followed=bool(self._projector.log.kept_for(library, STAGED)),
                )

    def correct(self, library: Library, doc_id: str, metadata: Metadata) -> Document:
        """Replace the facts of a live document, for later revisions too.

        Raises:
            NotFound: No such document in this library.
        """
        before = self._catalog.document(library, doc_id)
        corrected = update(documents).where(_named(library, doc_id, "live"))
        corrected = corrected.values(
            title=metadata.title,
            authors=pack_strings(metadata.authors),
            author_keys=author_keys(metadata.authors),
            year=metadata.year,
            language=metadata.language,
            search_key=search_key(metadata.title, before.filename),
            corrected=1,
            updated_at=utc_now(),
        )
        with self._projector.writing(), self._database.write("correct") as sql:
            doc = sql.execute(corrected.returning(documents.c.doc)).scalar()
            if doc is None:
                raise NotFound(
                    f"no document {doc_id!r} in library {library.value!r}; it was deleted since"
                )
            add_change(sql, library, "correct", doc, before.revision, None)
            claim = self._projector.log.claim(sql, library)
        self._words[library].apply(claim)
        self._projector.apply(library)
        return self._catalog.document(library, doc_id)

    def label(self, library: Library, doc_id: str, given: Labels) -> Document:
        """Give a live document tags, own metadata and facts; nothing is indexed again.

        Raises:
            NotFound: No such document in this library.
            InvalidInput: A value is not of its key's kind, or there would be too many keys.
        """
        document = self._catalog.document(library, doc_id)
        with self._projector.writing(), self._database.write("labels") as sql:
            writer = LabelWriter(sql, self._database.dialect)
            writer.refuse_unfit(given)
            writer.give(library, doc_id, given)
        facts = Metadata(
            document.title, document.authors, document.year, document.arxiv_id, document.language
        )
        if (wanted := replace(facts, **given.facts)) != facts:
            return self.correct(library, doc_id, wanted)
        return self._catalog.document(library, doc_id)

    # --- deletion

    def delete(self, library: Library, doc_id: str, grace_s: float = 0) -> DeleteResult:
        """Hide a document at once; purge it now, or by `purge_due` after `grace_s` seconds.

        Raises:
            NotFound: No such document in this library.
        """
        self._catalog.document(library, doc_id)  # raises the NotFound that says where it is
        with self._projector.writing():
            doc, now = self._key(library, doc_id, "live"), grace_s <= 0
            hidden, claim = self._hide(library, [doc], grace_s)
            vectors, originals, quotes = self._purge(library, [doc]) if now else (0, 0, 0)
        self._words[library].apply(claim)
        self._projector.apply(library)
        return DeleteResult(doc_id, len(hidden), vectors, originals, quotes, now)

    def delete_all(self, library: Library) -> LibraryCounts:
        """Delete and purge every live document of a library; return what it held.

        Bulk sources count as never read: a run indexes their articles again.
        """
        before = self._catalog.counts(library)
        while True:
            with self._projector.writing():
                live = select(documents.c.doc).where(
                    documents.c.library == library.value, documents.c.state == "live"
                )
                docs = [row.doc for row in self._database.rows(live.limit(CLEAR_BATCH))]
                if not docs:
                    with self._database.write("remove") as sql:
                        keep_out(sql, library, None)
                        delete_sources(sql, library)
                    break
                _, claim = self._hide(library, docs, 0)
                self._purge(library, docs)
            self._words[library].apply(claim)
        self._projector.apply(library)
        return before

    def restore(self, library: Library, doc_id: str) -> Document:
        """Undo a deletion within its grace.

        Raises:
            NotFound: Not deleted, unknown, or purged.
        """
        with self._projector.writing():
            doc = self._key(library, doc_id, "deleted")
            with self._database.write("restore") as sql:
                hidden = (documents.c.doc == doc) & (documents.c.state == "deleted")
                shown = {"state": "live", "purge_at": None, "updated_at": utc_now()}
                row = _changed(sql, hidden, shown)
                if row is None:
                    raise NotFound(f"document {doc_id!r} has just been restored or purged")
                sha256, revision = row
                count_document(sql, doc, 1)
                add_change(sql, library, "restore", doc, revision, live_chunk_ids(sql, doc))
                repoint_duplicates(sql, library, {sha256})
                claim = self._projector.log.claim(sql, library)
        self._words[library].apply(claim)
        self._projector.apply(library)
        return self._catalog.document(library, doc_id)

    def purge_due(self) -> int:
        """Purge every deleted document whose grace is over; return how many."""
        # The library is not asked for: with it SQLite would read all documents of the library.
        due = select(documents.c.doc, documents.c.library).where(
            documents.c.state == "deleted", documents.c.purge_at <= utc_now()
        )
        done = 0
        for library in sorted({Library(row.library) for row in self._database.rows(due)}):
            with self._projector.writing():
                rows = self._database.rows(due)
                if docs := [row.doc for row in rows if row.library == library.value]:
                    self._purge(library, docs)
                    done += len(docs)
        return done

    def deleted_at(self, library: Library) -> str | None:
        """Return the time of the last deletion whose bytes files may still hold, if any."""
        return self._database.meta(_deleted_key(library))

    def mark_purged(self, library: Library, until: str) -> None:
        """Record that files hold no byte of deletions up to the time `until`."""
        with self._database.write("purge") as sql:
            sql.execute(
                delete(meta).where(meta.c.key == _deleted_key(library), meta.c.value <= until)
            )

    def delete_unaccepted(self, shas: Collection[str]) -> None:
        for sha256 in set(shas) - awaited_originals(self._database):
            self.delete_original(sha256)

    def delete_original(self, sha256: str) -> bool:
        """Remove an original that no document refers to; return whether it was removed."""
        with self._database.write("unlink") as sql:  # no document may take the bytes up meanwhile
            used = sql.execute(ORIGINALS.where(revisions.c.sha256 == sha256)).first()
            return used is None and self._originals.delete(sha256)

    def _key(self, library: Library, doc_id: str, state: str) -> int:
        of = _named(library, doc_id, state)
        rows = self._database.rows(select(documents.c.doc).where(of))
        if not rows:
            raise NotFound(f"no {state} document {doc_id!r} in library {library.value!r}")
        return int(rows[0].doc)

    def _hide(
        self, library: Library, docs: Sequence[int], grace_s: float
    ) -> tuple[list[int], Claim | None]:
        """Take documents out of the catalog's answers, durably; return their chunk ids.

        And what is claimed of the index of words, which the caller applies without a lock.
        """
        due = utc_text(datetime.now(UTC) + timedelta(seconds=grace_s))
        away = {"state": "deleted", "purge_at": due, "duplicate_of": None}
        hidden: list[int] = []
        with self._database.write("remove") as sql:
            self._projector.log.save_into(sql)
            keys = select(documents.c.source_key).where(documents.c.doc.in_(docs))
            keep_out(sql, library, sql.execute(keys).scalars().all())
            shas: set[str] = set()
            for doc in docs:
                live = (documents.c.doc == doc) & (documents.c.state == "live")
                row = _changed(sql, live, away)
                if row is None:
                    continue  # another process has just deleted it
                sha256, revision = row
                count_document(sql, doc, -1)
                ids = live_chunk_ids(sql, doc)
                add_change(sql, library, "remove", doc, revision, ids)
                hidden.extend(ids)
                shas.add(sha256)
            repoint_duplicates(sql, library, shas)
            claim = self._projector.log.claim(sql, library)
        self._projector.dense[library].hide(hidden)
        return hidden, claim

    def _purge(self, library: Library, docs: Sequence[int]) -> tuple[int, int, int]:
        """Remove hidden documents; return how many vectors, originals and quotes went."""
        quotes = vectors = 0
        gone = select(*(documents.c[name] for name in _PURGED)).where(_GONE)
        kept = ORIGINALS.where(revisions.c.doc.in_(_DOCS))
        self._database.finish_later()  # an answer that quotes them may be on its way
        with self._database.write("purge") as sql:
            rows = list(rows_of(sql, gone, "docs", docs))
            docs = [row.doc for row in rows]
            shas = {row.sha256 for row in rows_of(sql, kept, "docs", docs)}
            for doc, doc_id, embedded, _ in rows:
                quotes += purge_quotes(sql, library, doc_id)
                vectors += embedded
                delete_chunk_vectors(sql, doc)
            put_meta(sql, _deleted_key(library), utc_now())
            record_unlinks(sql, shas)
            delete_claims(sql, library, [source_key for _, _, _, source_key in rows])
            # Chunks and revisions go with their document (ON DELETE CASCADE).
            for some in pieces(docs):
                sql.execute(delete(documents).where(_GONE), {"docs": some})
            delete_words(sql, shas)
        for doc in docs:
            self._catalog.texts.delete(doc)
        # Another upload of the same bytes may wait for its turn.
        unneeded = shas - awaited_originals(self._database)
        return vectors, sum(self.delete_original(sha256) for sha256 in unneeded), quotes


def _named(library: Library, doc_id: str, state: str) -> ColumnElement[bool]:
    of = (documents.c.library == library.value) & (documents.c.doc_id == doc_id)
    return of & (documents.c.state == state)


def _changed(
    sql: Connection, which: ColumnElement[bool], values: Mapping[str, object]
) -> Row[str, int] | None:
    """Change a document; return its SHA-256 and revision, None where there is no such one."""
    changed = update(documents).where(which).values(values)
    return sql.execute(changed.returning(documents.c.sha256, documents.c.revision)).first()


def _deleted_key(library: Library) -> str:
    return f"deleted_since_purge/{library.value}"


def _check_spans(draft: DocumentDraft) -> None:
    length = len(draft.text)
    for span in draft.chunks:
        if not 0 <= span.start < span.end <= length:
            raise InvalidInput(
                f"chunk {span.ordinal} of {draft.source_key!r} spans {span.start}..{span.end},"
                f" outside 0..{length} of its text"
            )
