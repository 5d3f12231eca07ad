"""Index a dump: stream, parse in worker processes, write batches, keep a ledger.

Resuming is exact because nothing depends on where a run stopped: every run reads its source from
the start, skips what the ledger already holds in the same revision, and writes the rest. A crash
repeats at most the batches that were not yet written.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import signal
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from app.core.cancel import CancelToken, in_order
from app.core.errors import Conflict, DocuMindError, NotFound
from app.core.ids import document_id
from app.core.languages import language_of
from app.core.normalisation import normalise
from app.core.types import (
    Article,
    DocumentDraft,
    LedgerEntry,
    LedgerPage,
    LedgerSummary,
    Library,
    Metadata,
    ParsedDocument,
)
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions
from app.ingest.parsers.html import parse_html
from app.ingest.parsers.wikitext import parse_wikitext
from app.storage.catalog.ledger import BulkLedger

if TYPE_CHECKING:
    from app.storage.writer import CatalogIndexWriter

# Turn a batch of articles into chunks in a worker process; picklable.

ARTICLE_NAMESPACE = 0


@dataclass(frozen=True, slots=True)
class BulkTask:
    library: Library
    source: str
    """Name of the source, the same for every dump of one encyclopedia, for example `enwiki`."""
    options: IngestOptions
    job_id: str = ""
    """The job that indexes it, which deletions after it keep out."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An article's entry and, when it is to be indexed, its draft."""

    entry: LedgerEntry
    draft: DocumentDraft | None = None


def source_key(source: str, article: str) -> str:
    """Return an article's source key: encyclopedia name and page id."""
    return key_prefix(source) + article


def key_prefix(source: str) -> str:
    return f"{source}:"


def prepare(task: BulkTask, articles: Sequence[Article]) -> list[Prepared]:
    """Return each article's draft in order, unparsable ones with the reason; stop when told to."""
    return [
        _prepare(task, article) for article in articles if _stopped is None or not _stopped.is_set()
    ]


_stopped: Event | None = None
"""A worker process's; None elsewhere."""


def _prepare(task: BulkTask, article: Article) -> Prepared:
    if article.redirect_to is not None:
        return Prepared(LedgerEntry(article.key, article.revision, "redirect"))
    if article.fault is not None:
        return _skipped(article, article.fault)
    if article.namespace != ARTICLE_NAMESPACE:
        return _skipped(article, "namespace")
    if len(article.source) > task.options.max_characters:
        return _skipped(article, "too_large")
    try:
        parsed = parse_article(article)
    except (DocuMindError, ValueError, RecursionError):  # markup from anywhere; the run goes on
        return _skipped(article, "unreadable")
    if not parsed.text.strip():
        return _skipped(article, "empty")
    # Not looked at for instructions: that would be a tenth as fast as all the rest (ADR 0090).
    stripped = parsed.stripped_characters
    key = source_key(task.source, article.key)
    draft = DocumentDraft(
        library=task.library,
        doc_id=document_id(task.library, key),
        source_key=key,
        filename=article.title,
        sha256=hashlib.sha256(parsed.text.encode("utf-8", "surrogatepass")).hexdigest(),
        type=article.markup,
        text=parsed.text,
        metadata=Metadata(article.title, language=language_of(parsed.text)),
        chunks=chunk(parsed, task.options),
        headings=parsed.headings,
        source_url=article.url,
        licence=article.licence,
        flags=(f"stripped:{stripped}",) if stripped else (),
        source_revision=article.revision,
        job_id=task.job_id,
        labels=article.labels,
    )
    return Prepared(LedgerEntry(article.key, article.revision, "indexed"), draft)


_WIKI_FURNITURE = (
    ".hatnote, .navigation-not-searchable, .navbox, .vertical-navbox, .sidebar, .authority-control,"
    " .mw-editsection, .reference, .mw-cite-backlink, .reflist, ol.references, .refbegin, .ambox,"
    " .metadata, .sistersitebox, .portal, .noprint, .toc, .catlinks, .printfooter, #toc, #siteSub,"
    " #contentSub, #jump-to-nav, .mw-jump-link, .mw-indicators, .mw-hidden-catlinks, .zim-footer"
)
"""What MediaWiki sets around an article and into it, a selector of pages in a ZIM archive."""
_ISSUED = re.compile(
    r"(?:\s*^(?:This (?:article|page) is issued from|Retrieved from|The text is licensed)[^\n]*)+"
    r"\s*\Z",
    re.MULTILINE,
)
"""The last lines of an article in an archive: where it is from."""


