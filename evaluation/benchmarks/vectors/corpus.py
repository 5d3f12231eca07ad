"""Make a million vectors of 100,000 real ones, and chunks of real sentences.

Real are the vectors of `evaluation.lib.windows`: sentences of the collections and of an early
Wikipedia dump, then runs of neighbouring sentences. The rest are noisy copies of them, at a cosine
drawn between .9 and .95. Texts are real sentences drawn at random, as many as make a chunk, so
words are as frequent as in prose.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.types import Article, FloatArray
from evaluation.benchmarks.bulk.corpus import TextPool
from evaluation.lib.workbench import SEED

HalfArray = npt.NDArray[np.float16]

NEAREST, FARTHEST = 0.95, 0.9
"""Cosines between which a copy lies of what it is a copy of."""

_BLOCK = 20_000

CHUNKS_PER_ARTICLE = 7.75
"""Of these articles: a few more than are asked for have a chunk."""


def noisy(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a copy of each row, float32 `[n, dim]` of norm 1, at a drawn cosine."""
    noise = rng.standard_normal(rows.shape).astype(np.float32)
    noise -= np.einsum("ij,ij->i", noise, rows)[:, np.newaxis] * rows
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    cosines = rng.uniform(FARTHEST, NEAREST, (len(rows), 1)).astype(np.float32)
    return np.asarray(cosines * rows + np.sqrt(1 - cosines**2) * noise, np.float32)


def blocks(real: FloatArray, count: int) -> Iterator[HalfArray]:
    """Yield `count` vectors as the catalog keeps them: the real ones, then copies."""
    rng = np.random.default_rng(SEED)
    yield real[:count].astype(np.float16)
    done = min(len(real), count)
    while done < count:
        n = min(_BLOCK, count - done)
        yield noisy(real[rng.integers(0, len(real), n)], rng).astype(np.float16)
        done += n


def save_rows(real: FloatArray, count: int, path: Path) -> None:
    """Write `count` vectors to a .npy file, float16 `[count, dim]`."""
    kept = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float16, shape=(count, real.shape[1])
    )
    at = 0
    for block in blocks(real, count):
        kept[at : at + len(block)] = block
        at += len(block)
    kept.flush()


class RealText(TextPool):
    """Articles of real sentences, drawn with a seed."""

    def __init__(self, sentences: list[str]) -> None:
        """Draw from `sentences`."""
        self.sentences = sentences
        self._seed = SEED

    def chunks(self, count: int) -> Iterator[Article]:
        """Yield articles that have about `count` chunks."""
        return self.articles(round(count / CHUNKS_PER_ARTICLE))
