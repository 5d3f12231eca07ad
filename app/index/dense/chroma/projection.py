"""Keeps a library's Chroma collection in step with the catalog."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from app.core.types import Library
from app.index.catalog.changes import ChangeLog
from app.index.catalog.loading import Build, CatalogLoader, VectorRows
from app.index.dense.chroma.resting_store import Expected
from app.index.dense.chroma.store import BATCH, ChromaStore
from app.index.options import IndexOptions
from app.index.status import BuildState

SELF_QUERIES = 32
"""Stored vectors asked for themselves per collection at a start."""


class ChromaProjection:
    """The collection of a library's live build. Its owner serialises `catch_up`."""

    def __init__(
        self, library: Library, options: IndexOptions, change_log: ChangeLog, loader: CatalogLoader, chroma: ChromaStore
    ) -> None:
        """Serve `library` from `chroma`."""
        self._library = library
        self._prefix = options.collection_papers if library is Library.PAPERS else options.collection_public
        self._log = change_log
        self._loader = loader
        self._chroma = chroma
        self.rebuilding: BuildState | None = None
        """Progress of a running rebuild."""

    @property
    def ready(self) -> bool:
        """Whether the collection is whole and may be searched."""
        return self._chroma.ready(self._library)

    @property
    def applied(self) -> bool:
        """Whether the collection was ever completed; if not, its changes may be forgotten and it has to be rebuilt."""
        return self._log.mark(self._library, "chroma") > 0

    def collection(self, build: Build) -> str:
        """Return the name of the build's collection."""
        return f"{self._prefix}__{build.fingerprint8}"

    def expected(self, limit: int) -> Expected | None:
        """Return what the live build's collection should hold; None when that is nothing yet."""
        build = self._loader.live_build(self._library)
        if build is None or not self.applied:
            return None
        # In this order, for others may be writing: what is in the sample or the count and not in the collection is then uncertain.
        sample = self._loader.sample(build, SELF_QUERIES)
        embedded = self._loader.embedded(build)
        uncertain: set[int] = set()
        mark = self._log.mark(self._library, "chroma")
        while changes := self._log.pending(self._library, mark, dense=True):
            uncertain.update(i for change in changes for i in change.ids)
            mark = changes[-1].seq
        return Expected(
            collection=self.collection(build),
            build=build.number,
            dimension=build.dimension,
            count=min(embedded, limit),
            uncertain=tuple(sorted(uncertain)),
            capped=embedded > limit,
            sample=tuple(sample),
        )

    def catch_up(self, build: Build, limit: int) -> None:
        """Apply every change the collection has not seen; hold at most `limit` vectors.

        Raises:
            IndexDamaged: The store failed.
            DiskFull: No space; the next call goes on.
        """
        while self.step(build, limit):
            pass

    def step(self, build: Build, limit: int, changes: int = 1000) -> bool:
        """Apply the next changes, at most so many; return whether there were any.

        Raises:
            IndexDamaged: The store failed.
            DiskFull: No space; the next call goes on.
        """
        name = self.collection(build)
        pending = self._log.pending(self._library, self._log.mark(self._library, "chroma"), dense=True, limit=changes)
        if not pending:
            return False
        ids = list(dict.fromkeys(i for change in pending for i in change.ids))
        for at in range(0, len(ids), BATCH):
            batch = ids[at : at + BATCH]
            stored = self._loader.vectors(build, batch)
            present = set(stored.chunk_ids)
            self._chroma.delete(name, [chunk_id for chunk_id in batch if chunk_id not in present])
            self._upsert(build, stored, max(0, limit - self._chroma.count(name)))
        self._log.set_mark(self._library, "chroma", pending[-1].seq)
        return True

    def behind(self, build: Build, rows: int) -> int:
        """Return how many vectors fewer the collection holds than `rows`."""
        return rows - self._chroma.count(self.collection(build))

    def _upsert(self, build: Build, stored: VectorRows, room: int) -> None:
        fields = [(doc_id, facts.section) for doc_id, facts in zip(stored.doc_ids, stored.facts, strict=True)]
        self._chroma.upsert(
            self.collection(build), stored.chunk_ids[:room], stored.rows[:room], fields[:room], build.embedding_model
        )

    def forget_others(self, keep: Sequence[Build]) -> None:
        """Remove every collection of the library but those of these builds."""
        kept = {self.collection(build) for build in keep}
        for name in self._chroma.names():
            if name.startswith(f"{self._prefix}__") and name not in kept:
                self._chroma.forget(name)

    def fill(self, build: Build, limit: int, stop: threading.Event) -> bool:
        """Make the collection anew from the catalog, a batch at a time; `catch_up` has to follow.

        Args:
            build: The live build.
            limit: Most vectors to hold.
            stop: When set, the work ends early; the next start begins again.

        Returns:
            Whether it was completed.
        """
        self._chroma.set_ready(self._library, False)
        self._log.set_mark(self._library, "chroma", 0)
        self._log.save()  # 0 says that nothing is applied: if this is cut short, the next start begins again
        return self.fill_beside(build, limit, stop)

    def fill_beside(self, build: Build, limit: int, stop: threading.Event) -> bool:
        """Do as `fill`, while the library goes on being searched in another collection."""
        name = self.collection(build)
        seq = self._log.last()
        total = min(self._loader.embedded(build), limit)
        self.rebuilding = BuildState("rebuilding", 0, total)
        self._chroma.forget(name)
        after = 0
        while not stop.is_set():
            stored = self._loader.vectors_after(build, after, BATCH)
            done = self._chroma.count(name)
            if not stored.chunk_ids or done >= limit:
                self._log.set_mark(self._library, "chroma", seq)
                return True
            self._upsert(build, stored, limit - done)
            after = stored.chunk_ids[-1]
            self.rebuilding = BuildState("rebuilding", self._chroma.count(name), total)
        return False
