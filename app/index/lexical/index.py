"""Search BM25: one tantivy index per library, rebuildable from the catalog.

It stores chunk ids only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import tantivy

from app.core.errors import IndexDamaged
from app.core.languages import DEFAULT, LANGUAGES
from app.core.text import tokenise
from app.core.types import Filters, Scored
from app.index.catalog.facts import LexicalDocument
from app.index.files.durable import sync_directory
from app.index.files.steps import Steps
from app.index.lexical.analyzer import (
    ANALYZER,
    BODY,
    CHUNK_ID,
    DOC,
    LANGUAGE,
    TITLE,
    build_analyzer,
    build_schema,
)
from app.index.lexical.failures import lexical_error
from app.index.lexical.fields import chunk_fields
from app.index.lexical.files import damaged_files, lost_files
from app.index.lexical.query import QueryBuilder, conjunction
from app.index.options import IndexOptions

MIN_HEAP_PER_THREAD = 15_000_000
"""tantivy refuses a smaller arena per indexing thread
(IndexWriter::MEMORY_BUDGET_NUM_BYTES_MIN)."""
NICE = 10
"""Of the threads that index and merge in the background (Linux): rows of a bulk run, and
questions on the same cores, go first."""
MOST_TIED = 1000
"""How far beyond k a tie for the last place is followed; longer ones are cut by tantivy, segment
by segment."""


class TantivyIndex:
    """One library's index; reads are concurrent, writers serialise their calls.

    The calls are add, remove, commit and rollback.
    """

    def __init__(self, path: Path, options: IndexOptions, steps: Steps) -> None:
        """Open or create the index in directory `path`.

        Raises:
            IndexDamaged: The directory holds something tantivy cannot read.
        """
        self.path = path
        self.failed = False
        """Whether tantivy could not read or write its files, a full disk aside."""
        self._options = options
        self._steps = steps
        self._schema = build_schema()
        path.mkdir(parents=True, exist_ok=True)
        with self._translated():
            self._index = tantivy.Index(self._schema, path=str(path))
            self._index.register_tokenizer(ANALYZER, build_analyzer())
            self._index.config_reader("manual")
            self._reload()
        self._queries = QueryBuilder(
            self._schema, title_boost=options.title_boost, section_boost=options.section_boost
        )
        self._writer: tantivy.IndexWriter | None = None
        """Held nowhere else, local variables included: an error keeps them, and tantivy's lock
        with them."""
        self._background = False
        self._quiet = ThreadPoolExecutor(
            1, thread_name_prefix=f"tantivy-{path.name}", initializer=_be_nice
        )

    # --- read

    def _reload(self) -> None:
        """Search what was committed last."""
        self._index.reload()
        searcher = self._index.searcher()
        held = {code: int(searcher.doc_freq(LANGUAGE, code)) for code in LANGUAGES}
        found = sorted((code for code in held if held[code]), key=lambda code: -held[code])
        self.languages = tuple(found) or (DEFAULT,)
        """Of the documents, that of most chunks first."""

    @property
    def count(self) -> int:
        """Return how many chunks are committed."""
        with self._translated():
            return int(self._index.searcher().num_docs)

    def search(self, text: str, k: int, filters: Filters | None) -> list[Scored]:
        """Return up to k chunks by BM25, descending, ties by chunk id."""
        query = self._queries.text(text, self.languages)
        if query is None or k < 1:
            return []
        conditions = self._queries.filters(filters) if filters else []
        return self._run(conjunction(query, conditions), k)

    def score(self, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of given chunks; those sharing no term, or unknown, are 0.0."""
        scores = dict.fromkeys(chunk_ids, 0.0)
        query = self._queries.text(text, self.languages)
        if query is not None and scores:
            chosen = conjunction(
                query, [self._queries.chunks(list(scores))], required=False
            )  # faster: these alone are walked
            scores.update((hit.chunk_id, hit.score) for hit in self._run(chosen, len(scores)))
        return scores

    def _run(self, query: tantivy.Query, k: int) -> list[Scored]:
        with self._translated():
            searcher = self._index.searcher()
            limit = k + 1
            hits = searcher.search(query, limit, count=False).hits
            # tantivy cuts a tie by segment; asking further lets the chunk id cut it, so that an
            # imported library answers alike
            while len(hits) == limit and hits[k - 1][0] == hits[-1][0] and limit < k + MOST_TIED:
                limit = min(4 * limit, k + MOST_TIED)
                hits = searcher.search(query, limit, count=False).hits
            ids = searcher.fast_field_values(CHUNK_ID, [address for _, address in hits])
        scored = [Scored(chunk_id, score) for (score, _), chunk_id in zip(hits, ids, strict=True)]
        scored.sort(key=lambda hit: (-hit.score, hit.chunk_id))
        return scored[:k]

    def document_frequencies(self, tokens: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return the number of chunks and how many bodies hold each stemmed token."""
        with self._translated():
            searcher = self._index.searcher()
            total = int(searcher.num_docs)
            # Deleted chunks count until their segment is merged: never more than all that are
            # alive.
            return total, {
                token: min(total, int(searcher.doc_freq(BODY, token))) for token in tokens
            }

    def near(self, token: str, edits: int, k: int) -> list[int]:
        """Return up to k chunks with a token within `edits` of this one, by id.

        In body or title.
        """
        terms = [
            tantivy.Query.fuzzy_term_query(
                self._schema, field, token, distance=edits, transposition_cost_one=True
            )
            for field in (BODY, TITLE)
        ]
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        return [hit.chunk_id for hit in self._run(query, k)]

    def ids(self) -> list[int]:
        """Return all committed chunk ids; duplicates repeat."""
        with self._translated():
            searcher = self._index.searcher()
            hits = searcher.search(
                tantivy.Query.all_query(), max(1, searcher.num_docs), count=False
            ).hits
            return [
                int(chunk_id)
                for chunk_id in searcher.fast_field_values(
                    CHUNK_ID, [address for _, address in hits]
                )
            ]

    def finds(self, chunk_id: int, text: str) -> bool:
        """Return whether a chunk's own words find it; True without words."""
        return not tokenise(text) or self.score(text, [chunk_id])[chunk_id] > 0

    # --- write

    def add(self, document: LexicalDocument) -> None:
        """Queue a document's chunks; searchable after `commit`."""
        with self._writing():
            for fields in chunk_fields(document):
                self._open_writer().add_document(fields)

    def delete(self, doc: int) -> None:
        """Queue the removal of a document's chunks, committed or queued before."""
        with self._writing(), self._steps.at("tantivy.delete"):
            self._open_writer().delete_documents_by_term(DOC, doc)

    def commit(self) -> None:
        """Make everything queued durable, then searchable.

        Raises:
            DiskFull: No space; the queue is dropped, committed chunks stay searchable.
        """
        if self._writer is None:
            return
        with self._writing():
            with self._steps.at("tantivy.commit"):
                if self._background:
                    self._quiet.submit(self._writer.commit).result()
                else:
                    self._writer.commit()
            # tantivy syncs its files and renames meta.json, but not the directory after that: a
            # power cut could undo the rename.
            sync_directory(self.path, self._steps, "tantivy.fsync_directory")
            self._reload()

    def set_background(self, background: bool) -> None:
        """Set low CPU priority of the indexing threads (Linux); call with empty queue."""
        if background != self._background:
            self._background = background
            self._writer = None

    def rollback(self) -> None:
        """Drop everything queued."""
        # Dropping the writer frees its lock and its queue; unlike its own rollback this works after
        # a failed commit too.
        self._writer = None

    def delete_all(self) -> None:
        """Remove every chunk, durably."""
        with self._writing():
            with self._steps.at("tantivy.delete_all"):
                self._open_writer().delete_all_documents()
            self.commit()

    def compact(self) -> None:
        """Let running merges end and remove files no segment needs."""
        with self._writing():
            writer = self._open_writer()
            with self._steps.at("tantivy.merge"):
                writer.wait_merging_threads()
            self._writer = None
            self._open_writer().garbage_collect_files()

    def damaged(self) -> list[str]:
        """Return faults of its files by their checksums; empty when sound."""
        return damaged_files(self.path)

    def lost(self) -> bool:
        """Return whether a live segment's file is missing or cut."""
        return lost_files(self.path)

    def close(self) -> None:
        """Stop the indexing threads; queued chunks are dropped."""
        self._writer = None
        self._quiet.shutdown()

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            threads = self._options.tantivy_threads or min(4, os.cpu_count() or 1)
            heap = max(self._options.tantivy_heap_bytes, MIN_HEAP_PER_THREAD * threads)
            opened = partial(self._index.writer, heap, threads)
            self._writer = self._quiet.submit(opened).result() if self._background else opened()
            # A commit that was cut short leaves files of deletions that no segment names. The next
            # commit that deletes as much takes the same name and fails on it at every start, unless
            # they are removed.
            self._writer.garbage_collect_files()
        return self._writer

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Drop queued words after an error; how many tantivy took is unknown.

        A failed read drops nothing.
        """
        try:
            with self._translated():
                yield
        except BaseException:
            self._writer = None
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except BaseException as exc:
            # tantivy-py raises ValueError for every error; its panics are BaseExceptions of pyo3.
            if (
                not isinstance(exc, (ValueError, OSError))
                and type(exc).__module__ != "pyo3_runtime"
            ):
                raise
            raised = lexical_error(self.path, str(exc))
            self.failed = self.failed or isinstance(raised, IndexDamaged)
            raise raised from exc


def _be_nice() -> None:
    """Lower the priority of this thread, where threads have one."""
    if sys.platform == "linux":
        os.setpriority(
            os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0))
        )  # of this thread alone
