"""Check passages before embedding and vectors after it, for every embedder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.core.errors import PassageTooLong, ProviderBadResponse
from app.core.types import FloatArray
from app.core.vectors import l2_normalise


def refuse_long(texts: Sequence[str], counts: Sequence[int], model: str, limit: int) -> None:
    """Let only passages through that the model reads whole.

    Args:
        texts: The passages.
        counts: Tokens of each, exact or over-estimated.
        model: For the message.
        limit: Most tokens.

    Raises:
        PassageTooLong: One has more; the message names the first.
    """
    for position, (text, tokens) in enumerate(zip(texts, counts, strict=True)):
        if tokens > limit:
            raise PassageTooLong(
                f"passage {position} ({text[:40]!r}...) has {tokens} tokens, {model!r} reads"
                f" {limit}; split it"
            )


def checked_rows(
    value: object, count: int, dimension: int | None, *, host: str, model: str
) -> FloatArray:
    """Return what a host sent as float32 `[count, dim]`, rows of L2 norm 1.

    Args:
        value: Lists of numbers.
        count: How many texts were sent.
        dimension: What rows must have; None takes any.
        host: The host with its address, for messages.
        model: The model, for messages.

    Raises:
        ProviderBadResponse: These are not so many finite vectors of that dimension.
    """
    try:
        rows = l2_normalise(np.asarray(value, dtype=np.float32))
    except (TypeError, ValueError) as exc:
        raise ProviderBadResponse(
            f"{host} sent vectors of {model!r} that are no numbers ({exc}); look into its log"
        ) from exc
    if rows.ndim != 2 or len(rows) != count:
        raise ProviderBadResponse(
            f"{host} sent vectors of shape {rows.shape} for {count} texts; look into its log"
        )
    if dimension is not None and rows.shape[1] != dimension:
        raise ProviderBadResponse(
            f"{model!r} sent {rows.shape[1]} dimensions, expected {dimension}; restore the model"
            " or run: documind reembed"
        )
    return rows
