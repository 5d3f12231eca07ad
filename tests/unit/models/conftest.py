from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.models.ollama import OllamaHost
from tests.fakes.ollama_double import OllamaDouble


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.models.retries._FIRST_WAIT_S", 0.01)


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as running:
        yield running


@pytest.fixture
def host(double: OllamaDouble) -> OllamaHost:
    return OllamaHost(double.url, read_timeout_s=5.0)
