"""What every VectorStore does, run on Qdrant; and what only an engine far away does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.shared.qdrant import QdrantStore, SearchEngine
from app.storage.files.durable import Steps
from app.storage.vectors.port import VectorStore
from tests.contract import test_vector_store_contract as suite
from tests.shared.engines import ENGINES, url_of

globals().update({name: it for name, it in vars(suite).items() if name.startswith("test_")})
store = suite.store


@pytest.fixture(scope="module", params=ENGINES)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VectorStore]:
    with url_of(request.param, tmp_path_factory.mktemp("qdrant")) as url:
        made = QdrantStore(SearchEngine(url), Steps(), ef_search=400)
        yield made
        made.close()
