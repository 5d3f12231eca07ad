"""Memory that chromadb writes without having used it does not stay on disk."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

import pytest

from app.index.hnsw_files import HEADER
from app.index.options import IndexOptions
from app.index.scrub import scrub_collection
from app.index.steps import Steps
from app.index.store import IndexStore
from tests.unit.index.test_reembedding import OLD, add, embed_live, own_rank_one


def tails(chroma: Path) -> list[bytes]:
    """What segment files hold beyond their elements."""
    found = []
    for header in chroma.rglob("header.bin"):
        _, _, _, elements, size, *_ = HEADER.unpack_from(header.read_bytes())
        found.append(header.with_name("data_level0.bin").read_bytes()[elements * size :])
        found.append(header.with_name("length.bin").read_bytes()[elements * 4 :])
    return found


@pytest.mark.timeout(120)
def test_unused_parts_are_zeroed_and_elements_stay(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        add(store, "walrus", "heron")
        embed_live(store)
    held = tails(options.chroma_dir)
    assert any(held)  # there is an unused part at all
    for level0 in options.chroma_dir.rglob("data_level0.bin"):  # as memory that was freed may look
        level0.write_bytes(b"secret" + bytes(level0.stat().st_size - 12) + b"secret")
    with IndexStore(options, vector_store="foreground") as store:
        assert not any(byte for tail in tails(options.chroma_dir) for byte in tail)
        own_rank_one(store, OLD)
        assert store.fsck.run().faults == ()


def test_only_what_lies_beyond_the_elements_is_overwritten(tmp_path: Path) -> None:
    segment = tmp_path / "aa"
    segment.mkdir()
    with sqlite3.connect(tmp_path / "chroma.sqlite3") as connection:
        connection.execute("CREATE TABLE segments (id TEXT, collection TEXT, scope TEXT)")
        connection.execute("CREATE TABLE collections (id TEXT, name TEXT)")
        connection.execute("INSERT INTO segments VALUES ('aa', 'c', 'VECTOR')")
        connection.execute("INSERT INTO collections VALUES ('c', 'papers__1')")
    connection.close()
    fields = (1, 0, 10, 3, 100, 92, 80, -1, 0, 16, 32, 16, 0.3, 100)
    (segment / "header.bin").write_bytes(HEADER.pack(*fields))
    (segment / "data_level0.bin").write_bytes(b"x" * 1000)
    (segment / "length.bin").write_bytes(struct.pack("<10f", *range(10)))
    steps = Steps()
    assert scrub_collection(tmp_path, "another", steps) == 0
    assert scrub_collection(tmp_path, "papers__1", steps) == 700 + 28
    assert (segment / "data_level0.bin").read_bytes() == b"x" * 300 + bytes(700)
    assert (segment / "length.bin").read_bytes() == struct.pack("<10f", 0, 1, 2, *[0] * 7)
    assert scrub_collection(tmp_path, "papers__1", steps) == 0
    assert steps.names == {"chroma.scrub": 2}
    (segment / "header.bin").write_bytes(HEADER.pack(1, 0, 3, 10, *fields[4:]))  # impossible: left alone
    assert scrub_collection(tmp_path, "papers__1", steps) == 0
