"""Define the input and the output of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.answer.models import ModelCalls
from app.answer.options import AnswerOptions
from app.answer.search import Search
from app.core.ports import Generator
from app.core.types import Evidence, Hit, Strategy
from app.retrieval.request import Retrieval


@dataclass(frozen=True, slots=True)
class StrategyContext:
    """A strategy's tools: searches, models, options."""

    search: Search
    calls: ModelCalls
    options: AnswerOptions
    model: Generator | None = None
    """The model that answers; flare drafts with it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A strategy's result, and how it was found."""

    retrieval: Retrieval
    strategy: Strategy
    """The one that searched: `baseline` when a model's reply was of no use or there was none."""
    degraded: str = ""
    """Why another strategy was asked for but not used; empty otherwise."""


NO_MODEL = "no model is there to write one; start Ollama with a model, or set LLM_PROVIDER"
"""Why a strategy that lets a model write something is not possible without one."""

QueryStrategy = Callable[[str, StrategyContext], Found]
"""Searches for a query (the question or its rewrite).

Raises ProviderError when a model host fails; the service then falls back to the baseline.
"""


def numbered(hits: Sequence[Hit]) -> tuple[Evidence, ...]:
    """Return hits as evidence, numbered from 1 in their order."""
    return tuple(Evidence(n, hit) for n, hit in enumerate(hits, start=1))


def renumbered(sent: Sequence[Evidence], hits: Sequence[Hit]) -> tuple[Evidence, ...]:
    """Return hits as evidence, best first; passages sent before keep numbers.

    Others get the next ones.
    """
    known = {_key(item.hit): item.n for item in sent}
    free = max(known.values(), default=0)
    numbered_hits: list[Evidence] = []
    for hit in hits:
        if _key(hit) not in known:
            free += 1
            known[_key(hit)] = free
        numbered_hits.append(Evidence(known[_key(hit)], hit))
    return tuple(numbered_hits)


def _key(hit: Hit) -> tuple[str, int]:
    return hit.passage.chunk.library.value, hit.passage.chunk.chunk_id
