"""Scan rows of norm 1 as int8 codes with error bounds: a quarter of the bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import simsimd

from app.core.types import FloatArray

_LARGEST = 127
_BLOCK = 1024
"""Rows coded at a time: what is computed of them stays in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """Codes of n rows; adding makes a new object on the same memory.

    Only the newest object may be added to.
    """

    _codes: npt.NDArray[np.int8]
    """`[capacity, dim]`; a row is its codes times its scale, give or take an error of known
    length."""
    _scales: FloatArray
    """float32 `[capacity]`."""
    _error: float
    """Euclidean length of what the codes lose of a row at most, as a rule 0.01."""
    n: int

    @staticmethod
    def empty(dimension: int) -> Codes:
        """Return the codes of no rows."""
        return Codes(np.empty((0, dimension), np.int8), np.empty(0, np.float32), 0.0, 0)

    @staticmethod
    def of(rows: FloatArray) -> Codes:
        """Return the codes of rows, float32 `[n, dim]`."""
        return Codes.empty(rows.shape[1]).plus(rows)

    def plus(self, rows: FloatArray) -> Codes:
        """Return the codes of these rows and `rows`, float32 `[m, dim]`, behind them."""
        total = self.n + len(rows)
        grown = self if total <= len(self._scales) else self._with_room(max(total, 2 * self.n))
        error = self._error
        for at in range(0, len(rows), _BLOCK):
            block = np.asarray(rows[at : at + _BLOCK])
            here = slice(self.n + at, self.n + at + len(block))
            grown._codes[here], grown._scales[here], errors = _coded(block)
            error = max(error, float(errors.max()))
        return Codes(grown._codes, grown._scales, error, total)

    def _with_room(self, capacity: int) -> Codes:
        larger = Codes(
            np.empty((capacity, self._codes.shape[1]), np.int8),
            np.empty(capacity, np.float32),
            self._error,
            self.n,
        )
        larger._codes[: self.n] = self._codes[: self.n]
        larger._scales[: self.n] = self._scales[: self.n]
        return larger

    def distances(self, query: FloatArray) -> tuple[FloatArray, float]:
        """Return about `1 - cosine` of a query to every row, and the largest error.

        The query is float32 `[dim]` of norm 1. With x = x' + e of a row and q = q' + f of the
        query, x' and q' being what the codes say, x.q - x'.q' = e.q + x'.f, which is at most |e| +
        (1 + |e|) |f| (Cauchy-Schwarz). The interpreter is not held.

        Returns:
            float32 `[n]`, and a distance.
        """
        codes, scale, error = _coded(query[np.newaxis])
        if not self.n:
            return np.empty(0, np.float32), self._error
        # summed as int32, which holds 130,000 products; as float32 a sum keeps 24 bits, which is
        # rounding. Without `out`: with it simsimd 6.5 gives None away once too often at each call,
        # and after some 80,000 questions the interpreter ends the process.
        products = simsimd.cdist(codes, self._codes[: self.n], "dot", out_dtype="float32")
        found = np.asarray(products)[0]
        found *= self._scales[: self.n]
        found *= -scale[0]
        found += 1.0
        return found, self._error * (1 + float(error[0])) + float(error[0])


def _coded(rows: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray, FloatArray]:
    """Return codes, scales and error lengths of float32 `[n, dim]`; zeros have none."""
    largest = np.abs(rows).max(axis=1)
    scales = np.where(largest > 0, largest / np.float32(_LARGEST), np.float32(1.0)).astype(
        np.float32
    )
    scaled = rows / scales[:, np.newaxis]
    codes = np.rint(scaled)
    scaled -= codes
    errors = np.sqrt(np.einsum("ij,ij->i", scaled, scaled)) * scales
    return codes.astype(np.int8), scales, errors
