"""Fit linear weights, deterministic and from zero, and say how well a score tells two groups apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from app.generation.quote.quote_features import Floats

Bounds = Sequence[tuple[float | None, float | None]]


def least(
    loss: Callable[[Floats], tuple[float, Floats]], size: int, bounds: Bounds | None = None
) -> Floats:
    """Return where a convex loss, which returns its slope too, is least."""
    from scipy.optimize import minimize  # noqa: PLC0415 - the eval extra

    found: Floats = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B", bounds=bounds).x
    return found


def logistic(
    rows: Floats, right: Floats, share: Floats, penalty: Floats, bounds: Bounds | None = None
) -> Floats:
    """Return logistic weights of rows that are right (1) or wrong (0).

    Args:
        rows: `[n, d]`; with a last column of ones the last weight is the bias.
        right: `[n]`.
        share: Weight of each row.
        penalty: Ridge of each weight, `[d]`.
        bounds: Of each weight.
    """

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights
        likelihood = share * (np.logaddexp(0, scores) - right * scores)
        slope = rows.T @ (share * (1 / (1 + np.exp(-scores)) - right)) + penalty * weights
        return float(likelihood.sum() + (penalty * weights) @ weights / 2), slope

    return least(loss, rows.shape[1], bounds)


def area_under_curve(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Return the probability that a positive outscores a negative; ties count half.

    This is the area under the ROC curve.

    Raises:
        ValueError: One side is empty.

    References:
        Mann, Whitney 1947; Hanley, McNeil: The meaning and use of the area under a ROC curve,
        Radiology 1982.
    """
    if not positives or not negatives:
        raise ValueError("the area under the curve needs positives and negatives")
    ordered = np.sort(np.asarray(negatives, dtype=np.float64))
    below = np.searchsorted(ordered, positives, side="left")
    not_above = np.searchsorted(ordered, positives, side="right")
    return float((below + not_above).mean() / (2 * len(ordered)))