def parse_article(article: Article) -> ParsedDocument:
    """Return the readable text of an article in any markup.

    Raises:
        DocuMindError: The markup cannot be read.
    """
    if article.markup == "wikitext":
        return parse_wikitext(article.source, article.title)
    if article.markup == "html":
        source = article.source.encode("utf-8", "surrogatepass")
        parsed = parse_html(source, article.title, left_out=_WIKI_FURNITURE)
        return replace(parsed, text=_ISSUED.sub("", parsed.text))
    text, stripped = normalise(article.source)
    return ParsedDocument(
        text.strip(), "text/plain", title=article.title, stripped_characters=stripped
    )


def _skipped(article: Article, reason: str) -> Prepared:
    return Prepared(LedgerEntry(article.key, article.revision, "skipped", reason))


def start_worker(stopped: Event) -> None:
    """Prepare a worker: end with the parent, ignore Ctrl-C, obey a stop sign."""
    global _stopped  # noqa: PLW0603  # a process has one, and `prepare` is called by its pool
    _stopped = stopped
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def end_with_parent() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=end_with_parent, name="end-with-parent", daemon=True).start()


# Prepare a dump's articles, in worker processes when there are many.

TASK_ARTICLES = 64
"""Articles a worker takes at once: small enough to spread evenly, large enough to hide the trip
between processes."""
_LOOK_S = 0.2
"""Seconds between two looks at whether a run is cancelled, while a worker is at its articles."""
_ALONE_CHARACTERS = 8_000_000
"""Parsed in the calling process before workers are started: a worker takes a second to import
what it needs, as long as this."""


def prepared_articles(
    task: BulkTask, articles: Iterator[Article], workers: int, token: CancelToken, stack: ExitStack
) -> Iterator[Prepared]:
    """Yield what becomes of each article, in the source's order.

    The first ones are prepared in the calling process; a longer source gets workers.

    Args:
        task: How articles become drafts.
        articles: Read a few groups ahead of what is yielded.
        workers: Processes; 0 prepares all in the calling one.
        token: Checked between articles, and while a worker is at some.
        stack: Its end stops the workers.

    Raises:
        Cancelled: Asked to stop.
    """
    work = partial(prepare, task)
    groups = iter(lambda: list(islice(articles, TASK_ARTICLES)), [])
    alone = 0
    for group in groups:
        token.raise_if_cancelled()
        for article in group:
            token.raise_if_cancelled()
            yield from work([article])
        alone += sum(len(article.source) for article in group)
        if workers and alone >= _ALONE_CHARACTERS:
            break
    else:
        return
    pool = _started_pool(workers, stack)
    for future in in_order(pool, work, groups, workers * 3 + 1):
        while not future.done():
            token.raise_if_cancelled()
            wait([future], timeout=_LOOK_S)
        token.raise_if_cancelled()
        yield from future.result()


def _started_pool(workers: int, stack: ExitStack) -> ProcessPoolExecutor:
    # Forking a process with threads and open databases is unsafe.
    spawn = multiprocessing.get_context("spawn")
    stopped = spawn.Event()
    pool = ProcessPoolExecutor(
        workers, mp_context=spawn, initializer=start_worker, initargs=(stopped,)
    )
    stack.callback(pool.shutdown, wait=True, cancel_futures=True)
    stack.callback(stopped.set)  # first: a worker then ends with the article that it is at
    return pool


# Count how many articles link to a title, in constant memory.

_SLOTS = 1 << 23
_ROWS = 2
"""32 MB a row; pages of it that are never counted in take no memory."""
_WIKI_LINK = re.compile(r"\[\[\s*:?([^\[\]|#<>{}\n]+)")
_HTML_LINK = re.compile(r"""<a\s[^>]*?href=["']([^"'#?:]+)["'#?]""", re.IGNORECASE)
"""Targets without a scheme: in an archive those are its own articles."""


class LinkCounts:
    """Counts links by target title, compared as MediaWiki does.

    Underscores are spaces; the first letter is a capital. A redirect counts as one link to its
    target; links to a redirect are not passed on.
    """

    def __init__(self) -> None:
        self._counts: npt.NDArray[np.uint32] = np.zeros((_ROWS, _SLOTS), dtype=np.uint32)
        self.total = 0
        """Links counted so far."""

    def add(self, article: Article) -> None:
        """Count an article's links, each target once; other namespaces do not count."""
        if article.namespace != ARTICLE_NAMESPACE:
            return
        targets = {_title(target) for target in _targets(article)}
        if targets:
            self.total += len(targets)
            for row, slots in zip(self._counts, _slots(targets), strict=True):
                row[slots] += 1

    def of(self, title: str) -> int:
        """Return how many articles link to a title, rarely more."""
        slots = _slots([_title(title)])
        return int(min(row[at][0] for row, at in zip(self._counts, slots, strict=True)))


