import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from sqlalchemy import select

from app.core.cancel import CancelToken
from app.core.errors import Cancelled, Conflict
from app.core.types import Article, DocumentDraft, LedgerPage, Library, WriteResult
from app.ingest import bulk
from app.ingest.bulk import BulkIndexer, BulkTask, RunNotes
from app.ingest.options import IngestOptions
from app.storage.catalog.ledger import BulkLedger
from app.storage.catalog.schema import documents
from scripts.generate_production_corpus import SyntheticEncyclopedia, SyntheticOptions
from tests.stores import OpenWriter

TASK = BulkTask(Library.PUBLIC, "synthetic", IngestOptions())
SHAPE = SyntheticOptions(articles=1300, vocabulary=500, mean_words=30)


class Crash(Exception):
    """Stands for the end of the process."""


class CrashingWriter(OpenWriter):
    """Dies before or after its n-th write."""

    def __init__(self, crash_at: int, *, after: bool) -> None:
        super().__init__()
        self.crash_at, self.after, self.writes = crash_at, after, 0

    def store(
        self, drafts: Sequence[DocumentDraft], page: LedgerPage | None = None
    ) -> list[WriteResult]:
        self.writes += 1
        if self.writes == self.crash_at and not self.after:
            raise Crash
        results = super().store(drafts, page)
        if self.writes == self.crash_at:
            raise Crash
        return results


def state(writer: OpenWriter) -> set[tuple[str, str, int]]:
    return {
        (document.source_key, document.sha256, document.chunks)
        for document in writer.documents(Library.PUBLIC)
    }


def recorded() -> tuple[OpenWriter, BulkLedger]:
    """A writer and the ledger that its batches are accounted for in."""
    writer = OpenWriter()
    return writer, writer.ledger


def articles(options: SyntheticOptions = SHAPE) -> Iterator[Article]:
    return iter(SyntheticEncyclopedia(options))


def test_every_article_is_accounted_for() -> None:
    writer, ledger = recorded()
    extra = [
        Article("900001", "1", "Talk:X", "wikitext", "text", namespace=1),
        Article("900002", "1", "Nothing", "wikitext", "{{only|a template}}"),
        Article("900003", "1", "Huge", "text", "x" * (TASK.options.max_characters + 1)),
        Article("900004", "1", "Page", "html", "<html><body><p>From a ZIM.</p></body></html>"),
        Article("900005", "1", "Plain", "text", "Clean text."),
    ]
    summary = BulkIndexer(writer, ledger).run(TASK, [*articles(), *extra])
    assert summary.articles == 1305
    assert dict(summary.skipped) == {"namespace": 1, "empty": 1, "too_large": 1}
    assert summary.indexed == len(state(writer))
    assert summary.redirects > 50


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("crash_at", [1, 2, 3])
def test_a_run_that_was_killed_resumes_to_the_same_set(crash_at: int, after: bool) -> None:
    whole, accounted = recorded()
    expected = BulkIndexer(whole, accounted).run(TASK, articles())
    writer = CrashingWriter(crash_at, after=after)
    ledger = writer.ledger
    with pytest.raises(Crash):
        BulkIndexer(writer, ledger).run(TASK, articles())
    assert ledger.summary().indexed <= len(state(writer))
    assert BulkIndexer(writer, ledger).run(TASK, articles()) == expected
    assert state(writer) == state(whole)


def test_documents_know_how_many_articles_link_to_them_also_after_a_resumed_run() -> None:
    linking: dict[str, set[str]] = {}
    for article in articles():
        for target in (
            re.findall(r"\[\[([^|\]]+)", article.source)
            if article.redirect_to is None
            else [article.redirect_to]
        ):
            linking.setdefault(target[:1].upper() + target[1:], set()).add(article.key)
    writer = CrashingWriter(2, after=True)
    ledger = writer.ledger
    with pytest.raises(Crash):
        BulkIndexer(writer, ledger).run(TASK, articles())
    BulkIndexer(writer, ledger).run(TASK, articles())
    counted = {
        row.filename: row.links
        for row in writer.opened.database.rows(select(documents.c.filename, documents.c.links))
    }
    assert counted == {title: len(linking.get(title, ())) for title in counted}
    assert max(counted.values()) > 3


def test_a_second_run_writes_nothing() -> None:
    writer = CrashingWriter(0, after=False)
    ledger = writer.ledger
    first = BulkIndexer(writer, ledger).run(TASK, articles())
    writes = writer.writes
    assert BulkIndexer(writer, ledger).run(TASK, articles()) == first
    assert writer.writes == writes


