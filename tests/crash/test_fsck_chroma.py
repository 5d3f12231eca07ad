"""Differences between Chroma and the catalog are found by a check and mended by a repair."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from app.core.types import Library
from app.index.dense.chroma.probe import ProbeFinding, probe
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.unit.index.drafts import unit_rows
from tests.unit.index.maintenance.test_fsck import Inject, build, options_at

PAPERS = Library.PAPERS


@pytest.fixture(scope="module")
def sound_with_chroma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "data"
    build(options_at(path), chroma=True)
    return path


def chroma_lost_one(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        store.chroma.delete(store.chroma.names()[0], [1])


def chroma_phantom(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        store.chroma.upsert(store.chroma.names()[0], [999], unit_rows(1, seed=3), [("x", "body")], "m")


def chroma_wrong_vector(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        store.chroma.upsert(store.chroma.names()[0], [1], unit_rows(1, seed=3), [("x", "body")], "m")


@pytest.mark.parametrize("inject", [chroma_lost_one, chroma_phantom, chroma_wrong_vector])
def test_differences_of_chroma_are_found_and_mended(sound_with_chroma: Path, tmp_path: Path, inject: Inject) -> None:
    options = options_at(Path(shutil.copytree(sound_with_chroma, tmp_path / "data")))
    inject(options)
    with IndexStore(options, vector_store="off", heal=False) as store:
        assert any(fault.code.startswith("chroma_") for fault in store.fsck.run().faults)
        assert store.fsck.run(repair=True).sound
        collection = store.chroma.names()[0]
        rows = store.vectors.fetch(PAPERS, [1])
        assert store.chroma.count(collection) == 6
        assert store.chroma.query(collection, np.asarray(rows[1]), 1)[0].chunk_id == 1


def test_an_open_store_is_checked_without_a_second_opener(
    sound_with_chroma: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes that have a store open destroy it; the check of a running server reads files and asks its own client."""
    options = options_at(Path(shutil.copytree(sound_with_chroma, tmp_path / "data")))
    opened: list[object] = []

    def watched(*args: object, open_store: bool, **kwargs: object) -> ProbeFinding:
        opened.append(open_store)
        return probe(*args, open_store=open_store, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr("app.index.maintenance.fsck_chroma.probe", watched)
    with IndexStore(options, vector_store="foreground") as store:
        assert store.fsck.run().faults == ()
        store.chroma.upsert(store.chroma.names()[0], [1], unit_rows(1, seed=3), [("x", "body")], "m")
        assert [fault.code for fault in store.fsck.run().faults] == ["chroma_store"]
    assert opened == [False, False]
    with IndexStore(options, vector_store="off", heal=False) as store:
        store.fsck.run()
    assert opened[2:] == [True]
