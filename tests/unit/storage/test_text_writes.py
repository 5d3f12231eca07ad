"""Batches of a bulk run: rows at once, words gathered over batches and committed together."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.core.errors import DiskFull, IndexDamaged
from app.core.types import LedgerEntry, LedgerPage, Library, Metadata
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words import writer as word_queue
from app.storage.words.tantivy import NICE, TantivyIndex
from tests.fakes.embedders import HashEmbedder
from tests.unit.storage.drafts import DIMENSION, FINGERPRINT, make_draft

PAPERS = Library.PAPERS
LIMIT_S = 30


def found(store: IndexStore, query: str) -> set[str]:
    hits = store.lexical.search(PAPERS, query, 50)
    return {
        p.document.source_key
        for p in store.catalog.passages(PAPERS, [hit.chunk_id for hit in hits]).values()
    }


def frequencies(store: IndexStore, *words: str) -> tuple[int, dict[str, int]]:
    return store.lexical.document_frequencies(PAPERS, list(words))


def entries(*articles: str) -> LedgerPage:
    return LedgerPage(
        PAPERS, "wiki", [LedgerEntry(article, "1", "indexed") for article in articles]
    )


def eventually(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + LIMIT_S
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


class Commits:
    """Counts tantivy's commits; the first may be held back or fail."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None, *, held: bool = False
    ) -> None:
        self.count = 0
        self.begun, self.go_on = threading.Event(), threading.Event()
        commit = TantivyIndex.commit

        def counted(index: TantivyIndex) -> None:
            self.count += 1
            if self.count == 1:
                self.begun.set()
                assert not held or self.go_on.wait(LIMIT_S)
                if error is not None:
                    raise error
            commit(index)

        monkeypatch.setattr(TantivyIndex, "commit", counted)


