"""Fixtures of crash tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.index.options import IndexOptions


@pytest.fixture
def options(tmp_path: Path) -> IndexOptions:
    """A data directory of its own; one indexing thread keeps tests light."""
    return IndexOptions(tmp_path / "data", tmp_path / "data" / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)


FORKING = ("test_crash_points.py", "test_disk_full.py")
"""Their trials are forked from this process, which must not have opened a Chroma store: its threads do not survive a fork."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what forks before what opens stores in this process."""
    items.sort(key=lambda item: item.path.name not in FORKING)
