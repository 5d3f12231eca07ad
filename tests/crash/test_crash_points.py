"""The short form of `make crash-points`: the process ends at some of the write steps; a fresh one keeps every promise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.crash.forks import Forks
from tests.crash.trials import steps_of, try_steps
from tests.crash.workload import Journal

EVERY = int(os.environ.get("CRASH_EVERY", "59"))
"""Try every n-th step; `make crash-points` tries all. Odd, so that both sides of writes come up."""

WRITES = {
    "originals.fsync", "originals.rename", "originals.unlink", "catalog.documents", "catalog.vectors", "catalog.remove",
    "catalog.purge", "catalog.restore", "catalog.correct", "catalog.ledger", "catalog.job", "catalog.vacuum", "tantivy.commit",
    "tantivy.delete", "tantivy.delete_all", "tantivy.merge", "chroma.drop",
    "chroma.upsert", "chroma.delete", "chroma.move_aside", "purge.remove_broken",
}  # fmt: skip
"""Of ingest, re-ingest, deletion with and without grace, correction, backfill, a bulk batch,
rebuild and purge."""


@pytest.mark.timeout(1800)
def test_steps_can_be_the_last(forks: Forks, tmp_path: Path) -> None:
    steps = steps_of(forks, tmp_path)
    assert steps > 300
    assert WRITES - Journal.read(tmp_path / "whole.log").steps.keys() == set()
    assert [
        trial for trial in try_steps(forks, tmp_path, range(1, steps + 1, EVERY)) if trial.failure
    ] == []
