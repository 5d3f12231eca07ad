"""Define what an evaluation compares: named retrieval settings, alone or a grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.types import Fusion, Strategy
from app.ingest.options import Chunker, IngestOptions
from app.retrieval.options import RetrievalOptions


@dataclass(frozen=True, slots=True)
class Chunking:
    """Chunking options of an arm; None takes the server's setting."""

    size: int | None = None
    """Ceiling of a chunk, in characters."""
    chunker: Chunker | None = None

    def options(self, base: IngestOptions) -> IngestOptions:
        """Return ingest options with this cutting; the overlap's share stays."""
        size = self.size or base.chunk_size
        overlap = (
            base.chunk_overlap
            if size == base.chunk_size
            else base.chunk_overlap * size // base.chunk_size
        )
        return replace(
            base, chunk_size=size, chunk_overlap=overlap, chunker=self.chunker or base.chunker
        )


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to search; everything not named by it is the default."""

    name: str
    options: RetrievalOptions
    strategy: Strategy = "baseline"
    note: str = ""
    """What it changes, for the report."""
    top_k: int | None = None
    """Passages asked for; None asks for as many as the run does."""
    chunking: Chunking = Chunking()

    @property
    def fusion(self) -> Fusion:
        """The arm's fusion."""
        return self.options.fusion


def plain(name: str, fusion: Fusion, note: str = "") -> Arm:
    """Return an arm that is nothing but one fusion: no keywords, no reranking."""
    options = RetrievalOptions(
        fusion=fusion,
        keyword_fusion_weight=0.0,
        phrase_fusion_weight=0.0,
        keyword_rerank_weight=0.0,
        public_keyword_rerank_weight=0.0,
        rerank="none",
    )
    return Arm(name, options, note=note)


def plain_arms() -> tuple[Arm, ...]:
    """Return the baselines: both legs, and RRF and min-max fusion of their lists."""
    return (
        plain("dense", "dense", "nearest neighbours alone"),
        plain("bm25", "lexical", "BM25 alone"),
        plain("rrf", "rrf", "reciprocal rank fusion, k = 60, of the same two lists"),
        plain("min-max", "relative_score", "min-max fusion, equal shares, completed signals"),
    )


def standard_arms(default: RetrievalOptions | None = None) -> tuple[Arm, ...]:
    """Return the arms of every report: legs, RRF, default, and steps on or off."""
    default = default or RetrievalOptions()
    return (
        *plain_arms(),
        Arm("default", default, note="min-max fusion with keyword overlap and word pairs"),
        Arm(
            "without pairs",
            replace(default, phrase_fusion_weight=0.0),
            note="default without word pairs",
        ),
        Arm(
            "without overlap",
            replace(default, keyword_fusion_weight=0.0),
            note="default without keyword overlap",
        ),
        Arm(
            "mmr",
            replace(default, rerank="mmr"),
            note="default, selected by maximal marginal relevance",
        ),
    )


def grid(base: RetrievalOptions, axes: Mapping[str, Sequence[object]]) -> Iterator[Arm]:
    """Yield an arm per combination, named like `dense_weight=0.3 rrf_k=60`.

    Args:
        base: Options that every arm shares.
        axes: Values by field of RetrievalOptions.

    Raises:
        TypeError: An axis is no field of RetrievalOptions.
    """
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        yield Arm(
            " ".join(f"{name}={value}" for name, value in chosen.items()),
            replace(base, **chosen),  # type: ignore[arg-type]
        )
