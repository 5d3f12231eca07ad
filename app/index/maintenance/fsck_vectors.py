"""Check the store of vectors: what it lists, and that it finds what it lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.index.catalog.loading import CatalogLoader
from app.index.dense.library import DenseLibrary
from app.index.dense.replica import Replica
from app.index.dense.supervisor import StoreSupervisor
from app.index.files.durable import BROKEN_MARK
from app.index.maintenance.fsck_report import Fault
from app.index.options import IndexOptions


@dataclass(frozen=True, slots=True)
class VectorStoreCheck:
    """Compares the store of vectors with the catalog.

    No score depends on the store, so its bytes are not compared.
    """

    supervisor: StoreSupervisor
    loader: CatalogLoader
    dense: Mapping[Library, DenseLibrary]
    options: IndexOptions

    def run(self, *, repair: bool) -> Iterator[Fault]:
        """Yield faults; a store that is being brought up right now is not looked at."""
        with self.supervisor.at_rest() as at_rest:
            if not at_rest:
                return
            faults = self._faults(repair=repair)
            used = any(
                self.loader.live_build(library) and self.dense[library].replica.applied
                for library in Library
            )
        broken = (
            [path.name for path in self.options.data_dir.rglob(f"*{BROKEN_MARK}*")] if used else []
        )
        if faults and repair:
            self.supervisor.refill("; ".join(fault.detail for fault in faults[:3]))
        if broken:
            yield Fault(
                "leftovers",
                "",
                len(broken),
                f"{broken[0]} was moved aside; documind purge removes it",
                repaired=True,
            )
        yield from faults

    def _faults(self, *, repair: bool) -> list[Fault]:
        try:
            return [
                fault
                for library in Library
                for fault in self._of(library, self.dense[library].replica, repair=repair)
            ]
        except IndexDamaged as exc:
            return [Fault("vectors_store", "", 1, exc.message, repair)]

    def _of(self, library: Library, replica: Replica, *, repair: bool) -> Iterator[Fault]:
        build = self.loader.live_build(library)
        if build is None or not replica.applied:
            return
        uncertain = replica.uncertain()
        wanted = self.loader.vector_ids(build.number) - uncertain
        if not wanted and not self.options.stored:
            # nothing is in it, so that it is not there is no fault: it is made when it is needed
            return
        held = replica.store.ids(replica.collection(build))
        missing, phantom = wanted - held, held - wanted - uncertain
        if missing and len(held) < min(len(wanted), replica.limit):
            yield Fault(
                "vectors_missing", library.value, len(missing), f"chunk {min(missing)}", repair
            )
        elif phantom:
            yield Fault(
                "vectors_phantom", library.value, len(phantom), f"chunk {min(phantom)}", repair
            )
        elif problem := replica.problem():
            yield Fault("vectors_store", library.value, 1, problem, repair)
