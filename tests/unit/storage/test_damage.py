"""Damage to the lexical index and to the catalog: found at the start, by the check, or refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.core.errors import IndexDamaged
from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words.tantivy import damaged_files
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS
PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")
WORDS = [f"walruses{i} whistle in the wind and dive for clams{i}" for i in range(200)]


def options_at(path: Path) -> IndexOptions:
    return IndexOptions(path, path / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "data"
    with IndexStore(options_at(path), vector_store="off") as store:
        store.writer.write([make_draft(f"{i}.txt", text, chunks=4) for i, text in enumerate(WORDS)])
    return path


@pytest.fixture
def options(sound: Path, tmp_path: Path) -> IndexOptions:
    return options_at(Path(shutil.copytree(sound, tmp_path / "data")))


def flip(path: Path, at: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 0x08
    path.write_bytes(content)


def part(name: str) -> Callable[[Path], Path]:
    return lambda index: next(index.glob(f"*.{name}"))


DAMAGE: dict[str, Callable[[Path], None]] = {
    **{
        f"a bit of .{name}": lambda index, name=name: flip(part(name)(index), 0.4)  # type: ignore[misc]
        for name in PARTS
    },
    **{
        f".{name} cut": lambda index, name=name: os.truncate(part(name)(index), 40)  # type: ignore[misc]
        for name in PARTS
    },
    "a file lost": lambda index: part("idx")(index).unlink(),
    "an empty file": lambda index: os.truncate(part("term")(index), 0),
    "meta.json torn": lambda index: os.truncate(index / "meta.json", 100),
    "meta.json lost": lambda index: (index / "meta.json").unlink(),
}


def results(store: IndexStore) -> list[list[int]]:
    return [
        [hit.chunk_id for hit in store.lexical.search(PAPERS, text, 5)]
        for text in ("walruses7", "clams42", "walruses199")
    ]


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_lexical_index_is_made_again_at_the_start(
    options: IndexOptions, kind: str
) -> None:
    with IndexStore(options, vector_store="off") as store:
        before = results(store)
        assert all(before)
    DAMAGE[kind](options.data_dir / "tantivy" / "papers")
    with IndexStore(options, vector_store="off") as store:
        assert results(store) == before
        assert store.fsck.run().faults == ()


@pytest.mark.parametrize("kind", ["a bit of .idx", ".store cut", "meta.json torn"])
def test_a_check_finds_a_damaged_lexical_index_and_mends_it(
    options: IndexOptions, kind: str
) -> None:
    DAMAGE[kind](options.data_dir / "tantivy" / "papers")
    with IndexStore(options, vector_store="off", heal=False) as store:
        assert {fault.code for fault in store.fsck.run().faults} <= {
            "lexical_files",
            "lexical_missing",
        }
        assert store.fsck.run().sound is False
        assert store.fsck.run(repair=True).sound is True
        assert all(results(store))
    assert damaged_files(options.data_dir / "tantivy" / "papers") == []


def test_a_sound_lexical_index_is_left_alone(sound: Path) -> None:
    assert damaged_files(sound / "tantivy" / "papers") == []
    assert damaged_files(sound / "tantivy" / "nothing") == []


@pytest.mark.parametrize("table", ["documents", "chunks", "revisions"])
def test_a_catalog_with_damaged_pages_is_refused_with_the_cure(
    options: IndexOptions, table: str
) -> None:
    catalog = options.data_dir / "catalog.sqlite3"
    with closing(sqlite3.connect(catalog)) as sql:
        of_table = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        [(number,)] = sql.execute(of_table, [table]).fetchall()
        [(size,)] = sql.execute("PRAGMA page_size").fetchall()
    content = bytearray(catalog.read_bytes())
    page = (number - 1) * size
    content[page : page + 64] = b"\xa5" * 64
    catalog.write_bytes(content)
    with pytest.raises(IndexDamaged, match=r"documind restore BACKUP.*documind backup"):
        IndexStore(options, vector_store="off")
    with IndexStore(options, vector_store="off", heal=False) as store:
        report = store.fsck.run(repair=True)
    assert ([fault.code for fault in report.faults], report.exit_code) == (["catalog_pages"], 8)


def test_a_catalog_cut_short_is_refused_with_the_cure(options: IndexOptions) -> None:
    catalog = options.data_dir / "catalog.sqlite3"
    os.truncate(catalog, catalog.stat().st_size // 2)
    with pytest.raises(IndexDamaged, match="documind restore BACKUP"):
        IndexStore(options, vector_store="off")
