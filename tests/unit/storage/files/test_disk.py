"""What each store takes on disk."""

from __future__ import annotations

from pathlib import Path

from app.storage.files.durable import bytes_by_store


def write(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)


def test_stores_are_counted_with_their_folders_and_journals(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name, size in {
        "catalog.sqlite3": 10, "catalog.sqlite3-wal": 5, ".lock": 3, "note": 4,
        "tantivy/public/seg": 7, "tantivy/x": 1, "chroma/a/b": 2
    }.items():  # fmt: skip
        write(data / name, size)
    assert bytes_by_store(data, data / "chroma") == {
        "catalog": 15,
        "chroma": 2,
        "other": 7,
        "tantivy": 8,
    }


def test_a_vector_store_elsewhere_and_folders_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "data", 9)
    assert bytes_by_store(tmp_path / "none", tmp_path / "elsewhere") == {"chroma": 9}
    assert bytes_by_store(tmp_path / "none", tmp_path / "nothing") == {"chroma": 0}
