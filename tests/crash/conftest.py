"""Fixtures of crash tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage.options import IndexOptions
from tests.crash.forks import Forks


@pytest.fixture
def options(tmp_path: Path) -> IndexOptions:
    """A data directory of its own; one indexing thread keeps tests light."""
    return IndexOptions(
        tmp_path / "data",
        tmp_path / "data" / "chroma",
        tantivy_threads=1,
        tantivy_heap_bytes=15_000_000,
    )


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Forked children for trials."""
    with Forks() as server:
        yield server
