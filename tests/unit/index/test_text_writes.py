"""Batches one behind the other: the words of one are indexed while the rows of the next are written."""

from __future__ import annotations

import threading

import pytest

from app.core.errors import DiskFull
from app.core.types import LedgerEntry, LedgerPage, Library
from app.index.revisions import RevisionBatch
from app.index.store import IndexStore
from tests.unit.index.drafts import make_draft

PAPERS = Library.PAPERS
LIMIT_S = 30


def found(store: IndexStore, query: str) -> set[str]:
    hits = store.lexical.search(PAPERS, query, 50)
    return {p.document.source_key for p in store.catalog.passages(PAPERS, [hit.chunk_id for hit in hits]).values()}


def entries(*articles: str) -> LedgerPage:
    return LedgerPage(PAPERS, "wiki", [LedgerEntry(article, "1", "indexed") for article in articles])


class HeldCommit:
    """Holds the first lexical commit back until the rows of a later batch are written, then lets it succeed or fail."""

    def __init__(self, store: IndexStore, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
        self._store, self._error = store, error
        self._commit, self._write = store.projector.commit_lexical, RevisionBatch.write
        self._rows, self.commits, self.batches = threading.Event(), 0, 0
        monkeypatch.setattr(store.projector, "commit_lexical", self.commit)
        held = self

        def write(batch: RevisionBatch, drafts: object) -> object:
            written = held._write(batch, drafts)  # type: ignore[arg-type]
            held.batches += 1
            if held.batches > 1:
                held._rows.set()
            return written

        monkeypatch.setattr(RevisionBatch, "write", write)

    def commit(self, library: Library, seq: int) -> None:
        self.commits += 1
        if self.commits == 1:
            assert self._rows.wait(LIMIT_S), "the rows of the next batch were not written meanwhile"
            if self._error is not None:
                raise self._error
        self._commit(library, seq)


def test_rows_of_a_batch_are_written_while_the_one_before_is_committed(store: IndexStore, monkeypatch: pytest.MonkeyPatch) -> None:
    HeldCommit(store, monkeypatch)
    first = store.writer.begin([make_draft("a.txt", "alpha", chunks=1)], entries("a"))
    second = store.writer.begin([make_draft("b.txt", "beta", chunks=1)], entries("b"))
    assert [result.status for future in (first, second) for result in future.result(LIMIT_S)] == ["indexed", "indexed"]
    assert (found(store, "alpha"), found(store, "beta")) == ({"a.txt"}, {"b.txt"})
    assert store.ledger.summary(PAPERS, "wiki").indexed == 2


def test_a_batch_whose_commit_failed_is_found_after_the_next(store: IndexStore, monkeypatch: pytest.MonkeyPatch) -> None:
    HeldCommit(store, monkeypatch, DiskFull("no space"))
    first = store.writer.begin([make_draft("a.txt", "alpha", chunks=1)])
    second = store.writer.begin([make_draft("b.txt", "beta", chunks=1)])
    with pytest.raises(DiskFull):
        first.result(LIMIT_S)
    second.result(LIMIT_S)
    assert (found(store, "alpha"), found(store, "beta")) == ({"a.txt"}, {"b.txt"})
    assert store.lexical.document_frequencies(PAPERS, ["alpha", "beta"]) == (2, {"alpha": 1, "beta": 1})


def test_another_write_waits_for_a_commit_under_way(store: IndexStore, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = make_draft("a.txt", "alpha", chunks=1)
    store.writer.write([draft])
    HeldCommit(store, monkeypatch)
    first = store.writer.begin([make_draft("b.txt", "beta", chunks=1)])
    store.writer.begin([make_draft("c.txt", "gamma", chunks=1)])
    store.writer.delete(PAPERS, draft.doc_id)
    assert first.done()
    assert [found(store, word) for word in ("alpha", "beta", "gamma")] == [set(), {"b.txt"}, {"c.txt"}]


def test_rows_that_fail_leave_neither_words_nor_entries(store: IndexStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise DiskFull("no space")

    monkeypatch.setattr("app.index.text_writes.record_page", full)
    with pytest.raises(DiskFull):
        store.writer.begin([make_draft("a.txt", "alpha", chunks=1)], entries("a"))
    monkeypatch.undo()
    assert (store.ledger.summary(PAPERS, "wiki").indexed, store.catalog.counts(PAPERS).documents) == (0, 0)
    store.writer.write([make_draft("b.txt", "beta", chunks=1)])
    assert (found(store, "alpha"), found(store, "beta")) == (set(), {"b.txt"})
