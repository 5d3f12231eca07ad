"""Search several wordings of a question and fuse them by reciprocal rank.

Small models write sub-queries that are about something else. One counts only where it shares a word
with the question, and the question's own search weighs as much as all of them together.

References:
    Rackauckas 2024, RAG-Fusion: a New Take on Retrieval-Augmented Generation, arXiv 2402.03367.
"""

from __future__ import annotations

from app.answer.replies import listed
from app.answer.search import joined
from app.answer.strategies.base import NO_MODEL, Found, StrategyContext
from app.generation.reading import content_tokens

MAX_QUERIES = 3
"""Sub-queries searched at most."""
_SHARED = 0.5
"""Share of a sub-query's content words that the question must hold: what adds more is about
something else."""


def find(query: str, context: StrategyContext) -> Found:
    """Search every part the helper makes of the question; else as baseline.

    Baseline without usable parts.
    """
    own = context.search(query)
    if context.calls.helper is None:
        return Found(own, "baseline", f"it searches with other wordings, and {NO_MODEL}")
    written = listed(context.calls.ask("multi_query", question=query, count=str(MAX_QUERIES)))
    queries = [one for one in written if is_about(one, query)][:MAX_QUERIES]
    if not queries:
        return Found(own, "baseline", "the model wrote no sub-queries about the question")
    return Found(
        joined(own, [context.search(one) for one in queries], context.search.places), "multi_query"
    )


def is_about(query: str, question: str) -> bool:
    """Return whether a sub-query shares enough content words with the question."""
    mine, asked = set(content_tokens(query)), set(content_tokens(question))
    return bool(mine) and len(mine & asked) >= _SHARED * min(len(mine), len(asked))
