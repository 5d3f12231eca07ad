"""What a search for vectors does, with the vectors in the engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.storage.options import IndexOptions
from tests.contract import test_vector_index_contract as suite
from tests.contract.test_vector_index_contract import Subject, build

globals().update({name: it for name, it in vars(suite).items() if name.startswith("test_")})


@pytest.fixture(scope="module")
def subject(running_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    path = tmp_path_factory.mktemp("data")
    options = IndexOptions(path, path / "chroma", search_url=running_engine, vector_cache_vectors=0)
    store, rows, passages = build(options, "foreground")
    yield Subject(store.vectors, rows, passages)
    store.close()
