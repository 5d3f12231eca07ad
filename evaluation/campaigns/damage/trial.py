"""One data directory under the real server: what it answers first, what it does with its store, and what is there afterwards."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from app.client import Json
from app.core.errors import Busy, ProviderUnreachable
from app.storage.store import IndexStore
from evaluation.campaigns.damage.kinds import Spoil
from evaluation.campaigns.damage.stores import LIBRARY, WORD, options_at, wholeness
from evaluation.lib.served import Served

FILLED = "the vector store is filled again from the catalog: "
FOUND = 0.99
"""Share of vectors that a search for themselves has to find: what damage that nothing notices
may cost."""

READY_S = 180.0
"""Longest wait until the store is ready: a rebuild of 4,000 vectors takes seconds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one data directory."""

    started: bool
    found_at_start: str
    """Why the start filled the store again; empty when it did not."""
    first_hits: int
    """Passages in the first answer to a search, moments after the start."""
    first_notices: tuple[str, ...]
    progress: tuple[str, ...]
    """What was said of the rebuild while it ran."""
    ready_s: float
    """Seconds from the first answer until the store was whole, as the server says."""
    vectors: int
    found_by_themselves: int
    """Vectors that a search for themselves finds, or an equal one, after the server has ended."""
    wrong: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every vector is listed, and as good as every one found by itself; a wrong row costs recall and no score."""
        return whole(self.vectors, self.found_by_themselves, self.wrong)


def serve(data_dir: Path) -> Trial:
    """Start the server on a data directory, watch it until its store is ready, stop it, and check the store."""
    server = Served(data_dir, VECTOR_CACHE_VECTORS="0", EMBEDDING_PROVIDER="minilm")
    server.start()
    try:
        first = _first_answer(server)
        progress, ready_s = _until_ready(server)
        started = server.process.poll() is None
    finally:
        server.close()
    vectors, found, wrong = wholeness(data_dir)
    return Trial(
        started=started,
        found_at_start=_said(server),
        first_hits=len(cast("Sequence[Json]", first["hits"])),
        first_notices=tuple(
            str(notice["code"]) for notice in cast("Sequence[Json]", first["notices"])
        ),
        progress=tuple(progress),
        ready_s=round(ready_s, 2),
        vectors=vectors,
        found_by_themselves=found,
        wrong=tuple(wrong),
    )


def _first_answer(server: Served) -> Json:
    """Search until the server answers."""
    while server.process.poll() is None:
        try:
            return server.client.search(WORD, LIBRARY.value, limit=5)
        except (ProviderUnreachable, Busy):
            time.sleep(0.01)
    raise SystemExit(f"the server ended: {server.log.read_text(errors='replace')[-800:]}")


def _until_ready(server: Served) -> tuple[list[str], float]:
    begun = time.perf_counter()
    said: list[str] = []
    while time.perf_counter() - begun < READY_S:
        libraries = cast("Sequence[Json]", server.client.libraries()["libraries"])
        state = next(
            str(library["build"]) for library in libraries if library["library"] == LIBRARY.value
        )
        if state == "ready":
            return said, time.perf_counter() - begun
        if not said or said[-1] != state:
            said.append(state)
        time.sleep(0.02)
    raise SystemExit(
        f"the store is not ready after {READY_S:.0f} s: {said[-3:]}"
        f" {server.log.read_text(errors='replace')[-800:]}"
    )


def _said(server: Served) -> str:
    """Return why the log says that the store was filled again."""
    lines = server.log.read_text(errors="replace").splitlines()
    return next((line.partition(FILLED)[2] for line in lines if FILLED in line), "")


def whole(vectors: int, by_themselves: int, wrong: Sequence[str]) -> bool:
    """Return whether all is listed and at least FOUND of it found."""
    return by_themselves >= FOUND * vectors and not wrong


def damaged_copy(base: Path, target: Path, spoil: Spoil) -> Path:
    """Copy a data directory and damage its store; return the copy."""
    shutil.copytree(base, target)
    spoil(target / "chroma")
    shutil.rmtree(target / "earlier", ignore_errors=True)
    return target


def check_and_repair(data_dir: Path) -> tuple[list[str], bool]:
    """Run `fsck` as after a stop, then `fsck --repair`; return the codes it found, and whether the store is whole afterwards."""
    with IndexStore(options_at(data_dir), vector_store="off", heal=False) as store:
        found: list[str] = [fault.code for fault in store.fsck.run().faults]
        if found:
            store.fsck.run(repair=True)
    vectors, by_themselves, wrong = wholeness(data_dir)
    return found, whole(vectors, by_themselves, wrong)
