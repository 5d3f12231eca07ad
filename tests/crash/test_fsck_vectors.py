"""Differences between Chroma and the catalog are found by a check and mended by a repair."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.core.ids import fingerprint8
from app.core.types import Library
from app.storage.store import IndexStore
from app.storage.vectors.port import VectorStore
from evaluation.lib.vector_checks import differences
from tests.unit.storage.drafts import FINGERPRINT, stamped, unit_rows
from tests.unit.storage.maintenance.test_fsck import build, options_at

PAPERS = Library.PAPERS
COLLECTION = f"papers__{fingerprint8(FINGERPRINT)}"


@pytest.fixture(scope="module")
def sound_with_chroma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "data"
    build(options_at(path), chroma=True)
    return path


def lose_one(store: VectorStore) -> None:
    store.delete(COLLECTION, [1])


def add_one(store: VectorStore) -> None:
    store.upsert(COLLECTION, [999], unit_rows(1, seed=3), stamped("x"))


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lose_one, "vectors_missing"),
        (add_one, "vectors_phantom"),
        (lambda store: store.set_aside(), "vectors_missing"),
    ],
)
def test_differences_of_the_store_are_found_and_mended(
    sound_with_chroma: Path, tmp_path: Path, spoil: Callable[[VectorStore], object], code: str
) -> None:
    options = options_at(Path(shutil.copytree(sound_with_chroma, tmp_path / "data")))
    with IndexStore(options, vector_store="foreground") as store:
        spoil(store.vector_stores[PAPERS])
    with IndexStore(options, vector_store="off", heal=False) as store:
        assert code in [fault.code for fault in store.fsck.run().faults]
        assert store.fsck.run(repair=True).sound
        assert differences(store, PAPERS) == []


def test_a_running_store_is_checked_too(sound_with_chroma: Path, tmp_path: Path) -> None:
    options = options_at(Path(shutil.copytree(sound_with_chroma, tmp_path / "data")))
    with IndexStore(options) as store:
        assert store.supervisor.wait(100)
        assert store.fsck.run().faults == ()
        lose_one(store.vector_stores[PAPERS])
        assert [fault.code for fault in store.fsck.run(repair=True).faults] == ["vectors_missing"]
        assert differences(store, PAPERS) == []
