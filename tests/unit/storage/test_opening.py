"""Opening a library is the same work however much it holds, beside the checks that stop at a size."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from app.core.types import Library
from app.storage.maintenance import start
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft

EVERY = 20
"""Instructions of SQLite's machine between two calls of a progress handler."""


class Steps:
    """Counts instructions of every connection opened meanwhile, in units of EVERY."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, connection: sqlite3.Connection, _: object) -> None:
        connection.set_progress_handler(self._step, EVERY)

    def _step(self) -> int:
        self.count += 1
        return 0


@pytest.fixture
def steps() -> Iterator[Steps]:
    steps = Steps()
    event.listen(Engine, "connect", steps.watch)
    yield steps
    event.remove(Engine, "connect", steps.watch)


def test_opening_reads_no_more_of_a_larger_catalog(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "CATALOG_CHECKED_AT_START_BYTES", 0)
    counts = []
    for size in (20, 400):
        options = IndexOptions(tmp_path / str(size), tmp_path / str(size) / "chroma")
        with IndexStore(options, vector_store="off") as store:
            store.writer.write(
                [make_draft(f"{n}.txt", f"text {n}", library=Library.PUBLIC) for n in range(size)]
            )
        steps.count = 0
        with IndexStore(options, vector_store="off"):
            counts.append(steps.count)
    assert counts[1] <= counts[0] + 10
