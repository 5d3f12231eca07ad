"""The drawing of the rooms of storage is the one that the imports make."""

from __future__ import annotations

from scripts.rooms import PAGE, arrows, drawing


def test_the_page_shows_the_rooms_as_the_imports_are() -> None:
    assert ("vectors", "catalog") in arrows()
    assert drawing() in PAGE.read_text(encoding="utf-8"), "run: python -m scripts.rooms"
