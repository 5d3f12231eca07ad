"""Write batches of revisions: rows in one transaction, words in groups."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from app.core.errors import InvalidInput
from app.core.types import DocumentDraft, LedgerPage, Library, WriteResult
from app.index.catalog.database import Database
from app.index.catalog.facts import LexicalDocument
from app.index.catalog.jobs import refuse_superseded
from app.index.catalog.ledger import record_page
from app.index.catalog.revisions import RevisionBatch
from app.index.catalog.settling import Settling
from app.index.catalog.texts import TextCodec
from app.index.catalog.written import Stored, Written
from app.index.projector import Projector


class TextWriter:
    """Implements `IndexWriter.write`, `store` and `settle`; thread-safe, serial."""

    def __init__(self, database: Database, projector: Projector, settling: Settling) -> None:
        """Write to `database` and bring words to `projector`."""
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
