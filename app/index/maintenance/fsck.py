"""Check the whole store against the catalog, and mend what can be mended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.core.types import Library
from app.index.catalog.loading import CatalogLoader
from app.index.dense.library import DenseLibrary
from app.index.files.durable import utc_now
from app.index.files.steps import Steps
from app.index.lexical.port import WordIndex
from app.index.maintenance.fsck_catalog import CatalogCheck
from app.index.maintenance.fsck_report import BEYOND_REPAIR, Fault, FsckReport
from app.index.maintenance.fsck_vectors import VectorStoreCheck
from app.index.maintenance.start_checks import note_change, seen_change
from app.index.projector import Projector

Recover = Callable[[Sequence[str]], Mapping[str, str]]
"""Given the SHA-256 of originals in no document, makes an entry for each; returns the reason by
SHA-256 where it could not."""

CONTENT_SAMPLE = 200
"""Chunks per library that are asked for their own words."""


@dataclass(frozen=True, slots=True)
class Fsck:
    """All checks of a store; a repair needs exclusive use."""

    catalog: CatalogCheck
    loader: CatalogLoader
    projector: Projector
    lexical: Mapping[Library, WordIndex]
    dense: Mapping[Library, DenseLibrary]
    vectors: VectorStoreCheck
    steps: Steps

    def run(self, *, repair: bool = False, recover: Recover | None = None) -> FsckReport:
        """Check everything; with `repair`, fix projections and counters.

        Projections from the catalog, counters from the rows.

        Args:
            repair: Whether to repair.
            recover: Makes an entry for each original that the catalog does not know; without it
                they are reported only.

        Returns:
            The faults in the order they were found. The catalog comes first: what is wrong there
                would mislead the rest.
        """
        started, clock = utc_now(), time.monotonic()
        checked: dict[str, int] = {}
        faults: list[Fault] = []
        with self.projector.writing:
            for library in Library:
                self.projector.settle_lexical(library)
            faults += self.catalog.run(repair=repair, checked=checked)
            if not any(fault.code == "catalog_pages" for fault in faults):
                faults += self._foreign(repair=repair)
                texts_hold = not any(fault.code in BEYOND_REPAIR for fault in faults)
                for library in Library:
                    if texts_hold:
                        faults += self._lexical(library, repair=repair, checked=checked)
                    faults += self._cache(library, repair=repair)
                faults += self.vectors.run(repair=repair)
        if not any(fault.code == "catalog_pages" for fault in faults):
            faults += self._unknown(
                recover if repair else None
            )  # without the write lock: reading files takes its time
        return FsckReport(
            started, round(time.monotonic() - clock, 3), repair, tuple(faults), checked
        )

    def _foreign(self, *, repair: bool) -> Iterator[Fault]:
        """Find indexes of a newer catalog; a repair fills the vectors from this one."""
        last, seen = self.catalog.log.last(), seen_change(self.vectors.options.data_dir)
        if seen <= last:
            return
        if repair:
            if self.vectors.options.stored:
                self.vectors.supervisor.refill("the indexes are of another catalog")
            note_change(self.vectors.options.data_dir, last, self.steps)
        yield Fault(
            "catalog_older", "", seen - last, f"the indexes know change {seen} of {last}", repair
        )

    def _lexical(
        self, library: Library, *, repair: bool, checked: dict[str, int]
    ) -> Iterator[Fault]:
        index = self.lexical[library]
        damaged = index.damaged()
        if damaged:  # asking such an index would say nothing
            if repair:
                self.projector.rebuild_lexical(library, self.loader.documents(library))
            yield Fault("lexical_files", library.value, len(damaged), damaged[0], repair)
            return
        held, wanted = index.ids(), self.loader.live_chunk_ids(library)
        checked["lexical"] = checked.get("lexical", 0) + len(held)
        faults: list[Fault] = []
        missing, phantom = wanted - set(held), set(held) - wanted
        repeated = len(held) - len(set(held))
        awaited = self._awaited(library) if missing or phantom else set()
        if missing:
            detail, waits = f"chunk {min(missing)}", missing <= awaited
            faults.append(
                Fault("lexical_missing", library.value, len(missing), detail, repair, waits)
            )
        if phantom or repeated:
            detail = f"chunk {min(phantom)}" if phantom else "chunks that are there twice"
            waits, count = not repeated and phantom <= awaited, len(phantom) + repeated
            faults.append(Fault("lexical_phantom", library.value, count, detail, repair, waits))
        sample = sorted(wanted - missing)
        step = max(1, len(sample) // CONTENT_SAMPLE)
        wrong = [
            chunk_id
            for chunk_id, text in self.loader.chunk_texts(sample[::step])
            if not index.finds(chunk_id, text)
        ]
        if wrong:
            faults.append(
                Fault(
                    "lexical_content",
                    library.value,
                    len(wrong),
                    f"chunk {wrong[0]} is not found by its words",
                    repair,
                )
            )
        if faults and repair:
            self.projector.rebuild_lexical(library, self.loader.documents(library))
        yield from faults

    def _awaited(self, library: Library) -> set[int]:
        """Return the chunks of changes that the lexical index lacks; a start replays them."""
        log, awaited = self.catalog.log, set[int]()
        after = log.mark(library, "lexical")
        while changes := log.pending(library, after, dense=False):
            after = changes[-1].seq
            for change in changes:
                awaited.update(change.ids)
            for document in self.loader.lexical_documents([change.doc for change in changes]):
                awaited.update(chunk_id for chunk_id, _, _ in document.chunks)
        return awaited

    def _unknown(self, recover: Recover | None) -> Iterator[Fault]:
        unknown = self.catalog.unlinks.unknown()
        refused = recover(unknown) if recover is not None and unknown else {}
        recovered = 0 if recover is None else len(unknown) - len(refused)
        if recovered:
            yield Fault(
                "original_unknown",
                "",
                recovered,
                "in no document; an entry was made for each",
                repaired=True,
            )
        if refused:
            name, reason = next(iter(refused.items()))
            yield Fault(
                "original_unknown", "", len(refused), f"{name}.bin stays without an entry: {reason}"
            )
        elif unknown and recover is None:
            yield Fault(
                "original_unknown",
                "",
                len(unknown),
                f"{unknown[0]}.bin is in no document; --repair makes an entry for it",
            )

    def _cache(self, library: Library, *, repair: bool) -> Iterator[Fault]:
        dense = self.dense[library]
        if wrong := dense.compare_cache():
            if repair:
                dense.refill_cache()
            yield Fault("vector_cache", library.value, len(wrong), wrong[0], repair)
