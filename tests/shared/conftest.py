"""A search engine for each module, empty for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.shared.qdrant import SearchEngine
from app.shared.qdrant_words import WORDS
from tests.shared.engines import ENGINES, url_of


@pytest.fixture(scope="module", params=ENGINES)
def running_engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the address of an engine that this module's tests share."""
    with url_of(request.param, tmp_path_factory.mktemp("engine")) as url:
        yield url


@pytest.fixture
def engine_url(running_engine: str) -> str:
    """Return the address of the engine, which holds no point of ours.

    A collection of words is emptied: to make one, with its ten indexes, takes a second.
    """
    engine = SearchEngine(running_engine)
    for name in engine.collections():
        if name.startswith(WORDS):
            engine.delete(name, sorted(engine.ids(name)))
        else:
            engine.drop(name)
    engine.close()
    return running_engine
