"""Search with the vector of a hypothetical passage (HyDE).

Passages are nearer to passages than questions are; the model may invent facts, since only the
vector is used. Words are searched with the question itself, because invented words would mislead
BM25, and the question's own search counts as much.

References:
    Gao 2022, Precise Zero-Shot Dense Retrieval without Relevance Labels, arXiv 2212.10496.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.answer.outcome import is_refusal, reads_as_refusal
from app.answer.search import joined, libraries
from app.answer.strategies.base import NO_MODEL, Found, StrategyContext
from app.core.types import Scope
from app.generation.reading import content_tokens

_STYLE: Mapping[Scope, str] = {
    "papers": "a research paper",
    "public": "an encyclopedia article",
    "all": "a reference work",
}


def find(query: str, context: StrategyContext) -> Found:
    """Search with a passage the helper wrote; else search as baseline.

    Baseline without a passage or an embedder.
    """
    scope = context.search.question.library
    if all(context.search.searcher_for(library).embedder is None for library in libraries(scope)):
        return Found(
            context.search(query),
            "baseline",
            "there is no embedding model to embed a hypothetical passage with",
        )
    if context.calls.helper is None:
        return Found(
            context.search(query), "baseline", f"it searches with a passage, and {NO_MODEL}"
        )
    passage = context.calls.ask("hyde", question=query, style=_STYLE[scope])
    if is_refusal(passage) or reads_as_refusal(passage) or not _is_about(passage, query):
        return Found(context.search(query), "baseline", "the model wrote no passage")
    own = context.search(query)
    return Found(joined(own, [context.search(query, passage)], context.search.places), "hyde")


def _is_about(passage: str, query: str) -> bool:
    """Return whether a passage has a content word of the question; true if that has none."""
    asked = set(content_tokens(query))
    return any(char.isalnum() for char in passage) and (
        not asked or not asked.isdisjoint(content_tokens(passage))
    )
