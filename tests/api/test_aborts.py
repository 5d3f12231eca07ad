"""The short form of `make bench-aborts`: leaving at any door, at any moment, closes the model's connection; no place is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.client import DocuMindClient
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator
from app.models.retries import CallSlots
from evaluation.benchmarks.aborts import (
    DOORS,
    MAX_MODEL_CALLS,
    MAX_STREAMS,
    answers_still,
    campaign,
    fill,
)
from tests.api.conftest import listening, site
from tests.fakes.generators import FixedModels
from tests.fakes.ollama_double import OllamaDouble

COUNT = 10
LIMIT_S = 5.0
"""Generous: this machine may be busy; the campaign measures, this only tells a stop from none."""


@dataclass
class Behind:
    """A server, and the double behind it."""

    url: str
    double: OllamaDouble


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    with OllamaDouble() as double:
        host = OllamaHost(double.url, connect_timeout_s=1.0, read_timeout_s=30.0)
        models = FixedModels(
            OllamaGenerator(host, "llama3.2", slots=CallSlots(MAX_MODEL_CALLS, 2.0, host.name))
        )
        with (
            site(tmp_path, models, max_streams=MAX_STREAMS) as opened,
            listening(opened.app, lifespan="off") as url,
        ):
            with DocuMindClient(url) as client:
                fill(client, tmp_path)
            yield Behind(url, double)
            assert opened.app.state.edge.streams.taken == 0
        host.http.close()


def test_every_abort_reaches_the_model_and_frees_its_places(behind: Behind) -> None:
    assert len(DOORS) * 2 < COUNT, "every door at least twice at every moment"
    times = campaign(behind.url, behind.double, COUNT)
    assert {len(found) for found in times.values()} == {COUNT}
    assert max(max(found) for found in times.values()) < LIMIT_S
    assert behind.double.aborted == len(times) * COUNT
    assert answers_still(behind.url, MAX_MODEL_CALLS) == MAX_MODEL_CALLS
