"""Watch one data directory under the server: answers, store, and its end."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from app.client import Json
from app.core.errors import Busy, ProviderUnreachable
from app.index.store import IndexStore
from evaluation.campaigns.damage.kinds import Spoil
from evaluation.campaigns.damage.stores import LIBRARY, WORD, options_at, wholeness
from evaluation.lib.served import Served

READY_S = 180.0
"""Longest wait until the store is ready: a rebuild of 4,000 vectors takes seconds."""


class DamagedServer(Served):
    """The real server with watched probes and openings."""

    command = (sys.executable, "-m", "evaluation.campaigns.damage.server")


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one data directory."""

    started: bool
    found_at_start: str
    """What the probe said; empty when it found nothing."""
    opened_unprobed: bool
    """Whether the store was ever opened without a probe of that very file having passed."""
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
        """Return whether every vector finds itself and nothing else is wrong."""
        return self.vectors == self.found_by_themselves and not self.wrong


def serve(data_dir: Path) -> Trial:
    """Start a server on a data directory, await its store, stop it, check the store."""
    events = data_dir.with_suffix(".events")
    server = DamagedServer(data_dir, DAMAGE_EVENTS=str(events), EMBEDDING_PROVIDER="minilm")
    server.start()
    try:
        first = _first_answer(server)
        progress, ready_s = _until_ready(server)
        started = server.process.poll() is None
    finally:
        server.close()
    noted = [cast("Json", json.loads(line)) for line in events.read_text("utf-8").splitlines()]
    problems = [problem for event in noted if event["event"] == "probe" for problem in cast("Sequence[str]", event["problems"])]
    moved = [] if problems else _said_gone(server)
    vectors, found, wrong = wholeness(data_dir)
    return Trial(
        started=started,
        found_at_start="; ".join([*problems[:2], *moved]),
        opened_unprobed=opened_unprobed(noted),
        first_hits=len(cast("Sequence[Json]", first["hits"])),
        first_notices=tuple(str(notice["code"]) for notice in cast("Sequence[Json]", first["notices"])),
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
        state = next(str(library["build"]) for library in libraries if library["library"] == LIBRARY.value)
        if state == "ready":
            return said, time.perf_counter() - begun
        if not said or said[-1] != state:
            said.append(state)
        time.sleep(0.02)
    raise SystemExit(f"the store is not ready after {READY_S:.0f} s: {said[-3:]} {server.log.read_text(errors='replace')[-800:]}")


def _said_gone(server: Served) -> list[str]:
    """Return what the log says of a store that was not there to be probed."""
    lines = server.log.read_text(errors="replace").splitlines()
    return [line for line in lines if "made again from the catalog" in line or "making it again" in line][:1]


def opened_unprobed(noted: Sequence[Mapping[str, object]]) -> bool:
    """Return whether a store was opened without a clean probe of that file."""
    sound: set[object] = set()
    for event in noted:
        if event["event"] == "probe" and not event["problems"]:
            sound.add(event["inode"])
        if event["event"] == "open" and event["inode"] and event["inode"] not in sound:
            return True
    return False


def damaged_copy(base: Path, target: Path, spoil: Spoil) -> Path:
    """Copy a data directory and damage its store; return the copy."""
    shutil.copytree(base, target)
    spoil(target / "chroma")
    shutil.rmtree(target / "earlier", ignore_errors=True)
    return target


def check_and_repair(data_dir: Path) -> tuple[list[str], bool]:
    """Run `fsck`, then `fsck --repair`; return codes and whether the store is whole."""
    with IndexStore(options_at(data_dir), vector_store="off", heal=False) as store:
        found: list[str] = [fault.code for fault in store.fsck.run().faults]
        if found:
            store.fsck.run(repair=True)
    vectors, by_themselves, wrong = wholeness(data_dir)
    return found, vectors == by_themselves and not wrong
