"""Define the request and the result of retrieval."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.types import Filters, FloatArray, Fusion, Hit, Library, Mode, Notice, Rerank


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search of one library.

    `library: all` is two requests, merged by `app.retrieval.merge`.
    """

    text: str
    """The search query: the question, a rewrite, or a sub-query. Used for BM25, overlap and,
    without `vector`, the dense leg."""
    library: Library
    mode: Mode = "general"
    top_k: int | None = None
    """Passages to return; None takes the mode's slots."""
    filters: Filters = Filters()
    fusion: Fusion | None = None
    rerank: Rerank | None = None
    """None: the one of the options."""
    vector: FloatArray | None = None
    """A ready query vector `[dim]`, norm 1 (hyde); None embeds `text`."""
    keep_weak: bool = False
    """Rank up to top_k and drop nothing by cutoff (retrieve_only)."""
    fallback: bool | None = None
    """Return the nearest passages where none passes the cutoff; None: as configured."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Ranked passages, best first, and what must be said about them."""

    hits: tuple[Hit, ...]
    notices: tuple[Notice, ...] = ()
    confidence: float = 0.0
    """Calibrated probability in [0, 1] that the passages answer the question."""
    fallback: bool = False
    """True when nothing passed the cutoff and the hits are the best of the rest."""
