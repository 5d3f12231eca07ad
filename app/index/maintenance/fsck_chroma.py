"""Check Chroma: its files, its ids, its vectors, and that it finds them.

A store that this process serves from is never opened by a second one, not even by the probe: opening may write to it, and two
writers destroy it (docs/facts/chroma.md). Its files are then read while writers wait, and it is asked through the open client.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import IndexDamaged
from app.core.types import FloatArray
from app.index.catalog.loading import Build, CatalogLoader
from app.index.dense.chroma.probe import probe, queued
from app.index.dense.chroma.resting_store import Expected
from app.index.dense.chroma.self_query import too_many
from app.index.dense.chroma.store import ChromaStore
from app.index.dense.keeper import ChromaKeeper
from app.index.files.durable import BROKEN_MARK
from app.index.maintenance.fsck_report import Fault
from app.index.options import IndexOptions

DATABASE = "chroma.sqlite3"
ASKED = 1_000
"""Vectors per collection that an open store is asked for; a store at rest is asked by the probe, which compares all."""


@dataclass(frozen=True, slots=True)
class ChromaCheck:
    """Compares the vector store with the catalog."""

    keeper: ChromaKeeper
    chroma: ChromaStore
    loader: CatalogLoader
    catalog: Path
    options: IndexOptions

    def run(self, *, repair: bool) -> Iterator[Fault]:
        """Yield faults; a store that is being made again right now is not looked at."""
        with self.keeper.at_rest() as at_rest:
            if not at_rest:
                return
            expected = self.keeper.expected()
            faults = self._faults(expected, repair=repair) if expected else []
        broken = [path.name for path in self.options.data_dir.rglob(f"*{BROKEN_MARK}*")] if expected else []
        if faults and repair:
            self.keeper.remake("; ".join(fault.detail for fault in faults[:3]))
        if broken:
            yield Fault("leftovers", "", len(broken), f"{broken[0]} was moved aside; documind purge removes it", repaired=True)
        yield from faults

    def _faults(self, expected: list[Expected], *, repair: bool) -> list[Fault]:
        if not (self.options.chroma_dir / DATABASE).exists() and all(want.count <= len(want.uncertain) for want in expected):
            return []  # nothing is in it, so that it is not there is no fault: it is made when it is needed
        opened = self.chroma.opened
        finding = probe(self.options.chroma_dir, self.catalog, expected, compare_all=True, open_store=not opened)
        problems = list(finding.problems)
        if opened and finding.healthy:
            problems += [problem for want in expected if (problem := self._not_held(want))]
        faults = [Fault("chroma_store", "", len(problems), "; ".join(problems[:3]), repair)] if problems else []
        for want in expected:
            faults += self._ids(want, repair=repair)
        return faults

    def _not_held(self, want: Expected) -> str:
        """Ask the open store for vectors by id, logged ones too, and some by search."""
        build = self.loader.build(want.build)
        if build is None:
            return ""
        ids = sorted(self.loader.vector_ids(want.build) - set(want.uncertain))
        sample = self._rows(build, ids[:: max(1, len(ids) // ASKED)])
        every = {**sample, **self._rows(build, queued(self.options.chroma_dir, want))}
        try:
            if want.capped:
                every = self.chroma.held_of(want.collection, every)
                sample = {chunk_id: row for chunk_id, row in sample.items() if chunk_id in every}
            if wrong := self.chroma.differing(want.collection, every):
                return f"{want.collection} does not hold the vector of chunk {wrong[0]}"
            missed = self.chroma.unfound(want.collection, sample)
        except IndexDamaged as exc:
            return exc.message
        if too_many(len(missed), len(sample)):
            return f"{want.collection} finds {len(sample) - len(missed)} of {len(sample)} of its vectors"
        return ""

    def _rows(self, build: Build, chunk_ids: Sequence[int]) -> dict[int, FloatArray]:
        stored = self.loader.vectors(build, chunk_ids)
        return dict(zip(stored.chunk_ids, stored.rows, strict=True))

    def _ids(self, want: Expected, *, repair: bool) -> Iterator[Fault]:
        library = want.collection.split("__", maxsplit=1)[0]
        held = collection_ids(self.options.chroma_dir, want.collection)
        wanted = self.loader.vector_ids(want.build) - set(want.uncertain)
        missing, phantom = wanted - held, held - wanted - set(want.uncertain)
        if missing and len(held) < want.count:
            yield Fault("chroma_missing", library, len(missing), f"chunk {min(missing)}", repair)
        if phantom:
            yield Fault("chroma_phantom", library, len(phantom), f"chunk {min(phantom)}", repair)


def collection_ids(chroma: Path, collection: str) -> set[int]:
    """Return a collection's chunk ids from its database, without opening the store.

    Empty when unreadable.
    """
    database = chroma / DATABASE
    if not database.exists():
        return set()
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = connection.execute(
            "SELECT e.embedding_id FROM embeddings e JOIN segments s ON s.id = e.segment_id"
            " JOIN collections c ON c.id = s.collection WHERE s.scope = 'METADATA' AND c.name = ?",
            (collection,),
        )
        return {int(row[0]) for row in rows if str(row[0]).isdecimal()}
    except sqlite3.DatabaseError:
        return set()
    finally:
        connection.close()
