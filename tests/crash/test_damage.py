"""The short form of `make bench-damage`: a few kinds of damage, one of them under the real server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.core.vectors import cosine_distances
from app.storage.store import IndexStore
from evaluation.campaigns.damage import (
    KINDS,
    LIBRARY,
    Recipe,
    Wholeness,
    build,
    check_and_repair,
    damaged_copy,
    fingerprint,
    options_at,
    serve,
    wholeness,
)

N = 1200


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "data"
    build(path, Recipe(N), fingerprint())
    return path


@pytest.mark.parametrize("kind", ["index_metadata.pickle: torn", "store: a file in its place"])
def test_a_server_with_a_damaged_store_answers_at_once_and_heals_itself(
    base: Path, tmp_path: Path, kind: str
) -> None:
    trial = serve(damaged_copy(base, tmp_path / "data", KINDS[kind]))
    assert trial.started
    assert trial.first_hits > 0  # so few vectors are read from the catalog meanwhile
    assert (trial.vectors, trial.found_by_themselves, trial.wrong) == (N, N, ())


@pytest.mark.parametrize(
    "kind", ["segment: directory removed", "chroma.sqlite3: cut in half", "header.bin: cut in half"]
)
def test_found_at_the_start_and_filled_again(base: Path, tmp_path: Path, kind: str) -> None:
    data = damaged_copy(base, tmp_path / "data", KINDS[kind])
    assert wholeness(data) == Wholeness(N, N, ())
    assert len(list(data.glob("chroma.broken.*"))) == 1


@pytest.mark.parametrize(
    "kind", ["data_level0.bin: a vector is another's", "data_level0.bin: the sign bit of a number"]
)
def test_a_wrong_row_costs_no_score(base: Path, tmp_path: Path, kind: str) -> None:
    data = damaged_copy(base, tmp_path / "data", KINDS[kind])
    with IndexStore(options_at(data), vector_store="foreground") as store:
        build = store.loader.live_build(LIBRARY)
        assert build is not None
        stored = store.loader.vectors_after(build, 480, 40)  # the damaged one among them
        for row in stored.rows:
            hits = store.vectors.search(LIBRARY, row, 10)
            rows = store.vectors.fetch(LIBRARY, [hit.chunk_id for hit in hits])
            true = [float(cosine_distances(row, rows[hit.chunk_id][None])[0]) for hit in hits]
            np.testing.assert_allclose([hit.score for hit in hits], true, atol=1e-6)


def test_what_only_a_check_finds_is_mended_by_it(base: Path, tmp_path: Path) -> None:
    data = damaged_copy(base, tmp_path / "data", KINDS["chroma.sqlite3: a listed id lost"])
    found, whole = check_and_repair(data)
    assert (found, whole) == (["vectors_missing"], True)


def test_a_sound_store_is_left_alone(base: Path) -> None:
    with IndexStore(options_at(base), vector_store="foreground") as store:
        assert store.supervisor.ready
    assert list(base.glob("chroma.broken.*")) == []
