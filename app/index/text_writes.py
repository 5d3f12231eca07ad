"""Batches of revisions: rows in one transaction, then words, which are indexed while the rows of the next batch are written."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

from app.core.errors import InvalidInput
from app.core.types import DocumentDraft, LedgerPage, Library, WriteResult
from app.index.database import Database
from app.index.ledger import record_page
from app.index.projector import Projector
from app.index.revisions import RevisionBatch, Stored, Written
from app.index.settling import Settling
from app.index.tantivy import LexicalDocument
from app.index.texts import TextCodec


class TextWriter:
    """What `IndexWriter.write` and `begin` do; thread-safe, batches are serialised."""

    def __init__(self, database: Database, projector: Projector, settling: Settling) -> None:
        """Write to `database` and queue words with `projector`."""
        self._database = database
        self._projector = projector
        self._settling = settling
        self._codecs = threading.local()

    def begin(self, drafts: Sequence[DocumentDraft], page: LedgerPage | None = None) -> Future[list[WriteResult]]:
        """Store a batch and begin to make it searchable (see `IndexWriter.begin`).

        A batch that replaces documents is searchable on return: the old revision is shown until the new one is found, and no other
        write may come between the two.

        Raises:
            DiskFull: No space; the batch is not acknowledged, and if its rows were stored its words follow with the next write.
            Conflict: A source key belongs to another document.
        """
        for draft in drafts:
            _check_spans(draft)
        libraries = sorted({draft.library for draft in drafts})
        with self._projector.writing:
            idle = [library for library in libraries if not self._projector.committing_lexical(library)]
            for library in idle:
                self._projector.catch_up_lexical(library)
            superseded: list[tuple[int, int]] = []
            try:
                with self._database.write("documents") as sql:
                    self._projector.log.save_into(sql)
                    written = RevisionBatch(sql, self._codec().pack).write(drafts)
                    if page is not None:
                        record_page(sql, page)
                    superseded = [(item.doc, item.superseded) for item in written.stored if item.superseded is not None]
                    self._settling.begin(superseded)
                    self._queue(written, idle)  # inside the transaction: words that cannot be queued leave no rows
                searchable = self._commit(written, [library for library in libraries if library not in idle])
                if superseded:
                    for commit in searchable:
                        commit.result()
            except BaseException:
                for library in libraries:
                    self._projector.roll_back_lexical(library)
                raise
            finally:
                self._settling.end(superseded)
            for library, ids in written.removed.items():
                self._projector.hide(library, ids)
        return _when_all(searchable, written.results)

    def _queue(self, written: Written, libraries: Sequence[Library]) -> None:
        """Hand words to tantivy's threads."""
        for item in written.stored:
            if item.draft.library in libraries:
                self._projector.queue_lexical(item.draft.library, _lexical_document(item), fresh=item.superseded is None)

    def _commit(self, written: Written, busy: Sequence[Library]) -> list[Future[None]]:
        """Begin a commit in each library of the batch; in `busy` ones when the batch before is committed."""
        commits = dict(written.last_seq)
        for library in busy:
            if self._projector.settle_lexical(library):
                self._queue(written, [library])
            else:  # the batch before is not in the index: both come from the catalog
                self._projector.catch_up_lexical(library)
                commits.pop(library, None)
        return [self._projector.commit_lexical_later(library, seq) for library, seq in commits.items()]

    def _codec(self) -> TextCodec:
        codec: TextCodec | None = getattr(self._codecs, "codec", None)
        if codec is None:
            codec = self._codecs.codec = TextCodec()
        return codec


def _when_all(parts: Sequence[Future[None]], results: list[WriteResult]) -> Future[list[WriteResult]]:
    """Return a future that is done when all parts are, with the first of their errors."""
    whole: Future[list[WriteResult]] = Future()
    waiting = len(parts)
    lock = threading.Lock()

    def one_done(part: Future[None]) -> None:
        nonlocal waiting
        with lock:
            waiting -= 1
            if whole.done():
                return
            if (error := part.exception()) is not None:
                whole.set_exception(error)
            elif waiting == 0:
                whole.set_result(results)

    if not parts:
        whole.set_result(results)
    for part in parts:
        part.add_done_callback(one_done)
    return whole


def _lexical_document(item: Stored) -> LexicalDocument:
    draft = item.draft
    chunks = [(item.first_chunk_id + i, span.section, draft.text[span.start : span.end]) for i, span in enumerate(draft.chunks)]
    return LexicalDocument(item.doc, draft.doc_id, item.title, item.authors, item.year, draft.type, chunks)


def _check_spans(draft: DocumentDraft) -> None:
    length = len(draft.text)
    for span in draft.chunks:
        if not 0 <= span.start < span.end <= length:
            raise InvalidInput(
                f"chunk {span.ordinal} of {draft.source_key!r} spans {span.start}..{span.end}, outside 0..{length} of its text"
            )
