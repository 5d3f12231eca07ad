"""Vector arithmetic on float32 rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from app.core.types import FloatArray


def l2_normalise(rows: npt.ArrayLike) -> FloatArray:
    """Scale to L2 norm 1 along the last axis; zero rows stay zero.

    Args:
        rows: Numbers of shape `[dim]` or `[n, dim]`.

    Returns:
        float32 of the same shape.

    Raises:
        ValueError: A value is NaN or infinite.
    """
    array = np.asarray(rows, dtype=np.float32)
    if not np.isfinite(array).all():
        raise ValueError("vectors must be finite; got NaN or infinity")
    norms = np.linalg.norm(array, axis=-1, keepdims=True)
    scaled: FloatArray = np.divide(array, norms, out=np.zeros_like(array), where=norms > 0)
    return scaled


def cosine_distances(query: FloatArray, rows: FloatArray) -> FloatArray:
    """Return `1 - cosine` of a `[dim]` query to `[n, dim]` rows, both of norm 1: float32 `[n]` in [0, 2]."""
    distances: FloatArray = np.clip(1.0 - rows @ query, 0.0, 2.0).astype(np.float32, copy=False)
    return distances


def top_k_smallest(values: npt.NDArray[np.floating], k: int) -> npt.NDArray[np.intp]:
    """Return the positions of the k smallest values, ascending, ties by position (stable)."""
    n = len(values)
    if k <= 0 or n == 0:
        return np.empty(0, dtype=np.intp)
    if k >= n:
        return np.argsort(values, kind="stable")
    bound = np.partition(values, k - 1)[k - 1]
    candidates = np.flatnonzero(values <= bound)
    return candidates[np.argsort(values[candidates], kind="stable")][:k]