@pytest.mark.sqlite_file  # one server alone gathers words; several commit each batch
def test_words_of_batches_are_committed_together(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = Commits(monkeypatch)
    for letter, word in (("a", "alpha"), ("b", "beta"), ("c", "gamma")):
        results = store.writer.store([make_draft(f"{letter}.txt", word, chunks=1)], entries(letter))
        assert [result.status for result in results] == ["indexed"]
    assert (
        store.catalog.counts(PAPERS).documents,
        store.ledger.summary(PAPERS, "wiki").indexed,
    ) == (3, 3)
    assert (commits.count, found(store, "alpha")) == (0, set())
    store.writer.flush(PAPERS)
    assert (commits.count, frequencies(store, "alpha", "beta", "gamma")) == (
        1,
        (3, {"alpha": 1, "beta": 1, "gamma": 1}),
    )


def test_a_full_group_is_committed_without_being_asked(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_queue, "GROUP_CHUNKS", 2)
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    assert eventually(lambda: found(store, "alpha beta") == {"a.txt", "b.txt"})


def test_a_group_does_not_wait_for_long(store: IndexStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_queue, "GROUP_S", 0.05)
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    assert eventually(lambda: found(store, "alpha") == {"a.txt"})
    store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    assert eventually(lambda: found(store, "beta") == {"b.txt"})


def test_rows_of_batches_are_written_while_a_group_is_committed(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_queue, "GROUP_CHUNKS", 1)
    commits = Commits(monkeypatch, held=True)
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    assert commits.begun.wait(LIMIT_S)
    store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    assert store.catalog.counts(PAPERS).documents == 2
    commits.go_on.set()
    store.writer.flush(PAPERS)
    assert found(store, "alpha beta") == {"a.txt", "b.txt"}


@pytest.mark.sqlite_file  # one server alone gathers words; several commit each batch
def test_whoever_brings_too_many_words_waits_without_the_write_lock(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_queue, "GROUP_CHUNKS", 1)
    monkeypatch.setattr(word_queue, "WAITING_CHUNKS", 0)
    commits = Commits(monkeypatch, held=True)
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    assert commits.begun.wait(LIMIT_S)
    later = threading.Thread(
        target=store.writer.store, args=([make_draft("b.txt", "beta", chunks=1)],)
    )
    later.start()
    later.join(0.1)
    assert later.is_alive()
    with store.projector.writing():
        pass
    assert store.catalog.counts(PAPERS).documents == 1
    commits.go_on.set()
    later.join(LIMIT_S)
    assert store.catalog.counts(PAPERS).documents == 2


def test_a_deletion_waits_for_a_group_without_the_write_lock(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_draft("old.txt", "omega", chunks=1)
    store.writer.write([old])
    commits = Commits(monkeypatch, held=True)
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    deletion = threading.Thread(target=store.writer.delete, args=(PAPERS, old.doc_id))
    deletion.start()
    assert commits.begun.wait(LIMIT_S)
    with store.projector.writing():
        pass
    commits.go_on.set()
    deletion.join(LIMIT_S)
    assert (found(store, "omega"), found(store, "alpha")) == (set(), {"a.txt"})


@pytest.mark.parametrize("then", ["settle", "store", "write", "delete"])
def test_words_whose_commit_failed_are_found_after_what_comes_next(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    old = make_draft("old.txt", "omega", chunks=1)
    store.writer.write([old])
    monkeypatch.setattr(word_queue, "GROUP_CHUNKS", 1)
    commits = Commits(monkeypatch, DiskFull("no space"))
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    assert eventually(lambda: not store.projector.words[PAPERS].in_step)
    assert commits.count == 1
    if then == "settle":
        store.writer.flush(PAPERS)
    elif then == "store":
        store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    elif then == "write":
        store.writer.write([make_draft("b.txt", "beta", chunks=1)])
    else:
        store.writer.delete(PAPERS, old.doc_id)
    assert found(store, "alpha") == {"a.txt"}
    assert frequencies(store, "alpha")[1] == {"alpha": 1}


@pytest.mark.sqlite_file  # one server alone gathers words; several commit each batch
def test_words_put_behind_a_failure_are_not_committed_without_those_before(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = Commits(monkeypatch, DiskFull("no space"), held=True)
    monkeypatch.setattr(word_queue, "GROUP_CHUNKS", 1)
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    assert commits.begun.wait(LIMIT_S)
    store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    mark = store.projector.log.mark(PAPERS, "lexical")
    commits.go_on.set()
    assert eventually(lambda: not store.projector.words[PAPERS].in_step)
    assert (store.projector.log.mark(PAPERS, "lexical"), found(store, "beta")) == (mark, set())
    store.writer.flush(PAPERS)
    assert frequencies(store, "alpha", "beta") == (2, {"alpha": 1, "beta": 1})


def test_a_write_that_cannot_be_committed_is_not_acknowledged(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    Commits(monkeypatch, DiskFull("no space"))
    with pytest.raises(DiskFull):
        store.writer.write([make_draft("a.txt", "alpha", chunks=1)])
    assert store.writer.write([make_draft("a.txt", "alpha", chunks=1)])[0].status == "unchanged"
    assert found(store, "alpha") == {"a.txt"}


def test_a_replaced_text_is_shown_until_the_words_of_the_new_one_are_committed(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.catalog.documents.LINGER_S", 0.0)
    store.writer.write([make_draft("a.txt", "omega", chunks=1)])
    (old,) = store.loader.live_chunk_ids(PAPERS)
    commits = Commits(monkeypatch, held=True)
    replaced = threading.Thread(
        target=store.writer.write, args=([make_draft("a.txt", "alpha", chunks=1)],)
    )
    replaced.start()
    assert commits.begun.wait(LIMIT_S)
    assert store.catalog.passages(PAPERS, [old])[old].chunk.text == "omega"
    commits.go_on.set()
    replaced.join(LIMIT_S)
    assert store.catalog.passages(PAPERS, [old]) == {}
    assert found(store, "alpha") == {"a.txt"}


def test_words_whose_commit_failed_are_found_though_nothing_comes_next(
    options: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.vectors.supervisor.RETRY_S", 0.01)
    monkeypatch.setattr("app.storage.vectors.supervisor.QUIET_S", 0.01)
    with IndexStore(options) as store:
        Commits(monkeypatch, DiskFull("no space"))
        with pytest.raises(DiskFull):
            store.writer.write([make_draft("a.txt", "alpha", chunks=1)])
        assert eventually(lambda: found(store, "alpha") == {"a.txt"})


def test_a_check_applies_what_a_failed_write_left_and_finds_no_fault(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    Commits(monkeypatch, DiskFull("no space"))
    with pytest.raises(DiskFull):
        store.writer.write([make_draft("a.txt", "alpha", chunks=1)])
    assert store.fsck.run().faults == ()
    assert found(store, "alpha") == {"a.txt"}


def test_a_disk_that_stays_full_ends_settling(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFull("no space")

    monkeypatch.setattr(TantivyIndex, "commit", full)
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    with pytest.raises(DiskFull):
        store.writer.flush(PAPERS)
    monkeypatch.undo()
    store.writer.flush(PAPERS)
    assert found(store, "alpha") == {"a.txt"}


def test_a_write_of_a_stored_document_waits_for_its_words(store: IndexStore) -> None:
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    assert store.writer.write([make_draft("a.txt", "alpha", chunks=1)])[0].status == "unchanged"
    assert found(store, "alpha") == {"a.txt"}


def test_a_replacement_is_found_on_return(store: IndexStore) -> None:
    store.writer.store(
        [make_draft("a.txt", "alpha", chunks=1), make_draft("b.txt", "beta", chunks=1)]
    )
    results = store.writer.store([make_draft("a.txt", "gamma", chunks=1)])
    assert [result.status for result in results] == ["replaced"]
    assert [found(store, word) for word in ("alpha", "beta", "gamma")] == [
        set(),
        {"b.txt"},
        {"a.txt"},
    ]


def test_whatever_else_writes_sees_gathered_words_first(store: IndexStore) -> None:
    first = make_draft("a.txt", "alpha", chunks=1)
    store.writer.store([first])
    store.writer.delete(PAPERS, first.doc_id)
    assert found(store, "alpha") == set()
    second = make_draft("b.txt", "beta", chunks=1)
    store.writer.store([second])
    store.writer.correct(PAPERS, second.doc_id, Metadata("Zeppelin", (), None))
    assert found(store, "zeppelin") == {"b.txt"}
    store.writer.store([make_draft("c.txt", "gamma", chunks=1)])
    store.purger.run()
    assert frequencies(store, "beta", "gamma") == (2, {"beta": 1, "gamma": 1})
    store.writer.store([make_draft("d.txt", "delta", chunks=1)])
    store.rebuild()
    store.writer.flush(PAPERS)
    assert frequencies(store, "beta", "gamma", "delta") == (3, {"beta": 1, "gamma": 1, "delta": 1})
    store.writer.store([make_draft("e.txt", "epsilon", chunks=1)])
    assert store.fsck.run().faults == ()
    assert frequencies(store, "epsilon")[1] == {"epsilon": 1}


@pytest.mark.sqlite_file  # one server alone gathers words; several commit each batch
def test_an_index_is_compared_with_the_words_of_the_group_that_is_under_way(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, rebuilt = store.projector.words[PAPERS], list[int]()
    monkeypatch.setattr(words, "rebuild", rebuilt.append)
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    words.compare(old=False)
    assert rebuilt == []
    assert found(store, "alpha") == {"a.txt"}


@pytest.mark.sqlite_file  # one server alone gathers words; several commit each batch
def test_vectors_that_come_meanwhile_do_not_break_a_group_up(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = HashEmbedder(DIMENSION)
    store.writer.write([make_draft("a.txt", "alpha", chunks=1)])
    commits = Commits(monkeypatch)
    store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    store.writer.claim(PAPERS, FINGERPRINT)
    chunks = store.writer.pending_vectors(PAPERS, 10)
    store.writer.write_vectors(
        PAPERS,
        [chunk.chunk_id for chunk in chunks],
        embedder.embed_passages([c.text for c in chunks]),
    )
    store.writer.apply(PAPERS)
    assert (commits.count, store.vectors.count(PAPERS)) == (0, 2)
    store.writer.flush(PAPERS)
    assert (commits.count, found(store, "beta")) == (1, {"b.txt"})


def test_words_that_never_came_are_replayed_before_those_that_follow(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    with monkeypatch.context() as patch:
        patch.setattr(
            "app.storage.words.writer.LexicalWriter.gather", lambda *_: None
        )  # the process was interrupted behind the rows
        store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    store.writer.store([make_draft("c.txt", "gamma", chunks=1)])
    store.writer.flush(PAPERS)
    assert frequencies(store, "alpha", "beta", "gamma") == (3, {"alpha": 1, "beta": 1, "gamma": 1})


def niced() -> int:
    """Count the threads of this process that come after others."""
    found = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            found += os.getpriority(os.PRIO_PROCESS, int(task.name)) >= NICE
    return found


@pytest.mark.skipif(
    sys.platform != "linux", reason="threads have a priority of their own on Linux only"
)
def test_words_of_a_bulk_run_take_their_time_and_those_of_an_upload_do_not(
    store: IndexStore,
) -> None:
    before = niced()
    store.writer.write([make_draft("a.txt", "alpha", chunks=1)])
    assert niced() == before
    store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    store.writer.flush(PAPERS)
    assert niced() > before + 1
    store.writer.write([make_draft("c.txt", "gamma", chunks=1)])
    assert eventually(lambda: niced() <= before + 1), "all but the one that starts tantivy's"
    assert found(store, "alpha beta gamma") == {"a.txt", "b.txt", "c.txt"}


def test_a_failed_read_drops_no_words(store: IndexStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.writer.write([make_draft("a.txt", "alpha", chunks=1)])
    store.writer.store([make_draft("b.txt", "beta", chunks=1)])

    class Torn:
        def searcher(self) -> object:
            raise ValueError("an index file cannot be read")

    index = store.projector.words[PAPERS]._index
    with monkeypatch.context() as patch:
        patch.setattr(index, "_index", Torn())
        with pytest.raises(IndexDamaged):
            store.lexical.search(PAPERS, "alpha", 5)
    store.writer.flush(PAPERS)
    assert found(store, "beta") == {"b.txt"}


def test_gathered_words_are_found_after_closing(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    with IndexStore(options, vector_store="off") as store:
        assert found(store, "alpha") == {"a.txt"}
        assert store.projector.log.mark(PAPERS, "lexical") == store.projector.log.last()


def test_words_whose_commit_failed_are_found_after_a_restart(
    options: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFull("no space")

    with monkeypatch.context() as patch, IndexStore(options, vector_store="off") as store:
        patch.setattr(TantivyIndex, "commit", full)
        store.writer.store([make_draft("a.txt", "alpha", chunks=1)])
    with IndexStore(options, vector_store="off") as store:
        assert found(store, "alpha") == {"a.txt"}


def test_rows_that_fail_leave_neither_words_nor_entries(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFull("no space")

    store.writer.store([make_draft("b.txt", "beta", chunks=1)])
    with monkeypatch.context() as patch:
        patch.setattr("app.storage.writer.record_page", full)
        with pytest.raises(DiskFull):
            store.writer.store([make_draft("a.txt", "alpha", chunks=1)], entries("a"))
    assert (
        store.ledger.summary(PAPERS, "wiki").indexed,
        store.catalog.counts(PAPERS).documents,
    ) == (0, 1)
    store.writer.flush(PAPERS)
    assert (found(store, "alpha"), found(store, "beta")) == (set(), {"b.txt"})
