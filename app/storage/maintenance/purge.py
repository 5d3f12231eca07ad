"""Purge: afterwards no file of the data directory holds deleted bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from app.core.documents import OUT_OF_REACH
from app.core.types import Library
from app.storage.files.durable import BROKEN_MARK, delete_file, delete_tree
from app.storage.maintenance.parts import Parts


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """Results of a purge; sizes of the whole data directory, in bytes."""

    documents: int
    """Deleted documents whose grace was over and whose rows went now."""
    rebuilt: tuple[str, ...]
    """Libraries whose projections were rebuilt without the deleted documents."""
    broken_removed: int
    """Damaged stores that had been moved aside, removed now."""
    bytes_before: int
    bytes_after: int
    out_of_reach: tuple[str, ...] = OUT_OF_REACH


class Purger(Parts):
    """Purges a store."""

    def run(self) -> PurgeReport:
        """Purge what is due, rebuild affected projections, and compact the catalog.

        Searches go on: the lexical index is renewed a batch at a time and finds every document at
        every moment, and so does the cache; a library too large for it has no dense search while
        its collection is filled.

        Raises:
            DiskFull: Compacting the catalog needs as much space again as it takes.
        """
        before = self._size()
        documents = self.writer.purge_due()
        deletions = {library: self.writer.deleted_at(library) for library in Library}
        libraries = [library for library, at in deletions.items() if at is not None]
        for library in libraries:
            self.projector.apply(library)
            self.projector.words[library].refresh()
            self.projector.dense[library].compact_cache()
        if libraries and self.options.stored:
            # Stores keep deleted vectors (of Chroma: docs/facts/chroma.md): only a new one, in a
            # process that never held them, is free of them.
            self.supervisor.refill("a purge fills it without deleted vectors")
        removed = self._delete_broken()
        for library, at in deletions.items():
            if at is not None:
                self.writer.mark_purged(library, at)
        self.projector.log.save()
        self.database.vacuum()
        return PurgeReport(
            documents, tuple(library.value for library in libraries), removed, before, self._size()
        )

    def _delete_broken(self) -> int:
        removed = 0
        chroma = self.options.chroma_dir
        for root in {self.options.data_dir, chroma, chroma.parent}:
            for path in [*root.glob(f"*{BROKEN_MARK}*"), *root.glob(f"*/*{BROKEN_MARK}*")]:
                if _is_ours(path):
                    remove = delete_tree if path.is_dir() else delete_file
                    remove(path, self.steps, "purge.remove_broken")
                    removed += 1
        return removed

    def _size(self) -> int:
        roots = [self.options.data_dir]
        if self.options.data_dir not in self.options.chroma_dir.parents:
            roots.append(self.options.chroma_dir)
        return sum(
            path.stat().st_size for root in roots for path in root.rglob("*") if path.is_file()
        )


def _is_ours(path: Path) -> bool:
    """Return whether `move_aside` gave the name, and not a person in a shared directory."""
    name, _, stamp = path.name.partition(BROKEN_MARK)
    return bool(name) and stamp[:8].isdecimal() and stamp[8:9] == "T"
