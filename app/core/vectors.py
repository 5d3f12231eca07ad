"""Vector arithmetic on float32 rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from app.core.types import TOKEN_BITS, FloatArray, PassageCode, QuestionCode


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
    """Return `1 - cosine` of a `[dim]` query to `[n, dim]` rows, all of norm 1.

    float32 `[n]` in [0, 2].
    """
    distances: FloatArray = np.clip(1.0 - rows @ query, 0.0, 2.0).astype(np.float32, copy=False)
    return distances


def max_sim(
    question: QuestionCode, weights: Mapping[str, float], codes: Sequence[PassageCode]
) -> FloatArray:
    """Return how near the words of a question are to those of texts, float32 `[n]` in [-1, 1].

    It is the mean over the question's tokens of the likeness of a text's most similar token; 0
    for a question without words.

    Args:
        question: Of the same model as the codes.
        weights: Of stemmed words. A word of several tokens shares its weight among them; others
            do not count, and where none is known all count alike.
        codes: One a text, at least one, each with a token.

    References:
        Khattab, Zaharia: ColBERT, SIGIR 2020, equation 3; the weights are ours.
    """
    if not question.stems:
        return np.zeros(len(codes), dtype=np.float32)
    pieces = zip(question.stems, question.pieces, strict=True)
    share = np.array([weights.get(stem, 0.0) / n for stem, n in pieces], dtype=np.float32)
    share = share if share.any() else np.ones_like(share)
    asked, share = share > 0, share / share.sum()
    size = TOKEN_BITS // 8
    packed = np.frombuffer(b"".join(code.tokens for code in codes), dtype=np.uint8)
    signs = np.unpackbits(packed.reshape(-1, size), axis=1).astype(np.float32) * 2 - 1
    likeness = signs @ question.directions[asked].T / np.float32(np.sqrt(TOKEN_BITS))
    starts = np.cumsum([0, *(len(code.tokens) // size for code in codes[:-1])])
    nearest: FloatArray = np.maximum.reduceat(likeness, starts, axis=0) @ share[asked]
    return nearest


ROUNDING = 1e-5
"""More than any order of summation changes a float32 dot product of unit rows of 4,096 numbers
(about n * 2^-24 at worst)."""

_BLOCK = 4096
_GROUP = 32
_FARTHEST = 4.0
"""More than any cosine distance, give or take; less than infinity."""


def _at_least_kth(values: FloatArray, k: int) -> float:
    """Return a number that at least k of n values do not exceed.

    It is the k-th smallest or, of many values, hardly more. Of the least values of more than k
    groups, the k smallest are k values; that spares a partition of all of them.
    """
    groups = len(values) // _GROUP
    if groups > 4 * k:
        values = values[: groups * _GROUP].reshape(_GROUP, groups).min(axis=0)
    return float(np.partition(values, k - 1)[k - 1])


def nearest(
    query: FloatArray,
    rows: FloatArray,
    ids: npt.NDArray[np.int64],
    k: int,
    distances: FloatArray | None = None,
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return positions and cosine distances of the k nearest rows, ascending.

    The result does not depend on where rows stand. A fast product decides which rows come into
    question: all that may be as near as the k-th. Its last bits depend on where a row stands among
    the others, so those rows are summed again one by one, and equal distances are ordered by id.

    Args:
        query: float32 `[dim]`, norm 1.
        rows: float32 `[n, dim]`, norm 1.
        ids: int64 `[n]`.
        k: At most this many.
        distances: `cosine_distances(query, rows)` when at hand; rows with infinity are left out.
    """
    fast = cosine_distances(query, rows) if distances is None else distances
    n = len(fast)
    if k <= 0 or n == 0:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32)
    bound = _at_least_kth(fast, k) + ROUNDING if k < n else _FARTHEST
    near = np.flatnonzero(fast <= min(bound, _FARTHEST))
    if len(near) == 0:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.float32)
    wide = query.astype(np.float64)
    # In blocks: of a library of many equal texts all rows may come into question.
    blocks = [near[at : at + _BLOCK] for at in range(0, len(near), _BLOCK)]
    cosines = np.concatenate(
        [np.einsum("ij,j->i", rows[block].astype(np.float64), wide) for block in blocks]
    )
    exact = np.clip(1.0 - cosines, 0.0, 2.0).astype(np.float32)
    order = np.lexsort((ids[near], exact))[:k]
    return near[order], exact[order]
