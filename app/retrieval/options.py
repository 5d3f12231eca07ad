"""Options of retrieval. Defaults carry their evidence; the harness decides (docs/how-it-works.md)."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.types import Fusion


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """Everything a question's search can be tuned by."""

    top_k: int = 5
    fusion: Fusion = "relative_score"
    relevance_threshold: float = 0.65
    """Cosine distance under which a hit of papers passes the cutoff."""
    public_relevance_threshold: float = 0.65
    keyword_rerank_weight: float = 0.15
    public_keyword_rerank_weight: float = 0.15
    enable_fallback: bool = True
    fallback_top_n: int = 3
    embed_on_query_budget_ms: float = 25.0
    rrf_k: int = 60  # Cormack 2009
