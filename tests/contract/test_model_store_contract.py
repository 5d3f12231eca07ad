"""What the store of measurements of models does, on each database of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.types import ModelFindings, ModelSpeed
from app.storage.catalog.models import ModelStore
from app.storage.options import IndexOptions
from app.storage.store import IndexStore


@pytest.fixture
def models(tmp_path: Path, database_url: str) -> Iterator[ModelStore]:
    options = IndexOptions(tmp_path, tmp_path / "chroma", database_url, tantivy_threads=1)
    with IndexStore(options, vector_store="off") as store:
        yield store.models


def test_a_speed_belongs_to_a_host_and_a_model_and_the_newest_counts(models: ModelStore) -> None:
    assert models.speed("a", "m") is None
    models.keep_speed("a", "m", ModelSpeed(100.0))
    models.keep_speed("a", "m", ModelSpeed(120.5, 9.0))
    models.keep_speed("b", "m", ModelSpeed(900.0))
    assert models.speed("a", "m") == ModelSpeed(120.5, 9.0)
    assert models.speed("b", "m") == ModelSpeed(900.0)
    assert models.speed("a", "other") is None


def test_findings_come_back_by_digest_and_are_listed_newest_first(models: ModelStore) -> None:
    old = ModelFindings(
        "compact", "short", as_good_as_quotes=False, advice="weak", at="2026-01-01T00:00:00Z"
    )
    new = ModelFindings(
        "full",
        "full",
        as_good_as_quotes=True,
        advice="good",
        at="2026-02-01T00:00:00Z",
        report='{"n": 24}',
    )
    models.keep_findings("d1", "o:one", old)
    models.keep_findings("d2", "o:two", new)
    assert models.findings("d1") == old
    assert models.findings("d3") is None
    assert list(models.tested()) == [("o:two", new), ("o:one", old)]
    models.keep_findings("d1", "o:one", new)
    assert models.findings("d1") == new
