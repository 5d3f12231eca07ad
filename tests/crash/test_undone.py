"""The short form of `make bench-undone`: deletions among jobs under way, against a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.campaigns.undone import run


@pytest.mark.parametrize("seed", [2, 3])
def test_no_deletion_is_undone(tmp_path: Path, seed: int) -> None:
    wrong, done = run(tmp_path, 8, seed)
    assert wrong == []
    assert done["delete"] > 0
    assert done["ingest done"] > 0
