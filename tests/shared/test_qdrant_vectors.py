"""What every VectorStore does, run on Qdrant; and what only an engine far away does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.index.dense.port import VectorStore
from app.index.dense.qdrant import QdrantStore
from app.index.engine.qdrant import SearchEngine
from app.index.files.steps import Steps
from tests.contract.test_vector_store_contract import *  # noqa: F403  # the suite of the port
from tests.shared.engines import ENGINES, url_of


@pytest.fixture(scope="module", params=ENGINES)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VectorStore]:
    with url_of(request.param, tmp_path_factory.mktemp("qdrant")) as url:
        store = QdrantStore(SearchEngine(url), Steps(), ef_search=400)
        yield store
        store.close()
