"""Fills a vector cache from the catalog and keeps it in step."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from app.core.types import Library
from app.index.catalog.build_rows import Build
from app.index.catalog.changes import Change, ChangeLog
from app.index.catalog.loading import CatalogLoader
from app.index.dense.cache import VectorCache

log = logging.getLogger(__name__)

LOAD_BATCH = 1000
"""Vectors per read from the catalog."""

FILLED_AT_ONCE = 20_000
"""A cache up to this size is filled before the store opens (0.4 s); a larger one while it
serves."""


class CacheFeed:
    """The cache of one build, while the build is small enough.

    The owner serialises the calls that write.
    """

    def __init__(
        self,
        library: Library,
        build: Build,
        most: int,
        change_log: ChangeLog,
        loader: CatalogLoader,
    ) -> None:
        """Serve `build`; nothing is read before `catch_up`.

        Args:
            library: Whose build.
            build: Which vectors.
            most: Builds of more vectors have no cache.
            change_log: Where changes come from.
            loader: Where vectors come from.
        """
        self._library = library
        self._build = build
        self._most = most
        self._log = change_log
        self._loader = loader
        self._applied = 0
        self.cache: VectorCache | None = None
        """The rows; None while there are none in memory."""

    @property
    def fits(self) -> bool:
        """Return whether the build is small enough for a cache."""
        return self._most > 0 and self._loader.embedded(self._build) <= self._most

    def catch_up(self, limit: int) -> None:
        """Fill the cache, or apply every new change; hold at most `limit` rows.

        A build that outgrew the limit has no cache.
        """
        if not self.fits:
            self.release()
            return
        if self.cache is None:
            self.publish(*self.read(limit))
        if self.cache is not None:
            self._follow(self.cache, limit)

    def read(self, limit: int) -> tuple[VectorCache, int]:
        """Read up to `limit` vectors, and the last change they include.

        Others may write while it reads.
        """
        applied = self._log.last()
        self._log.hold(self._library, self._holder, applied)
        cache = VectorCache(self._build.dimension, min(limit, self._loader.embedded(self._build)))
        after = 0
        while cache.count < limit:
            stored = self._loader.vectors_after(self._build, after, LOAD_BATCH)
            if not stored.chunk_ids:
                break
            room = limit - cache.count
            cache.describe(stored.documents)
            cache.put(stored.chunk_ids[:room], stored.rows[:room], stored.facts[:room])
            after = stored.chunk_ids[-1]
        return cache, applied

    def publish(self, cache: VectorCache, applied: int) -> None:
        """Let searches use what `read` returned."""
        self.cache, self._applied = cache, applied

    @property
    def _holder(self) -> str:
        return f"cache of build {self._build.number}"

    def _follow(self, cache: VectorCache, limit: int) -> None:
        while True:
            while changes := self._pending():
                self._apply(cache, changes, limit)
                self._applied = changes[-1].seq
            embedded = self._loader.embedded(self._build)
            if (
                not self._pending()
            ):  # counted after the last change, and nothing was written while it was
                break
        self._log.hold(self._library, self._holder, self._applied)
        if cache.count != min(embedded, limit):
            log.warning(
                "the cache of %s has %d rows, the catalog %d: filling it again",
                self._library,
                cache.count,
                embedded,
            )
            self.publish(*self.read(limit))
        cache.compact()

    def _pending(self) -> Sequence[Change]:
        return self._log.pending(self._library, self._applied, dense=True)

    def _apply(self, cache: VectorCache, changes: Sequence[Change], limit: int) -> None:
        for change in changes:
            if change.kind == "correct":
                cache.describe(self._loader.document_facts(change.doc))
                continue
            for at in range(0, len(change.ids), LOAD_BATCH):
                ids = change.ids[at : at + LOAD_BATCH]
                stored = self._loader.vectors(self._build, ids)
                cache.hide(ids)
                room = max(0, limit - cache.count)
                cache.describe(stored.documents)
                cache.put(stored.chunk_ids[:room], stored.rows[:room], stored.facts[:room])

    def compare(self, limit: int) -> list[str]:
        """Return differences of cache and catalog, a line a chunk; empty without cache."""
        cache = self.cache
        if cache is None:
            return []
        wanted, after = set[int](), 0
        while ids := self._loader.vectors_after(self._build, after, LOAD_BATCH).chunk_ids:
            wanted.update(ids)
            after = ids[-1]
        held = set(cache.ids())
        wrong = [
            f"chunk {chunk_id} is cached but has no vector" for chunk_id in sorted(held - wanted)
        ]
        if len(held) < min(len(wanted), limit):
            wrong += [f"chunk {chunk_id} is not cached" for chunk_id in sorted(wanted - held)]
        return wrong

    def release(self) -> None:
        """Free the memory; changes are no longer kept for it."""
        self.cache = None
        self._log.hold(self._library, self._holder, None)
