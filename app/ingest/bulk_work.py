"""Turn a batch of articles into chunks in a worker process; picklable."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.errors import DocuMindError
from app.core.ids import document_id
from app.core.languages.detection import language_of
from app.core.normalisation import normalise
from app.core.types import Article, DocumentDraft, LedgerEntry, Library, Metadata, ParsedDocument
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions
from app.ingest.parsers.html import parse_html
from app.ingest.parsers.wikitext import parse_wikitext

ARTICLE_NAMESPACE = 0


class ParentProcess(Protocol):
    """Facts about the parent that started this process."""

    def join(self) -> None:
        """Return when it has ended."""
        ...


@dataclass(frozen=True, slots=True)
class BulkTask:
    """Parameters that turn articles of one run into drafts."""

    library: Library
    source: str
    """Name of the source, the same for every dump of one encyclopedia, for example `enwiki`."""
    options: IngestOptions
    inspect: Callable[[str], tuple[str, ...]] | None = None
    """Finds what a reader should be warned of; a module-level function, so that it can be sent
    to a worker. The product passes none: ours reads 1.6 MB/s, a tenth of the speed of everything
    else here (ADR 0090)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An article's entry and, when it is to be indexed, its draft."""

    entry: LedgerEntry
    draft: DocumentDraft | None = None


def source_key(source: str, article: str) -> str:
    """Return an article's source key: encyclopedia name and page id."""
    return key_prefix(source) + article


def key_prefix(source: str) -> str:
    """Return what the source keys of one encyclopedia begin with."""
    return f"{source}:"


def prepare(task: BulkTask, articles: Sequence[Article]) -> list[Prepared]:
    """Return each article's draft in order; skip unparsable ones with the reason.

    A worker process that is told to stop leaves out what is left.
    """
    return [
        _prepare(task, article) for article in articles if _stopped is None or not _stopped.is_set()
    ]


class StopSign(Protocol):
    """Set when no work is wanted any more, seen by all processes."""

    def is_set(self) -> bool:
        """Return whether it has been set."""
        ...


_stopped: StopSign | None = None
"""A worker process's; None elsewhere."""


def _prepare(task: BulkTask, article: Article) -> Prepared:
    if article.redirect_to is not None:
        return Prepared(LedgerEntry(article.key, article.revision, "redirect"))
    if article.namespace != ARTICLE_NAMESPACE:
        return _skipped(article, "namespace")
    if len(article.source) > task.options.max_characters:
        return _skipped(article, "too_large")
    try:
        parsed = parse_article(article)
    except (
        DocuMindError,
        ValueError,
        RecursionError,
    ):  # markup from anywhere; the reason is counted, the run goes on
        return _skipped(article, "unreadable")
    if not parsed.text.strip():
        return _skipped(article, "empty")
    flags = task.inspect(parsed.text) if task.inspect else ()
    if parsed.stripped_characters:
        flags = (*flags, f"stripped:{parsed.stripped_characters}")
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
        source_url=article.url,
        licence=article.licence,
        flags=flags,
        source_revision=article.revision,
    )
    return Prepared(LedgerEntry(article.key, article.revision, "indexed"), draft)


def parse_article(article: Article) -> ParsedDocument:
    """Return the readable text of an article in any markup.

    Raises:
        DocuMindError: The markup cannot be read.
    """
    if article.markup == "wikitext":
        return parse_wikitext(article.source, article.title)
    if article.markup == "html":
        return parse_html(article.source.encode("utf-8", "surrogatepass"))
    text, stripped = normalise(article.source)
    return ParsedDocument(
        text.strip(), "text/plain", title=article.title, stripped_characters=stripped
    )


def _skipped(article: Article, reason: str) -> Prepared:
    return Prepared(LedgerEntry(article.key, article.revision, "skipped", reason))


def start_worker(stopped: StopSign) -> None:
    """Prepare a worker: end with the parent, ignore Ctrl-C, obey a stop sign."""
    global _stopped  # noqa: PLW0603  # a process has one, and `prepare` is called by its pool
    _stopped = stopped
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(
            target=_end_with, args=(parent,), name="end-with-parent", daemon=True
        ).start()


def _end_with(parent: ParentProcess) -> None:
    parent.join()
    os._exit(1)
