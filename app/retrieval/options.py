"""Options of retrieval. Defaults carry their evidence; the harness decides (docs/how-it-works.md)."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.types import Fusion


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """Everything a question's search can be tuned by."""

    top_k: int = 5
    fusion: Fusion = "relative_score"
    dense_weight: float = 0.5
    """Share of the dense leg in `relative_score`, [0, 1]; equal shares fit no collection."""
    relevance_threshold: float = 0.65
    """Cosine distance under which a hit of papers passes the cutoff."""
    public_relevance_threshold: float = 0.65
    compare_slack: float = 0.05
    """Added to the distance threshold in compare mode, whose subjects seldom share one passage."""
    coverage_threshold: float = 0.5
    """Idf-weighted share of the question's words that lets a hit pass whatever its distance (DESIGN 5)."""
    keyword_rerank_weight: float = 0.15
    """W of the arm `dense` in papers: order by `distance - W * overlap`."""
    public_keyword_rerank_weight: float = 0.15
    keyword_fusion_weight: float = 0.0
    """W' of the fused arms, on their [0, 1] scale, over the best `rerank_head`."""
    enable_fallback: bool = True
    fallback_top_n: int = 3
    embed_on_query_budget_ms: float = 25.0
    rrf_k: int = 60  # Cormack 2009
    rerank_head: int = 30
    """Candidates that keyword overlap and best-sentence reranking look at, best fused first."""
    sentence_rerank: bool = False
    """Add the best sentence's similarity as a third, equal share of the fused score over the head."""
    cross_encoder_head: int = 20
    """Candidates a cross-encoder reads, where one is configured."""
    near_duplicate_jaccard: float = 0.7
    """Token sets at least this alike are one passage, [0, 1]."""
    source_cap: float = 0.5
    """Largest share of the passages one document may fill while others still have some, (0, 1]."""
    mmr: bool = False
    """Select by maximal marginal relevance instead of the best chunk of each document first."""
    mmr_lambda: float = 0.6
    """Weight of relevance against novelty in MMR, [0, 1]."""
    band_strong: float = 0.5
    """Cosine similarity above which a hit is strong; for MiniLM."""
    band_partial: float = 0.35
    """Cosine similarity from which a hit is partial, below strong; for MiniLM."""
