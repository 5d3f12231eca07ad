"""Turn a question into searches: baseline, hyde, multi_query, flare.

Model calls of one question, besides the answer itself:

    baseline      0
    hyde          1: the hypothetical passage
    multi_query   1: the sub-queries
    flare         1 draft; with log-probabilities 1 more for each sentence that is generated again
    (at most `flare_max_rounds`),
                  and 1 more for each question where the query is asked rather than masked

With a small model (0.5 billion parameters) none finds more than the baseline, and each costs
seconds: evaluation/reports/models.md. They are for larger models.

A rewritten follow-up and a summary of a long conversation are one call each, before any of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast, get_args

from app.answer.strategies.base import Found, QueryStrategy, StrategyContext
from app.core.types import Strategy

__all__ = ["STRATEGIES", "Found", "QueryStrategy", "StrategyContext"]

STRATEGIES: Mapping[Strategy, QueryStrategy] = MappingProxyType(
    {
        name: cast("QueryStrategy", import_module(f"{__name__}.{name}").find)
        for name in get_args(Strategy)
    }
)
"""Every strategy by the name the API uses: `find` of the module with that name."""