def _targets(article: Article) -> Iterator[str]:
    if article.redirect_to is not None:
        yield article.redirect_to
    elif article.markup == "wikitext":
        yield from _WIKI_LINK.findall(article.source)
    elif article.markup == "html":
        links = map(unquote, _HTML_LINK.findall(article.source))
        yield from (target.rpartition("/")[2] for target in links)


def _title(target: str) -> str:
    title = target.replace("_", " ").strip()
    return title[:1].upper() + title[1:]


def _slots(titles: Collection[str]) -> list[npt.NDArray[np.int64]]:
    """Return the slots of titles in each row, `[titles]`."""
    # Hashes are of this process: counts never leave it.
    numbers = np.fromiter(map(hash, titles), np.int64, len(titles))
    return [(numbers >> (32 * row)) & (_SLOTS - 1) for row in range(_ROWS)]


# Which articles a run has seen, and under which other titles: on disk, for memory would not do.

_MOST_TITLE_CHARACTERS = 2_000
"""Of one article's other titles; the shortest are the names that people ask by."""
_WORD = re.compile(r"\w+")


class RunNotes:
    """The keys and redirects of a run, in a database without a name, 6 microseconds each.

    An encyclopedia of 7 million pages takes a gigabyte there.
    """

    def __init__(self) -> None:
        self._notes = sqlite3.connect("")  # a file of its own, which ends with it
        self._notes.executescript(
            "PRAGMA journal_mode = OFF;"
            "CREATE TABLE seen (key BLOB);"
            "CREATE TABLE redirects (target BLOB, title BLOB)"
        )
        self.articles = 0
        """Noted so far."""

    def add(self, article: Article) -> None:
        self.articles += 1
        self._notes.execute("INSERT INTO seen VALUES (?)", (_bytes(article.key),))
        if article.redirect_to is not None and article.namespace == ARTICLE_NAMESPACE:
            named = _bytes(_title(article.redirect_to)), _bytes(article.title)
            self._notes.execute("INSERT INTO redirects VALUES (?, ?)", named)

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Return those of `keys` that no article has had."""
        self._notes.execute("CREATE INDEX IF NOT EXISTS by_key ON seen (key)")
        return {key for key in keys if not self._found("SELECT 1 FROM seen WHERE key = ?", key)}

    def titles_of(self, title: str, before: str = "", *, keeps: bool = False) -> str:
        """Return the other titles of an article, one a line, without spellings of the same words.

        Args:
            title: Of the article.
            before: Its other titles so far.
            keeps: Whether those stay, because this source is only a part.
        """
        self._notes.execute("CREATE INDEX IF NOT EXISTS by_target ON redirects (target)")
        found = self._found("SELECT title FROM redirects WHERE target = ?", _title(title))
        others = {other.decode("utf-8", "surrogatepass") for (other,) in found}
        titles, seen, size = [], {_spelt(title)}, 0
        for other in sorted(
            others.union(before.split("\n") if keeps else ()), key=lambda one: (len(one), one)
        ):
            size += len(other)
            if (spelt := _spelt(other)) and spelt not in seen and size <= _MOST_TITLE_CHARACTERS:
                seen.add(spelt)
                titles.append(other)
        return "\n".join(titles)

    def close(self) -> None:
        self._notes.close()

    def _found(self, query: str, text: str) -> list[tuple[bytes]]:
        return self._notes.execute(query, (_bytes(text),)).fetchall()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _spelt(title: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(title.casefold()))


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


def _batches(articles: Iterable[Prepared]) -> Iterator[list[Prepared]]:
    """Yield prepared articles in order, in batches of a transaction."""
    batch: list[Prepared] = []
    characters = 0
    for prepared in articles:
        batch.append(prepared)
        characters += len(prepared.draft.text) if prepared.draft else 0
        if len(batch) >= BATCH_ARTICLES or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class BulkIndexer:
    """Takes articles into the index; one run at a time per library."""

    writer: CatalogIndexWriter
    ledger: BulkLedger

    def run(
        self,
        task: BulkTask,
        articles: Iterable[Article],
        *,
        workers: int = 0,
        missing: MissingPolicy = "remove",
        progress: BulkProgress | None = None,
        cancel: CancelToken | None = None,
    ) -> LedgerSummary:
        """Index every article that is new or changed and return the source's account.

        On return everything counted as indexed is durable and found lexically, and documents know
        how many articles link to them; vectors are the backfill's work.

        Args:
            task: Library, source name and how articles become drafts.
            articles: The source, read once.
            workers: Processes that parse and chunk; 0 does it in the calling one.
            missing: What becomes of articles that the source no longer has, after a whole pass.
            progress: Called when a batch is handed to the writer, and while known articles are
                skipped.
            cancel: Checked between batches; what was written stays.

        Raises:
            Cancelled: Asked to stop.
            Conflict: Most of what is known under this name is not in the source; everything in it
                is indexed, nothing removed.
            Unreadable: The source cannot be read on.
            DiskFull: No space; everything acknowledged before is safe.
            Superseded: The library was cleared after the job was accepted.
        """
        token = cancel or CancelToken()
        links = LinkCounts()

        with closing(RunNotes()) as notes:

            def passed() -> None:
                token.raise_if_cancelled()
                if progress is not None:
                    share = articles.position() if isinstance(articles, Positioned) else None
                    progress(notes.articles, share)

            with ExitStack() as stack:
                changed = self._changed(task, articles, [links, notes], passed)
                prepared = prepared_articles(task, changed, workers, token, stack)
                with ThreadPoolExecutor(1, thread_name_prefix="bulk-write") as writing:
                    stored: Future[None] | None = None
                    try:
                        for batch in _batches(prepared):
                            if stored is not None:
                                stored.result()
                            passed()
                            stored = writing.submit(self._write, task, batch)
                        if stored is not None:
                            stored.result()
                    finally:
                        writing.submit(self.writer.flush, task.library).result()
            if missing != "keep":
                self._remove_gone(task, notes, token, missing)
            titles_of = partial(notes.titles_of, keeps=missing == "keep")
            prefix = key_prefix(task.source)
            after: str | None = "" if links.total else None
            while after is not None:
                token.raise_if_cancelled()
                after = self.writer.write_links(task.library, prefix, links.of, titles_of, after)
        if progress is not None:
            progress(notes.articles, 1.0)
        return self.ledger.summary(task.library, task.source)

    def _changed(
        self,
        task: BulkTask,
        articles: Iterable[Article],
        noting: Sequence[LinkCounts | RunNotes],
        passed: Callable[[], None],
    ) -> Iterator[Article]:
        """Yield articles of no known revision; `passed` is called for groups of known ones."""
        stream = iter(articles)
        while group := list(islice(stream, _LOOKUP_ARTICLES)):
            keys = [article.key for article in group]
            known = self.ledger.entries(task.library, task.source, keys)
            if known:
                passed()
            for article in group:
                for notes in noting:
                    notes.add(article)
                entry = known.get(article.key)
                if entry is None or entry.revision != article.revision:
                    yield article

    def _write(self, task: BulkTask, batch: Sequence[Prepared]) -> None:
        """Store documents and ledger entries in one transaction, all that a crash repeats."""
        dropped = [prepared.entry.article for prepared in batch if prepared.draft is None]
        if dropped:
            known = self.ledger.entries(task.library, task.source, dropped)
            self._delete(task, known.values())
        entries = [prepared.entry for prepared in batch]
        drafts = [prepared.draft for prepared in batch if prepared.draft is not None]
        if drafts:
            self.writer.store(drafts, LedgerPage(task.library, task.source, entries))
        else:
            self.ledger.record(task.library, task.source, entries)

    def _delete(self, task: BulkTask, entries: Iterable[LedgerEntry]) -> None:
        """Delete the documents of entries; a person, or a run that crashed, may have done so."""
        for entry in entries:
            if entry.state == "indexed":
                doc_id = document_id(task.library, source_key(task.source, entry.article))
                with suppress(NotFound):
                    self.writer.delete(task.library, doc_id)

    def _remove_gone(
        self, task: BulkTask, notes: RunNotes, token: CancelToken, policy: MissingPolicy
    ) -> None:
        if policy != "force":
            known = self.ledger.summary(task.library, task.source).articles
            gone = sum(len(page) for page in self._gone(task, notes))
            if gone > _GONE_AT_MOST * known:
                raise Conflict(
                    f"{gone} of {known} articles known as {task.source!r} are not in this source:"
                    " nothing was removed. If it is"
                    " another encyclopedia give it another name, if it is a part keep the missing,"
                    " if all is right force it"
                )
        for page in self._gone(task, notes):
            token.raise_if_cancelled()
            self._delete(task, page)
            self.ledger.delete(task.library, task.source, [entry.article for entry in page])

    def _gone(self, task: BulkTask, notes: RunNotes) -> Iterator[list[LedgerEntry]]:
        """Yield pages of entries whose article was not seen; each may be deleted at once."""
        after = ""
        while page := self.ledger.page(task.library, task.source, after, _GONE_PAGE):
            after = page[-1].article
            unseen = notes.missing([entry.article for entry in page])
            yield [entry for entry in page if entry.article in unseen]
