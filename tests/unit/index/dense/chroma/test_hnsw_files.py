"""The structural check finds damage in Chroma's files, and none in healthy ones, without opening the store."""

from __future__ import annotations

import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from app.core.types import Library
from app.index.dense.chroma.hnsw_files import SegmentDamage, read_segment
from app.index.dense.chroma.resting_store import check_files
from app.index.dense.chroma.store import ChromaStore
from app.index.files.steps import Steps
from tests.unit.index.drafts import unit_rows

N = 1200  # over Chroma's sync threshold of 1,000: the graph is on disk


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chroma") / "store"
    chroma = ChromaStore(path, Steps(), ef_search_factor=4)
    chroma.open()
    chroma.set_ready(Library.PAPERS, ready=True)
    rows = unit_rows(N)
    for start in range(0, N, 300):
        ids = range(start, start + 300)
        chroma.upsert("papers__test", list(ids), rows[start : start + 300], [("doc", "body")] * 300, "test")
    assert [hit.chunk_id for hit in chroma.query("papers__test", rows[7], 1)] == [7]
    chroma.close()
    return path


@pytest.fixture
def store(healthy: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(healthy, tmp_path / "copy"))


def segment_of(store: Path) -> Path:
    return next(store.glob("*/header.bin")).parent


def test_a_healthy_store_has_no_problem_and_the_vectors_that_were_written(store: Path) -> None:
    problems, segments = check_files(store, alone=True)
    assert problems == []
    segment = segments["papers__test"]
    held = {int(name): at for at, name in enumerate(segment.ids)}
    assert segment.header.elements >= 1000
    rows = segment.vectors(0, segment.header.elements)
    np.testing.assert_allclose(rows[held[7]], unit_rows(N)[7], atol=1e-6)


def truncate(name: str, share: float) -> Callable[[Path], None]:
    def damage(segment: Path) -> None:
        content = (segment / name).read_bytes()
        (segment / name).write_bytes(content[: int(len(content) * share)])

    return damage


def overwrite(name: str, offset: int, data: bytes) -> Callable[[Path], None]:
    def damage(segment: Path) -> None:
        content = bytearray((segment / name).read_bytes())
        content[offset : offset + len(data)] = data
        (segment / name).write_bytes(content)

    return damage


def runaway(segment: Path) -> None:
    with (segment / "link_lists.bin").open("r+b") as file:
        file.truncate(1 << 40)  # sparse: costs no disk


def foreign_pickle(segment: Path) -> None:
    (segment / "index_metadata.pickle").write_bytes(pickle.dumps(Path("x")))


def lost_label(segment: Path) -> None:
    path = segment / "index_metadata.pickle"
    content = pickle.loads(path.read_bytes())
    label, name = next(iter(content["label_to_id"].items()))
    del content["label_to_id"][label]
    del content["id_to_label"][name]
    path.write_bytes(pickle.dumps(content))


DAMAGE: dict[str, Callable[[Path], None]] = {
    "header emptied": truncate("header.bin", 0),
    "header torn": truncate("header.bin", 0.5),
    "header: elements over capacity": overwrite("header.bin", 20, struct.pack("<Q", 1 << 40)),
    "header: impossible level": overwrite("header.bin", 52, struct.pack("<i", 9999)),
    "vectors emptied": truncate("data_level0.bin", 0),
    "vectors half": truncate("data_level0.bin", 0.5),
    "vectors: neighbour out of range": overwrite("data_level0.bin", 4, struct.pack("<I", 1 << 30)),
    "vectors: not a number": overwrite("data_level0.bin", 132, struct.pack("<f", float("nan"))),
    "vectors: exponent bit": overwrite("data_level0.bin", 135, b"\x7e"),
    "lengths half": truncate("length.bin", 0.5),
    "links emptied": truncate("link_lists.bin", 0),
    "links torn": truncate("link_lists.bin", 0.7),
    "links runaway": runaway,
    "links: impossible size": overwrite("link_lists.bin", 0, struct.pack("<I", 7)),
    "pickle emptied": truncate("index_metadata.pickle", 0),
    "pickle torn": truncate("index_metadata.pickle", 0.5),
    "pickle of a class": foreign_pickle,
    "pickle lost an id": lost_label,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found(store: Path, kind: str) -> None:
    segment = segment_of(store)
    DAMAGE[kind](segment)
    with pytest.raises(SegmentDamage):
        read_segment(segment)
    assert check_files(store, alone=True)[0] != []


def test_a_missing_pickle_and_a_missing_directory_are_found(store: Path) -> None:
    segment = segment_of(store)
    (segment / "index_metadata.pickle").unlink()
    assert read_segment(segment) is None
    assert "is missing" in check_files(store, alone=True)[0][0]
    shutil.rmtree(segment)
    assert "is missing" in check_files(store, alone=True)[0][0]


def test_damage_of_the_database_is_found(store: Path) -> None:
    path = store / "chroma.sqlite3"
    content = bytearray(path.read_bytes())
    for at in range(5000, len(content), 4096):
        content[at] ^= 0xFF
    path.write_bytes(content)
    assert check_files(store, alone=True)[0] != []


def test_a_missing_database_is_found(store: Path) -> None:
    (store / "chroma.sqlite3").unlink()
    assert check_files(store, alone=True)[0] == ["chroma.sqlite3 is missing"]
