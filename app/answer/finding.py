"""A query to evidence, by the strategy that was asked for or, where that needs a model that is not there, by the baseline."""

from __future__ import annotations

from dataclasses import replace

from app.answer.strategies import STRATEGIES, Desk, Found
from app.core.errors import InvalidInput, ProviderError
from app.core.types import Notice, Strategy


def find(query: str, desk: Desk) -> Found:
    """Search for a query as its question asks; the datasets mode is always baseline.

    Args:
        query: The question or its rewrite.
        desk: Searches bound to the question, and who may be asked.
    """
    wanted = strategy_of(desk)
    try:
        return STRATEGIES[wanted](query, desk)
    except (ProviderError, InvalidInput) as error:  # InvalidInput: the prompt was longer than the model reads
        return replace(STRATEGIES["baseline"](query, desk), degraded=error.message)


def strategy_of(desk: Desk) -> Strategy:
    """Return the strategy that a question calls for."""
    question = desk.search.question
    return "baseline" if question.mode == "datasets" else question.strategy


def degraded_notice(found: Found, wanted: Strategy) -> tuple[Notice, ...]:
    """Return the notice `strategy_degraded` when another strategy searched than was wanted."""
    if not found.degraded:
        return ()
    return (Notice("strategy_degraded", f"{wanted} was not possible, the baseline searched instead: {found.degraded}"),)
