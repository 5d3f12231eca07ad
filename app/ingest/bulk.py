"""Index a dump: stream, parse in worker processes, write batches, keep a ledger.

Resuming is exact because nothing depends on where a run stopped: every run reads its source from
the start, skips what the ledger already holds in the same revision, and writes the rest. A crash
repeats at most the batches that were not yet written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import Literal, Protocol, runtime_checkable

from app.core.cancel import CancelToken
from app.core.errors import Conflict, NotFound
from app.core.ids import document_id
from app.core.ports import BulkLedger, IndexWriter
from app.core.types import Article, LedgerEntry, LedgerPage, LedgerSummary
from app.ingest.bulk_work import BulkTask, Prepared, key_prefix, source_key
from app.ingest.bulk_workers import prepared_articles
from app.ingest.links import LinkCounts
from app.ingest.seen_keys import SeenKeys

BATCH_ARTICLES = 512
BATCH_CHARACTERS = 4_000_000
"""A write transaction ends at either; the most work that a crash can repeat."""
_LOOKUP_ARTICLES = 512
_GONE_PAGE = 10_000
_GONE_AT_MOST = 0.5
"""A source that lacks more than this share of the articles known under its name is taken for
another one."""

MissingPolicy = Literal["remove", "keep", "force"]
"""What happens to documents whose article the source no longer has: `remove` does it unless more
than half would go (the wrong file, a part of a dump), `force` always, `keep` never."""

BulkProgress = Callable[[int, float | None], None]
"""Told how many articles have been read and which share of the source that is, None when the
source cannot say."""


@runtime_checkable
class Positioned(Protocol):
    """A source that knows how far it has been read."""

    def position(self) -> float:
        """Return the share read, [0, 1]."""
        ...


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """Limits of a run: processes, batch sizes."""

    workers: int = 0
    """Processes that parse and chunk; 0 does it in the calling process."""
    missing: MissingPolicy = "remove"
    """What becomes of articles that the source no longer has, after a whole pass."""


class BulkIndexer:
    """Takes articles into the index; one run at a time per library."""

    def __init__(self, writer: IndexWriter, ledger: BulkLedger) -> None:
        """Keep the ports."""
        self._writer = writer
        self._ledger = ledger

    def run(
        self,
        task: BulkTask,
        articles: Iterable[Article],
        options: BulkOptions,
        *,
        progress: BulkProgress | None = None,
        cancel: CancelToken | None = None,
    ) -> LedgerSummary:
        """Index every article that is new or changed and return the source's account.

        On return everything counted as indexed is durable and found lexically, and documents know
        how many articles link to them; vectors are the backfill's work.

        Args:
            task: Library, source name and how articles become drafts.
            articles: The source, read once.
            options: Processes, and whether vanished articles are removed.
            progress: Called when a batch is handed to the writer, and while known articles are
                skipped.
            cancel: Checked between batches; what was written stays.

        Raises:
            Cancelled: Asked to stop.
            Conflict: Most of what is known under this name is not in the source; everything in it
                is indexed, nothing removed.
            Unreadable: The source cannot be read on.
            DiskFull: No space; everything acknowledged before is safe.
        """
        token = cancel or CancelToken()
        seen = SeenKeys()
        links = LinkCounts()

        def passed() -> None:
            token.raise_if_cancelled()
            if progress is not None:
                progress(
                    len(seen), articles.position() if isinstance(articles, Positioned) else None
                )

        with ExitStack() as stack:
            batches = self._batches(
                task,
                self._changed(task, articles, seen, links, passed),
                options.workers,
                token,
                stack,
            )
            with ThreadPoolExecutor(1, thread_name_prefix="bulk-write") as writing:
                stored: Future[None] | None = None
                try:
                    for batch in batches:
                        if stored is not None:
                            stored.result()
                        passed()
                        stored = writing.submit(self._write, task, batch)
                    if stored is not None:
                        stored.result()
                finally:
                    writing.submit(self._writer.settle, task.library).result()
        if options.missing != "keep":
            self._remove_gone(task, seen, token, options.missing)
        if links.total:
            self._rank(task, links, token)
        if progress is not None:
            progress(len(seen), 1.0)
        return self._ledger.summary(task.library, task.source)

    def _changed(
        self,
        task: BulkTask,
        articles: Iterable[Article],
        seen: SeenKeys,
        links: LinkCounts,
        passed: Callable[[], None],
    ) -> Iterator[Article]:
        """Yield articles whose revision is not in the ledger.

        `passed` is called for each group of known ones.
        """
        stream = iter(articles)
        while group := list(islice(stream, _LOOKUP_ARTICLES)):
            known = self._ledger.entries(
                task.library, task.source, [article.key for article in group]
            )
            if known:
                passed()
            for article in group:
                seen.add(article.key)
                links.add(article)
                entry = known.get(article.key)
                if entry is None or entry.revision != article.revision:
                    yield article

    def _batches(
        self,
        task: BulkTask,
        articles: Iterator[Article],
        workers: int,
        token: CancelToken,
        stack: ExitStack,
    ) -> Iterator[list[Prepared]]:
        """Yield prepared articles in the source's order, in batches of a transaction."""
        batch: list[Prepared] = []
        characters = 0
        for prepared in prepared_articles(task, articles, workers, token, stack):
            batch.append(prepared)
            characters += len(prepared.draft.text) if prepared.draft else 0
            if len(batch) >= BATCH_ARTICLES or characters >= BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch

    def _write(self, task: BulkTask, batch: Sequence[Prepared]) -> None:
        """Store documents and ledger entries in one transaction.

        A crash repeats only what was not stored.
        """
        self._drop(task, [prepared.entry for prepared in batch if prepared.draft is None])
        entries = [prepared.entry for prepared in batch]
        drafts = [prepared.draft for prepared in batch if prepared.draft is not None]
        if drafts:
            self._writer.store(drafts, LedgerPage(task.library, task.source, entries))
        else:
            self._ledger.record(task.library, task.source, entries)

    def _drop(self, task: BulkTask, entries: Sequence[LedgerEntry]) -> None:
        """Delete documents of articles that are no longer articles."""
        if not entries:
            return
        known = self._ledger.entries(
            task.library, task.source, [entry.article for entry in entries]
        )
        for entry in known.values():
            if entry.state == "indexed":
                self._delete(task, entry.article)

    def _delete(self, task: BulkTask, article: str) -> None:
        try:
            self._writer.delete(
                task.library, document_id(task.library, source_key(task.source, article))
            )
        except NotFound:  # a person deleted it, or a crash came between the deletion and its entry
            return

    def _remove_gone(
        self, task: BulkTask, seen: SeenKeys, token: CancelToken, policy: MissingPolicy
    ) -> None:
        if policy != "force":
            known = self._ledger.summary(task.library, task.source).articles
            gone = sum(len(page) for page in self._gone(task, seen))
            if gone > _GONE_AT_MOST * known:
                raise Conflict(
                    f"{gone} of {known} articles known as {task.source!r} are not in this source:"
                    " nothing was removed. If it is"
                    " another encyclopedia give it another name, if it is a part keep the missing,"
                    " if all is right force it"
                )
        for page in self._gone(task, seen):
            token.raise_if_cancelled()
            for entry in page:
                if entry.state == "indexed":
                    self._delete(task, entry.article)
            self._ledger.delete(task.library, task.source, [entry.article for entry in page])

    def _rank(self, task: BulkTask, links: LinkCounts, token: CancelToken) -> None:
        after: str | None = ""
        while after is not None:
            token.raise_if_cancelled()
            after = self._writer.write_links(task.library, key_prefix(task.source), links.of, after)

    def _gone(self, task: BulkTask, seen: SeenKeys) -> Iterator[list[LedgerEntry]]:
        """Yield pages of entries whose article was not seen.

        A page may be deleted before the next is requested.
        """
        after = ""
        while page := self._ledger.page(task.library, task.source, after, _GONE_PAGE):
            after = page[-1].article
            unseen = seen.missing([entry.article for entry in page])
            yield [entry for entry in page if entry.article in unseen]
