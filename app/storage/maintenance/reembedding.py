"""Re-embed a library: a new build next to the live one, swap, and revert.

The catalog is filled first (`app.ingest.embedding`), then the projections are
made from it, then one transaction changes the live build. Until that transaction the old build
serves; after a crash the vectors so far are kept and the projections are made again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.errors import Conflict
from app.core.types import Fingerprint, Library
from app.storage.catalog.documents import count
from app.storage.catalog.rows import Build
from app.storage.catalog.vectors import make_live
from app.storage.maintenance.parts import Parts
from app.storage.vectors.library import DenseVectorIndex


class Reembedding(Parts):
    """Makes another build of a library's vectors, and lets it serve."""

    def view(self, number: int | None) -> DenseVectorIndex:
        """Return a search of one build; of the live ones without a number."""
        return DenseVectorIndex(self.projector.dense, number)

    def begin(self, library: Library, fingerprint: Fingerprint) -> Build:
        """Return the build to fill; remove one of another kind with its files.

        Raises:
            Conflict: The live vectors are of this kind already.
        """
        live = self.builds.of(library, "live")
        if live is not None and live.fingerprint == fingerprint:
            raise Conflict(
                f"library {library.value!r} is embedded with {fingerprint.embedding_model!r} and"
                " the same settings already"
            )
        staged = self.builds.stage(library, fingerprint)
        self.builds.delete_unused(library)
        with self.supervisor.paused():
            self.projector.dense[library].delete_others()
        return staged

    def missing(self, library: Library, number: int) -> int:
        """Return how many live chunks have no vector in a build."""
        build = self.builds.numbered(library, number)
        chunks = count(self.database, library).chunks
        return max(0, chunks - (self.loader.embedded(build) if build else 0))

    @contextmanager
    def beside(self, library: Library, number: int, stop: threading.Event) -> Iterator[bool]:
        """Keep a staged build's projections in step during the block; yield whether they are whole.

        The work ends early when `stop` is set.

        Raises:
            DiskFull: No space; the build that serves is untouched.
        """
        build = self.builds.numbered(library, number)
        if build is None:
            raise Conflict(
                f"build {number} of library {library.value!r} is gone: start the re-embedding again"
            )
        dense = self.projector.dense[library]
        with self.supervisor.paused(), dense.replica.staging:
            try:
                yield dense.stage(build, stop)
            finally:
                dense.unstage()

    def swap(self, library: Library, number: int) -> None:
        """Make the staged build live and the old one previous, in that block.

        Raises:
            DiskFull: No space; the old build serves on.
        """
        dense = self.projector.dense[library]
        since = self.projector.log.last()
        differing = self.builds.differing(library, number)

        def commit(seq: int) -> None:
            with self.database.write("swap_build") as sql:
                make_live(sql, library, number, differing, since)
                self.projector.log.set_mark_in(sql, library, dense.replica.kind, seq)

        dense.take_over(commit)

    def complete(self, library: Library, stop: threading.Event) -> None:
        """Fill the collection of the build that serves now, if it could not be before."""
        with self.supervisor.paused():
            self.projector.dense[library].complete_store(stop)

    def revert(self, library: Library, stop: threading.Event) -> tuple[Build, Build]:
        """Make the previous build live again; return both builds, the present first.

        The present build becomes the previous one. Nothing is embedded. Documents that came since
        are found by words until the backfill has embedded them.

        Raises:
            Conflict: There is no previous build, or it was stopped.
        """
        live, previous = self.builds.of(library, "live"), self.builds.of(library, "previous")
        if live is None or previous is None:
            raise Conflict(f"library {library.value!r} has no previous vectors to go back to")
        self.builds.stage(library, previous.fingerprint)
        with self.beside(library, previous.number, stop) as complete:
            if not complete:
                raise Conflict(
                    "stopped before the previous vectors could be searched; run it again"
                )
            self.swap(library, previous.number)
        self.complete(library, stop)
        return live, previous

    def delete_others(self, library: Library) -> int:
        """Remove the previous and any unfinished build with files; return how many vectors went."""
        removed = self.builds.delete_others(library)
        with self.supervisor.paused():
            self.projector.dense[library].delete_others()
        return removed
