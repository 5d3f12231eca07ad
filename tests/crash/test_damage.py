"""The short form of `make bench-damage`: a few kinds of damage, one of them under the real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.index.store import IndexStore
from evaluation.campaigns.damage.kinds import KINDS
from evaluation.campaigns.damage.stores import Recipe, build, fingerprint, options_at, wholeness
from evaluation.campaigns.damage.trial import check_and_repair, damaged_copy, opened_unprobed, serve

N = 1200


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, model_cache_dir: Path) -> Path:
    path = tmp_path_factory.mktemp("sound") / "data"
    build(path, Recipe(N), fingerprint(path / "models"))
    return path


@pytest.mark.timeout(300)
def test_a_server_with_a_runaway_file_answers_from_words_and_heals_itself(base: Path, tmp_path: Path) -> None:
    trial = serve(damaged_copy(base, tmp_path / "data", KINDS["link_lists.bin: runaway, a terabyte"]))
    assert trial.started
    assert "link_lists.bin" in trial.found_at_start
    assert not trial.opened_unprobed
    assert trial.first_hits > 0
    assert trial.first_notices == ("index_rebuilding",)
    assert trial.progress[-1].endswith(f"of {N}")
    assert (trial.vectors, trial.found_by_themselves, trial.wrong) == (N, N, ())


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "kind",
    ["data_level0.bin: the sign bit of a number", "index_metadata.pickle: torn"],
)
def test_found_at_the_start_and_made_anew(base: Path, tmp_path: Path, kind: str) -> None:
    data = damaged_copy(base, tmp_path / "data", KINDS[kind])
    assert wholeness(data) == (N, N, [])
    assert len(list(data.glob("chroma.broken.*"))) == 1


def test_what_only_a_check_finds_is_mended_by_it(base: Path, tmp_path: Path) -> None:
    data = damaged_copy(base, tmp_path / "data", KINDS["chroma.sqlite3: a vector in the log is another's"])
    found, whole = check_and_repair(data)
    assert (found, whole) == (["chroma_store"], True)


def test_a_sound_store_is_left_alone(base: Path) -> None:
    with IndexStore(options_at(base), vector_store="foreground") as store:
        assert store.keeper.ready
    assert list(base.glob("chroma.broken.*")) == []


def test_openings_without_a_probe_are_seen() -> None:
    probe = {"event": "probe", "inode": 7, "problems": []}
    assert not opened_unprobed([probe, {"event": "open", "inode": 7}])
    assert not opened_unprobed([{"event": "open", "inode": 0}])
    assert opened_unprobed([probe, {"event": "open", "inode": 8}])
    assert opened_unprobed([{**probe, "problems": ["torn"]}, {"event": "open", "inode": 7}])
