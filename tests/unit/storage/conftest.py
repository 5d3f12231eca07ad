"""Fixtures of storage tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.storage.options import IndexOptions
from app.storage.store import IndexStore

OpenStore = Callable[..., IndexStore]


@pytest.fixture
def options(tmp_path: Path, database_url: str) -> IndexOptions:
    """A data directory of its own; one indexing thread keeps tests light."""
    return IndexOptions(
        tmp_path / "data",
        tmp_path / "data" / "chroma",
        database_url,
        tantivy_threads=1,
        tantivy_heap_bytes=15_000_000,
    )


@pytest.fixture
def store(options: IndexOptions) -> Iterator[IndexStore]:
    """An open store without Chroma."""
    with IndexStore(options, vector_store="off") as opened:
        yield opened
