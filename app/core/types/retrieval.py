"""From a search to numbered evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from app.core.types.stored import Passage
from app.core.types.vocabulary import Band, NoticeCode


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on passages; empty fields do not filter.

    All given fields must hold; values within one are alternatives.
    """

    sections: tuple[str, ...] = ()
    doc_ids: tuple[str, ...] = ()
    year_from: int | None = None
    year_to: int | None = None
    author: str | None = None
    """Case-insensitive substring of any author's name."""
    types: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True when at least one condition is set."""
        return bool(
            self.sections
            or self.doc_ids
            or self.types
            or self.author
            or self.year_from is not None
            or self.year_to is not None
        )


class Scored(NamedTuple):
    """A chunk id and a leg's raw score.

    Cosine distance (lower is better) or BM25 (higher is better).
    """

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True)
class Signals:
    """Values of each step for a hit; None if a step did not see it."""

    dense: float | None = None
    """Cosine distance, [0, 2]."""
    bm25: float | None = None
    overlap: float | None = None
    """Idf-weighted share of the question's words found in the passage, [0, 1]."""
    sentence: float | None = None
    """Cosine similarity of the best sentence, [-1, 1]."""
    rerank: float | None = None
    """Cross-encoder logit, unbounded."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked passage; `score` orders hits of one search, higher is better."""

    passage: Passage
    score: float
    signals: Signals = Signals()
    band: Band | None = None
    fallback: bool = False
    closeness: float | None = None
    """Mean of cosine similarity, on MiniLM's scale, and overlap, [-0.5, 1]; None unless a search
    ranked it. Comparable between libraries and embedders."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A hit with its number in the answer, from 1."""

    n: int
    hit: Hit


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a user must know; `code` is from the fixed list of the API."""

    code: NoticeCode
    message: str
