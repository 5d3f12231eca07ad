"""Fixtures of crash tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.index.options import IndexOptions


@pytest.fixture
def options(tmp_path: Path) -> IndexOptions:
    """A data directory of its own; one indexing thread keeps tests light."""
    return IndexOptions(tmp_path / "data", tmp_path / "data" / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)
