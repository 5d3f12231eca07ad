"""Check the whole store against the catalog, and mend what can be mended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from app.core.errors import DocuMindError, IndexDamaged
from app.core.types import Library
from app.storage.catalog.reading import CatalogLoader
from app.storage.files.durable import BROKEN_MARK, Steps, utc_now
from app.storage.maintenance.fsck_catalog import BEYOND_REPAIR, CatalogCheck, Fault, FsckReport
from app.storage.maintenance.start import note_change, seen_change
from app.storage.opening import ask_database, ask_node, ask_object_store
from app.storage.options import IndexOptions
from app.storage.projector import Projector
from app.storage.vectors.library import DenseLibrary
from app.storage.vectors.replica import Replica
from app.storage.vectors.supervisor import StoreSupervisor
from app.storage.words.port import WordIndex

# Check the store of vectors: what it lists, and that it finds what it lists.


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


# Ask the engines that settings name, each by itself: PostgreSQL, Qdrant, object store.


@dataclass(frozen=True, slots=True)
class EngineState:
    """An engine that a setting names, and how it is now."""

    name: str
    setting: str
    detail: str
    """Its address and version; or why it cannot be used, with its address."""
    answers: bool


def engine_states(options: IndexOptions) -> Iterator[EngineState]:
    """Yield the state of each engine, and of each node of a search engine.

    Nothing is created or locked. An engine that no setting names is left out.
    """
    if options.database_url:
        yield _state("PostgreSQL", "DATABASE_URL", lambda: ask_database(options.database_url))
    for url in filter(None, options.search_url.split(",")):
        asked = partial(ask_node, url, options.search_api_key)
        yield _state("Qdrant", "SEARCH_URL", asked)
    if options.originals_url:
        yield _state(
            "object store", "ORIGINALS_URL", lambda: ask_object_store(options.originals_url)
        )


def _state(name: str, setting: str, ask: Callable[[], str]) -> EngineState:
    try:
        return EngineState(name, setting, ask(), answers=True)
    except DocuMindError as exc:
        return EngineState(name, setting, exc.message, answers=False)
