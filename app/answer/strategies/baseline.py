"""One pass: the question as it stands is the search."""

from __future__ import annotations

from app.answer.strategies.base import Found, StrategyContext


def find(query: str, context: StrategyContext) -> Found:
    """Search once."""
    return Found(context.search(query), "baseline")