def test_a_newer_dump_writes_what_changed_and_removes_what_is_gone() -> None:
    writer, ledger = recorded()
    BulkIndexer(writer, ledger).run(TASK, articles())
    newer = replace(SHAPE, revision=2, changed_share=0.1, deleted_share=0.05)
    summary = BulkIndexer(writer, ledger).run(TASK, articles(newer))
    fresh, accounted = recorded()
    assert summary == BulkIndexer(fresh, accounted).run(TASK, articles(newer))
    assert state(writer) == state(fresh)


def test_a_source_that_lacks_most_of_what_is_known_removes_nothing_unless_forced() -> None:
    writer, ledger = recorded()
    pages = [
        Article(str(number), "1", f"Page {number}", "text", f"Text {number}.")
        for number in range(10)
    ]
    BulkIndexer(writer, ledger).run(TASK, pages)
    with pytest.raises(Conflict, match="6 of 10"):
        BulkIndexer(writer, ledger).run(TASK, pages[:4])
    assert BulkIndexer(writer, ledger).run(TASK, pages[:4], missing="keep").indexed == 10
    assert len(state(writer)) == 10
    assert BulkIndexer(writer, ledger).run(TASK, pages[:4], missing="force").indexed == 4
    assert len(state(writer)) == 4


def test_passing_over_known_articles_reports_and_can_be_stopped() -> None:
    (writer, ledger), cancel = recorded(), CancelToken()
    BulkIndexer(writer, ledger).run(TASK, articles())
    seen: list[int] = []

    def progress(done: int, _: float | None) -> None:
        seen.append(done)
        if done >= 512:
            cancel.cancel()

    with pytest.raises(Cancelled):
        BulkIndexer(writer, ledger).run(TASK, articles(), progress=progress, cancel=cancel)
    assert seen == [0, 512]


def test_an_article_that_became_a_redirect_is_no_document_any_more() -> None:
    writer, ledger = recorded()
    page = Article("1", "1", "A", "text", "Some text.")
    BulkIndexer(writer, ledger).run(TASK, [page])
    summary = BulkIndexer(writer, ledger).run(TASK, [replace(page, revision="2", redirect_to="B")])
    assert (summary.indexed, summary.redirects, len(state(writer))) == (0, 1, 0)


def test_worker_processes_give_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_ALONE_CHARACTERS", 10_000)
    alone, together = OpenWriter(), OpenWriter()
    small = replace(SHAPE, articles=200)
    one = BulkIndexer(alone, alone.ledger).run(TASK, articles(small), workers=0)
    two = BulkIndexer(together, together.ledger).run(TASK, articles(small), workers=2)
    assert one == two
    assert state(alone) == state(together)


def test_cancelling_keeps_what_was_written() -> None:
    (writer, ledger), cancel = recorded(), CancelToken()
    seen: list[int] = []

    def progress(done: int, _: float | None) -> None:
        seen.append(done)
        cancel.cancel()

    with pytest.raises(Cancelled):
        BulkIndexer(writer, ledger).run(TASK, articles(), progress=progress, cancel=cancel)
    assert seen
    assert 0 < ledger.summary().articles < 1300


def test_notes_know_the_keys_of_articles() -> None:
    with closing(RunNotes()) as notes:
        assert notes.missing(["1"]) == {"1"}
        for key in ("1", "17", "A/One", "007", "\ud800"):
            notes.add(Article(key, "1", "A title", "text", "A text."))
        assert notes.missing(["1", "17", "A/One", "007", "7", "A/Two", "\ud800"]) == {"7", "A/Two"}
        assert notes.articles == 5


@pytest.mark.parametrize("workers", [0, 1])
def test_cancelling_does_not_wait_for_the_pages_that_are_read(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """One such page takes half a second of the full parser; a group of them took half a minute."""
    monkeypatch.setattr(bulk, "_ALONE_CHARACTERS", 1)
    slow = "{{" + "<b " * 18 + " text" * 6_000
    pages = [
        Article(str(n), "1", "S", "wikitext", "Clean text." if n < 64 else slow)
        for n in range(64 + 8 * 64)
    ]
    (writer, ledger), cancel = recorded(), CancelToken()
    asked: list[float] = []

    def stop() -> None:
        asked.append(time.monotonic())
        cancel.cancel()

    timer = threading.Timer(3.0, stop)
    timer.start()
    with pytest.raises(Cancelled):
        BulkIndexer(writer, ledger).run(TASK, pages, workers=workers, cancel=cancel)
    assert time.monotonic() - asked[0] < 25.0  # all of them would take minutes
