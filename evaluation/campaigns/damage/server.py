"""Run the server with every library too large for exact rows; log store events.

Probes, moves and openings.

python -m evaluation.campaigns.damage.server        # settings from the environment; DAMAGE_EVENTS names the file for the notes
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from app.cli.connection import base_url
from app.cli.serve import run
from app.index.dense import keeper as chroma_keeper
from app.index.dense.chroma.probe import ProbeFinding, probe
from app.index.dense.chroma.resting_store import Expected
from app.index.dense.chroma.store import ChromaStore
from app.index.files.lock import DirectoryLock
from app.index.options import IndexOptions
from app.settings import Settings


class LargeLibraries(Settings):
    """Settings under which vectors are searched in Chroma only."""

    def index(self) -> IndexOptions:
        """Return the options of storage."""
        return as_if_large(super().index())


def as_if_large(options: IndexOptions) -> IndexOptions:
    """Return options without exact rows."""
    return replace(options, exact_limit=0, exact_unfiltered_limit=0)


def inode(chroma: Path) -> int:
    """Return which file the store's database is; 0 when there is none."""
    database = chroma / "chroma.sqlite3"
    return database.stat().st_ino if database.exists() else 0


def watch(events: TextIO) -> None:
    """Note every probe and every opening from now on."""

    def note(event: str, **values: object) -> None:
        events.write(json.dumps({"event": event, **values}) + "\n")
        events.flush()

    def watched_probe(
        chroma: Path, catalog: Path, expected: list[Expected], *, stop: threading.Event | None = None, **how: bool
    ) -> ProbeFinding:
        finding = probe(chroma, catalog, expected, stop=stop, **how)
        note("probe", inode=inode(chroma), problems=finding.problems)
        return finding

    opening = ChromaStore.open

    def watched_open(store: ChromaStore) -> None:
        note("open", inode=inode(store.path))
        opening(store)

    vars(chroma_keeper)["probe"] = watched_probe
    setattr(ChromaStore, "open", watched_open)  # noqa: B010  # a method is exchanged on purpose


def main() -> int:
    """Serve until told to stop."""
    settings = LargeLibraries()
    with (
        Path(os.environ["DAMAGE_EVENTS"]).open("a", encoding="utf-8") as events,
        DirectoryLock([settings.data_dir, settings.chroma_dir], base_url(settings)) as lock,
    ):
        watch(events)
        run(settings, lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
