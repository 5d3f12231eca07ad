"""The short form of `make bench-bundle`: 500 questions before and after a journey that is killed on its way."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.types import FloatArray
from app.core.vectors import l2_normalise
from evaluation.benchmarks.bundle import journey
from tests.fakes.embedders import HashEmbedder


class GaussianEmbedder(HashEmbedder):
    """A random unit vector per text: far from one another, so that a graph of a few thousand finds nearly all of them."""

    def _rows(self, texts: Sequence[str]) -> FloatArray:
        seeds = [
            int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") for text in texts
        ]
        return l2_normalise(
            np.stack(
                [np.random.default_rng(seed).normal(size=self.identity.dimension) for seed in seeds]
            )
        )


def test_five_hundred_questions_find_the_same_after_the_journey(tmp_path: Path) -> None:
    found = journey(tmp_path, GaussianEmbedder(48, max_tokens=100_000), articles=230, flips=6)
    assert found.chunks > 1_000  # beyond the threshold at which Chroma writes its graph
    assert (found.exact_same, found.lexical_same) == (500, 500)
    assert found.graph_overlap >= 0.99
    assert found.flips_refused == found.flips
    assert found.foreign_refused
    assert found.resumed_whole
    assert found.faults == 0
