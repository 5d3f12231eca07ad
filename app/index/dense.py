"""Nearest neighbours: exact rows while a library is small, Chroma's graph beyond, one interface over both."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.core.types import Filters, FloatArray, Library, Scored
from app.core.vectors import cosine_distances, top_k_smallest
from app.index.build_state import BuildState
from app.index.changes import Change, ChangeLog
from app.index.chroma import ChromaStore
from app.index.durable import remove_tree
from app.index.exact import ExactIndex
from app.index.loading import Build, CatalogLoader, VectorRows
from app.index.options import IndexOptions
from app.index.steps import Steps

log = logging.getLogger(__name__)

LOAD_BATCH = 1000
"""Vectors per read from the catalog and per write to a projection (facts/chroma.md: batches of 256 to 1,000)."""

FILTERED_SCAN = 4_000
"""Filtered vectors read from the catalog and compared exactly, when there are no exact rows: 30 ms (m: 2,000 blobs are 14 ms)."""

OVERFETCH_LIMIT = 5_000
"""Most neighbours asked of Chroma for a filtered question; a filter that keeps fewer than k of them returns fewer."""


class DenseLibrary:
    """The dense projections of one library's live build; reads are concurrent, catching up is serialised."""

    def __init__(
        self,
        library: Library,
        options: IndexOptions,
        change_log: ChangeLog,
        loader: CatalogLoader,
        chroma: ChromaStore,
        steps: Steps,
    ) -> None:
        """Serve `library`; nothing is opened before `catch_up`."""
        self._library = library
        self._options = options
        self._log = change_log
        self._loader = loader
        self._chroma = chroma
        self._steps = steps
        self._lock = threading.RLock()
        self._build: Build | None = None
        self._exact: ExactIndex | None = None
        self._hidden: frozenset[int] = frozenset()
        self._rebuild: BuildState | None = None
        self.limit = options.max_dense_vectors
        """Most vectors to hold in memory; the composition lowers it by what the other library holds."""

    # --- read

    @property
    def count(self) -> int:
        """How many vectors can be searched now."""
        exact, build = self._exact, self._build
        if exact is not None:
            return exact.count
        return self._chroma.count(self.collection(build)) if build is not None and self._chroma.ready(self._library) else 0

    def collection(self, build: Build) -> str:
        """Return the name of the build's Chroma collection."""
        prefix = self._options.collection_papers if self._library is Library.PAPERS else self._options.collection_public
        return f"{prefix}__{build.fingerprint8}"

    def search(self, query: FloatArray, k: int, filters: Filters | None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending."""
        exact, build = self._exact, self._build
        if build is None or k < 1:
            return []
        ready = self._chroma.ready(self._library)
        if exact is not None and (filters or exact.count <= self._options.exact_unfiltered_limit or not ready):
            return exact.search(query, k, filters)
        if filters:
            return self._search_filtered(build, query, k, filters, ready=ready)
        return self._neighbours(build, query, k) if ready else []

    def _neighbours(self, build: Build, query: FloatArray, k: int) -> list[Scored]:
        hidden = self._hidden
        found = self._chroma.query(self.collection(build), query, k + min(len(hidden), k))
        return [hit for hit in found if hit.chunk_id not in hidden][:k]

    def _search_filtered(self, build: Build, query: FloatArray, k: int, filters: Filters, *, ready: bool) -> list[Scored]:
        few = self._loader.filtered_vectors(build, filters, FILTERED_SCAN + 1)
        if len(few.chunk_ids) <= FILTERED_SCAN:
            distances = cosine_distances(query, few.rows)
            return [Scored(few.chunk_ids[at], float(distances[at])) for at in top_k_smallest(distances, k)]
        if not ready:
            return []
        n = 4 * k
        while True:
            found = self._neighbours(build, query, n)
            matching = self._loader.matching(filters, [hit.chunk_id for hit in found])
            kept = [hit for hit in found if hit.chunk_id in matching]
            if len(kept) >= k or n >= OVERFETCH_LIMIT or len(found) < n:
                return kept[:k]
            n = min(4 * n, OVERFETCH_LIMIT)

    def fetch(self, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`, from the exact rows or else the catalog; ids without a vector are absent."""
        exact, build = self._exact, self._build or self._loader.live_build(self._library)
        found = exact.fetch(chunk_ids) if exact is not None else {}
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in found]
        if missing and build is not None:
            stored = self._loader.vectors(build, missing)
            found.update(zip(stored.chunk_ids, stored.rows, strict=True))
        return found

    def hide(self, chunk_ids: Sequence[int]) -> None:
        """Stop showing chunks at once; the projections drop them when they catch up."""
        with self._lock:
            self._hidden = self._hidden | frozenset(chunk_ids)
            if self._exact is not None:
                self._exact.drop(chunk_ids)

    # --- write

    def catch_up(self) -> None:
        """Apply every change the dense projections have not seen.

        Raises:
            DiskFull: No space; what was applied stays, the next call goes on.
        """
        with self._lock:
            build = self._loader.live_build(self._library)
            if build is None:
                last = self._log.last()
                self._log.set_mark(self._library, "exact", last)
                self._log.set_mark(self._library, "chroma", last)
                return
            if self._build is None or self._build.number != build.number:
                self._close_exact()
                self._build = build
            self._catch_up_exact(build)
            if self._chroma.ready(self._library):
                self.catch_up_chroma()

    def _catch_up_exact(self, build: Build) -> None:
        embedded = self._loader.embedded(self._library)
        path = self._exact_path(build)
        if embedded > self._options.exact_limit:
            if self._exact is not None or path.exists():
                self._exact = None
                remove_tree(path, self._steps, "exact.remove")
            self._log.set_mark(self._library, "exact", self._log.last())
            return
        exact = self._exact or self._open_exact(build, path)
        seq = exact.seq
        while changes := self._log.pending(self._library, seq, dense=True):
            self._apply_exact(exact, build, changes)
            seq = changes[-1].seq
        if exact.count != min(embedded, self.limit):
            log.warning("the exact rows of %s are %d, the catalog has %d: making them again", self._library, exact.count, embedded)
            seq = self._fill_exact(exact, build)
        if seq != exact.seq or self._exact is None:
            exact.save(seq)
        self._exact = exact
        self._log.set_mark(self._library, "exact", exact.seq)

    def _open_exact(self, build: Build, path: Path) -> ExactIndex:
        exact = ExactIndex(path, build.dimension, self._steps)
        documents, rows = self._loader.row_facts(self._library, exact.file_ids())
        exact.describe(documents, rows)
        return exact

    def _apply_exact(self, exact: ExactIndex, build: Build, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.kind == "correct":
                exact.describe(self._loader.document_facts(change.doc))
                continue
            for at in range(0, len(change.ids), LOAD_BATCH):
                ids = change.ids[at : at + LOAD_BATCH]
                stored = self._loader.vectors(build, ids)
                exact.drop(ids)
                room = max(0, self.limit - exact.count)
                exact.describe(stored.documents)
                exact.put(stored.chunk_ids[:room], stored.rows[:room], stored.facts[:room])

    def _fill_exact(self, exact: ExactIndex, build: Build) -> int:
        seq = self._log.last()
        exact.clear()
        after = 0
        while exact.count < self.limit:
            stored = self._loader.vectors_after(build, after, LOAD_BATCH)
            if not stored.chunk_ids:
                break
            room = self.limit - exact.count
            exact.describe(stored.documents)
            exact.put(stored.chunk_ids[:room], stored.rows[:room], stored.facts[:room])
            after = stored.chunk_ids[-1]
        return seq

    def _exact_path(self, build: Build) -> Path:
        return self._options.data_dir / "exact" / f"{self._library.value}-{build.number}"

    def _close_exact(self) -> None:
        self._exact = None
        self._hidden = frozenset()

    # --- chroma

    def catch_up_chroma(self) -> None:
        """Apply to Chroma every change it has not seen; the store is open."""
        with self._lock:
            build = self._build or self._loader.live_build(self._library)
            if build is None:
                return
            name = self.collection(build)
            mark = self._log.mark(self._library, "chroma")
            while changes := self._log.pending(self._library, mark, dense=True):
                ids = list(dict.fromkeys(i for change in changes for i in change.ids))
                for at in range(0, len(ids), LOAD_BATCH):
                    self._apply_chroma(build, name, ids[at : at + LOAD_BATCH])
                mark = changes[-1].seq
                self._log.set_mark(self._library, "chroma", mark)
            self._hidden = frozenset()

    def _apply_chroma(self, build: Build, name: str, ids: Sequence[int]) -> None:
        stored = self._loader.vectors(build, ids)
        present = set(stored.chunk_ids)
        self._chroma.delete(name, [chunk_id for chunk_id in ids if chunk_id not in present])
        room = max(0, self.limit - self._chroma.count(name))
        self._upsert(build, name, stored, room)

    def _upsert(self, build: Build, name: str, stored: VectorRows, room: int) -> None:
        fields = [(doc_id, facts.section) for doc_id, facts in zip(stored.doc_ids, stored.facts, strict=True)]
        self._chroma.upsert(name, stored.chunk_ids[:room], stored.rows[:room], fields[:room], build.embedding_model)

    def rebuild_chroma(self) -> None:
        """Fill the build's collection anew from the catalog, a batch at a time; searches do without Chroma meanwhile."""
        build = self._loader.live_build(self._library)
        if build is None:
            self._chroma.set_ready(self._library, True)
            return
        self._chroma.set_ready(self._library, False)
        name = self.collection(build)
        total = min(self._loader.embedded(self._library), self.limit)
        self._rebuild = BuildState("rebuilding", 0, total)
        with self._lock:
            self._chroma.forget(name)
            self._log.set_mark(self._library, "chroma", self._log.last())
        after = 0
        while True:
            stored = self._loader.vectors_after(build, after, LOAD_BATCH)
            done = self._chroma.count(name)
            if not stored.chunk_ids or done >= self.limit:
                break
            self._upsert(build, name, stored, self.limit - done)
            after = stored.chunk_ids[-1]
            self._rebuild = BuildState("rebuilding", self._chroma.count(name), total)
        with self._lock:
            self.catch_up_chroma()
            self._rebuild = None
            self._chroma.set_ready(self._library, True)

    def rebuild_state(self) -> BuildState | None:
        """Return the progress of a running rebuild; None when there is none."""
        return self._rebuild


class DenseVectorIndex:
    """The VectorIndex port over both libraries."""

    def __init__(self, libraries: Mapping[Library, DenseLibrary]) -> None:
        """Search `libraries`."""
        self._libraries = libraries

    def search(self, library: Library, query: FloatArray, k: int, filters: Filters | None = None) -> list[Scored]:
        """Return up to k chunks by cosine distance, ascending. `query` is float32 `[dim]`, norm 1."""
        return self._libraries[library].search(query, k, filters)

    def fetch(self, library: Library, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return stored rows `[dim]`; ids without a vector are absent."""
        return self._libraries[library].fetch(chunk_ids)

    def count(self, library: Library) -> int:
        """Return how many vectors can be searched."""
        return self._libraries[library].count
