"""Memory that chromadb writes without having used it does not stay on disk."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

from app.index.dense.chroma.hnsw_files import HEADER
from app.index.dense.chroma.scrub import scrub_collection
from app.index.files.steps import Steps


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
