"""The short form of `make bench-gone`: one planted document, looked for in every file before and after its purge."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import zstandard

from app.core.vectors import l2_normalise
from evaluation.campaigns.gone import Secret, faults, look, run, vectors_in

NOISE = np.random.default_rng(1).integers(97, 123, 20_000, dtype=np.uint8).tobytes()
ROW = l2_normalise(np.random.default_rng(5).normal(size=(1, 64)).astype(np.float32))[0]


def test_nothing_is_left_of_a_purged_document(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    result = run(tmp_path, 2)
    assert faults(result) == []


def test_the_search_sees_what_is_hidden(tmp_path: Path) -> None:
    words = ("quokka", "鳳凰")
    secret = Secret(words, (), (ROW,))
    hidden = {
        "utf16": "x鳳凰y".encode("utf-16-le"),
        "frame": b"rubbish"
        + zstandard.ZstdCompressor().compress(NOISE + b" the quokka sleeps " + NOISE),
        "escaped": b'{"text": "\\u9cf3\\u51f0"}',
        "half": b"abc" + ROW.astype("<f2").tobytes(),
        "single": b"abcde" + (ROW * np.float32(0.9999)).astype("<f4").tobytes() + b"x",
        "clean": b"nothing to see here" * 50,
    }
    for name, content in hidden.items():
        (tmp_path / name).write_bytes(content)
    found = look(tmp_path, secret)
    assert {place: sorted(ways) for place, ways in found.items()} == {
        "utf16": ["text"],
        "frame": ["zstd"],
        "escaped": ["json"],
        "half": ["float16"],
        "single": ["float32"],
    }


def test_a_frame_over_several_pages_is_put_together(tmp_path: Path) -> None:
    frame = zstandard.ZstdCompressor().compress(NOISE + b"at last the quokka" + NOISE)
    assert len(frame) > 2 * 4096
    path = tmp_path / "db.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (a TEXT, b BLOB)")
        connection.execute("INSERT INTO t VALUES ('some', ?)", (frame,))
        connection.commit()
    connection.close()
    secret = Secret(("quokka",), (), ())
    assert look(tmp_path, secret) == {"db.sqlite3": {"zstd"}}
    path.unlink()
    with sqlite3.connect(path) as connection:  # and the same in the log, before it is folded in
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (a TEXT, b BLOB)")
        connection.execute("INSERT INTO t VALUES ('some', ?)", (frame,))
        connection.commit()
        assert path.with_name("db.sqlite3-wal").stat().st_size > len(frame)
        assert look(tmp_path, secret) == {"db.sqlite3": {"zstd"}}
    connection.close()


def test_another_vector_is_not_taken_for_it() -> None:
    others = l2_normalise(np.random.default_rng(9).normal(size=(200, 64)).astype(np.float32))
    near = l2_normalise((ROW + 0.1 * others[0])[None])[0]
    assert vectors_in(others.tobytes() + near.astype("<f4").tobytes(), [ROW]) == set()
