"""docs/formats.md is what the table of formats says."""

from __future__ import annotations

from app.ingest.parsers.formats import FORMATS
from scripts.formats import NOT_READ, PAGE, page


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m scripts.formats"
    assert set(NOT_READ) <= set(FORMATS)
