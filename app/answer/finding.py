"""Run the requested strategy, or the baseline if a needed model is missing."""

from __future__ import annotations

from dataclasses import replace

from app.answer.strategies import STRATEGIES, Found, StrategyContext
from app.core.errors import InvalidInput, ProviderError
from app.core.types import Notice, Strategy


def find(query: str, context: StrategyContext) -> Found:
    """Search for a query as its question asks; the datasets mode is always baseline.

    Args:
        query: The question or its rewrite.
        context: Searches bound to the question, and who may be asked.
    """
    wanted = strategy_of(context)
    try:
        return STRATEGIES[wanted](query, context)
    except (
        ProviderError,
        InvalidInput,
    ) as error:  # InvalidInput: the prompt was longer than the model reads
        return replace(STRATEGIES["baseline"](query, context), degraded=error.message)


def strategy_of(context: StrategyContext) -> Strategy:
    """Return the strategy that a question calls for."""
    question = context.search.question
    return "baseline" if question.mode == "datasets" else question.strategy


def degraded_notice(found: Found, wanted: Strategy) -> tuple[Notice, ...]:
    """Return the notice `strategy_degraded` if another strategy was used."""
    if not found.degraded:
        return ()
    return (
        Notice(
            "strategy_degraded",
            f"{wanted} was not possible, the baseline searched instead: {found.degraded}",
        ),
    )
