"""One pass: the question as it stands is the search."""

from __future__ import annotations

from app.answer.strategies.base import Desk, Found


def find(query: str, desk: Desk) -> Found:
    """Search once."""
    return Found(desk.search(query), "baseline")
