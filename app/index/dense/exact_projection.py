"""Keeps a library's exact rows in step with the catalog."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.types import Library
from app.index.catalog.changes import Change, ChangeLog
from app.index.catalog.loading import Build, CatalogLoader
from app.index.dense.exact import ExactIndex
from app.index.files.durable import remove_tree
from app.index.files.steps import Steps
from app.index.options import IndexOptions

log = logging.getLogger(__name__)

LOAD_BATCH = 1000
"""Vectors per read from the catalog and per write to a projection (facts/chroma.md: batches of 256 to 1,000)."""


class ExactProjection:
    """The exact rows of a library's live build, while it is small enough. Its owner serialises the writes."""

    def __init__(self, library: Library, options: IndexOptions, change_log: ChangeLog, loader: CatalogLoader, steps: Steps) -> None:
        """Serve `library`; nothing is opened before `catch_up`."""
        self._library = library
        self._options = options
        self._log = change_log
        self._loader = loader
        self._steps = steps
        self._number: int | None = None
        self.index: ExactIndex | None = None
        """The rows, or None when there are none or too many."""

    def catch_up(self, build: Build, limit: int) -> None:
        """Apply every change the rows have not seen; hold at most `limit` rows.

        Raises:
            DiskFull: No space; the next call goes on.
        """
        if self._number != build.number:
            self.index, self._number = None, build.number
        embedded = self._loader.embedded(build)
        path = self._path(build)
        if embedded > self._options.exact_limit:
            self.index = None
            if path.exists():
                remove_tree(path, self._steps, "exact.remove")
            self._log.set_mark(self._library, "exact", self._log.last())
            return
        exact = self.index or self._open(build, path)
        seq, changes = exact.seq, self._pending(exact.seq)
        while changes:
            self._apply(exact, build, changes, limit)
            seq = changes[-1].seq
            if not (changes := self._pending(seq)):
                # Counted after the last change and before another look for more: others may be writing.
                embedded = self._loader.embedded(build)
                changes = self._pending(seq)
        if exact.count != min(embedded, limit):
            log.warning("the exact rows of %s are %d, the catalog has %d: making them again", self._library, exact.count, embedded)
            seq = self._fill(exact, build, limit)
        if seq != exact.seq or self.index is None:
            exact.save(seq)
        self.index = exact
        self._log.set_mark(self._library, "exact", exact.seq)

    def _pending(self, seq: int) -> Sequence[Change]:
        return self._log.pending(self._library, seq, dense=True)

    def remake(self, build: Build, limit: int) -> None:
        """Make the rows anew from the catalog, durably."""
        exact = self.index or self._open(build, self._path(build))
        exact.save(self._fill(exact, build, limit))
        self._log.set_mark(self._library, "exact", exact.seq)

    def compare(self, build: Build, limit: int) -> list[str]:
        """Return how the rows differ from the catalog's vectors, one line per chunk; rows not yet applied are no difference."""
        if self._loader.embedded(build) > self._options.exact_limit:
            return []
        index = self.index or ExactIndex(self._path(build), build.dimension, self._steps)
        pending = self._log.pending(self._library, index.seq, dense=True, limit=-1)
        uncertain = {chunk_id for change in pending for chunk_id in change.ids}
        wrong: list[str] = []
        seen: set[int] = set()
        after = 0
        while (stored := self._loader.vectors_after(build, after, LOAD_BATCH)).chunk_ids:
            rows = index.fetch(stored.chunk_ids)
            for chunk_id, row in zip(stored.chunk_ids, stored.rows, strict=True):
                if chunk_id in rows and chunk_id not in uncertain and not np.array_equal(rows[chunk_id], row):
                    wrong.append(f"the row of chunk {chunk_id} is not the catalog's")
            seen.update(stored.chunk_ids)
            after = stored.chunk_ids[-1]
        held = set(index.ids())
        wrong += [f"chunk {chunk_id} has a row but no vector" for chunk_id in sorted(held - seen - uncertain)]
        missing = sorted(seen - held - uncertain)
        if missing and len(held) < min(len(seen), limit):
            wrong += [f"chunk {chunk_id} has no row" for chunk_id in missing]
        return wrong

    def adopt(self, other: ExactProjection, build: Build) -> None:
        """Take over the rows of another projection, which is not used again."""
        self.index, self._number = other.index, build.number

    def remove_others(self, keep: Sequence[int]) -> None:
        """Remove the files of every build of the library but these; searches that still read them are not disturbed."""
        kept = {f"{self._library.value}-{number}" for number in keep}
        for path in (self._options.data_dir / "exact").glob(f"{self._library.value}-*"):
            if path.name not in kept:
                remove_tree(path, self._steps, "exact.remove")

    def _path(self, build: Build) -> Path:
        return self._options.data_dir / "exact" / f"{self._library.value}-{build.number}"

    def _open(self, build: Build, path: Path) -> ExactIndex:
        exact = ExactIndex(path, build.dimension, self._steps)
        documents, rows = self._loader.row_facts(self._library, exact.file_ids())
        exact.describe(documents, rows)
        return exact

    def _apply(self, exact: ExactIndex, build: Build, changes: Sequence[Change], limit: int) -> None:
        for change in changes:
            if change.kind == "correct":
                exact.describe(self._loader.document_facts(change.doc))
                continue
            for at in range(0, len(change.ids), LOAD_BATCH):
                ids = change.ids[at : at + LOAD_BATCH]
                stored = self._loader.vectors(build, ids)
                exact.drop(ids)
                room = max(0, limit - exact.count)
                exact.describe(stored.documents)
                exact.put(stored.chunk_ids[:room], stored.rows[:room], stored.facts[:room])

    def _fill(self, exact: ExactIndex, build: Build, limit: int) -> int:
        """Make the rows anew from the catalog; return up to which change they are applied."""
        seq = self._log.last()
        exact.clear()
        after = 0
        while exact.count < limit:
            stored = self._loader.vectors_after(build, after, LOAD_BATCH)
            if not stored.chunk_ids:
                break
            room = limit - exact.count
            exact.describe(stored.documents)
            exact.put(stored.chunk_ids[:room], stored.rows[:room], stored.facts[:room])
            after = stored.chunk_ids[-1]
        return seq
