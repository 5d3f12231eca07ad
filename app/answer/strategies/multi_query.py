"""Several wordings of one question: each is searched, the results are fused by reciprocal rank.

References:
    Rackauckas 2024, RAG-Fusion: a New Take on Retrieval-Augmented Generation, arXiv 2402.03367.
"""

from __future__ import annotations

from app.answer.replies import listed
from app.answer.search import fused
from app.answer.strategies.base import NO_MODEL, Desk, Found

MAX_QUERIES = 3
"""Sub-queries searched at most (REQUIREMENTS C1)."""


def find(query: str, desk: Desk) -> Found:
    """Let the helper split the question and search every part; without usable parts, search as baseline."""
    if desk.calls.helper is None:
        return Found(desk.search(query), "baseline", f"it searches with other wordings, and {NO_MODEL}")
    queries = listed(desk.calls.ask("multi_query", question=query, count=str(MAX_QUERIES)))[:MAX_QUERIES]
    if not queries:
        return Found(desk.search(query), "baseline", "the model wrote no sub-queries")
    return Found(fused([desk.search(one) for one in queries], desk.search.places), "multi_query")
