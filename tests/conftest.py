"""Fixtures every suite shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.providers.minilm import MiniLmEmbedder

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test asks the hub


@pytest.fixture(scope="session")
def model_cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One place for built model graphs, so that a test run builds each once."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def minilm(model_cache_dir: Path) -> MiniLmEmbedder:
    """The embedded model as the product runs it."""
    return MiniLmEmbedder(model_cache_dir, threads=1)
