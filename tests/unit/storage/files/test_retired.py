"""What earlier releases kept is removed when it is ours, and nothing else is."""

from __future__ import annotations

from pathlib import Path

from app.storage.files.durable import Steps, delete_retired
from app.storage.options import IndexOptions
from app.storage.store import IndexStore


def old_rows(data: Path, name: str) -> Path:
    path = data / "exact" / name
    path.mkdir(parents=True)
    for file in ("rows.f32", "ids.i64", "header.json"):
        (path / file).write_bytes(b"x")
    return path


def test_rows_of_earlier_releases_are_removed_at_a_start(options: IndexOptions) -> None:
    old_rows(options.data_dir, "papers-1")
    old_rows(options.data_dir, "public-12")
    with IndexStore(options, vector_store="off"):
        assert not (options.data_dir / "exact").exists()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    mixed, foreign = old_rows(tmp_path, "papers-1"), old_rows(tmp_path, "holidays-2025")
    (mixed / "letter.txt").write_text("mine")
    (tmp_path / "exact" / "notes.txt").write_text("mine")
    elsewhere = old_rows(tmp_path / "elsewhere", "papers-2")
    (tmp_path / "exact" / "papers-2").symlink_to(elsewhere)
    ours = old_rows(tmp_path, "papers-3")
    delete_retired(tmp_path, Steps())
    assert not ours.exists()
    assert (mixed / "rows.f32").exists()
    assert (mixed / "letter.txt").read_text() == "mine"
    assert (foreign / "rows.f32").exists()
    assert (elsewhere / "rows.f32").exists()


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = old_rows(tmp_path / "elsewhere", "papers-1")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "exact").symlink_to(elsewhere.parent)
    delete_retired(tmp_path / "data", Steps())
    assert (elsewhere / "rows.f32").exists()


def test_a_directory_without_them_is_left_alone(tmp_path: Path) -> None:
    delete_retired(tmp_path, Steps())
    assert list(tmp_path.iterdir()) == []
