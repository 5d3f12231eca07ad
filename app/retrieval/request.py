"""Define the request and the result of retrieval."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.types import Filters, FloatArray, Fusion, Hit, Library, Mode, Notice, Rerank


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search of one library.

    `library: all` is two requests, merged by `app.retrieval.retrievers`.
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
    text: str = ""
    """The question with words matched that the model holds for misspelt; empty where nothing was
    searched."""
    searched: str = ""
    """The question as it was searched: unknown words matched, misspelt or not; empty as `text`."""


# Define options of retrieval; defaults name their evidence.


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """Everything a question's search can be tuned by."""

    top_k: int = 5
    fusion: Fusion = "relative_score"
    dense_weight: float = 0.5
    """Share of the dense leg in `relative_score`, [0, 1]; equal shares are fitted to no
    collection."""
    word_guard: float = 0.3  # evaluation/reports/late.md
    """Share of the most that BM25 could give from which the lexical leg counts in full in
    `relative_score`, [0, 1]; 0: always."""
    relevance_threshold: float = 0.65
    """Cosine distance under which a hit of papers passes the cutoff of the arm `dense`."""
    public_relevance_threshold: float = 0.65
    """The same for public."""
    closeness_threshold: float = 0.375  # evaluation/reports/closeness.md
    """Mean of cosine similarity and coverage from which a hit passes in the other arms, [-0.5,
    1]; for MiniLM."""
    coverage_threshold: float = 0.5
    """Idf-weighted share of the question's words from which a hit without a vector passes, [0,
    1]."""
    compare_slack: float = 0.05
    """Taken off every cutoff in compare mode, whose subjects seldom share one passage."""
    chosen_slack: float = 0.175
    """The same where documents are chosen: what they say of the question, the quote is judged by
    (`quoting.Weighing`)."""
    confidence_midpoint: float = 0.40  # evaluation/reports/closeness.md
    """Closeness of the best hit at which it is as likely as not that the library answers the
    question; for MiniLM."""
    confidence_slope: float = 28.0  # evaluation/reports/closeness.md
    """Steepness of the logistic curve of the confidence, per unit of closeness."""
    similarity_offset: float = 0.0
    """Of the line that takes a similarity to MiniLM's scale, `(similarity - offset) / scale`:
    what was measured there holds for another embedder after that (`app.retrieval.scoring`)."""
    similarity_scale: float = 1.0
    """The same; above 0."""
    keyword_rerank_weight: float = 0.15
    """W of the arm `dense` in papers: order by `distance - W * overlap`."""
    public_keyword_rerank_weight: float = 0.15
    keyword_fusion_weight: float = 0.2  # evaluation/reports/fusion.md
    """W' of `relative_score`, on its [0, 1] scale, over the best `rerank_head`; 0 leaves the
    keywords out."""
    phrase_fusion_weight: float = 0.2  # evaluation/reports/fusion.md
    """Weight of the question's word pairs found side by side, in `relative_score`, on its [0, 1]
    scale; 0 leaves them out."""
    enable_fallback: bool | None = None
    """Keep the nearest passages where none passes the cutoff; None: where who asks says so."""
    fallback_top_n: int = 3
    embed_on_query_budget_ms: float = 25
    rrf_k: int = 60  # Cormack 2009
    rerank_head: int = 20  # evaluation/reports/fusion.md: 30 gains nothing and costs its reading
    """Candidates that keyword overlap looks at, best fused first."""
    rerank: Rerank = "auto"
    """What orders the head once more: `auto` is `late` in `relative_score`, else `none`. `late`
    adds the codes' signals where the library keeps codes, `cross_encoder` has the built-in reader
    read each passage with the question. `mmr` selects by maximal marginal relevance instead of
    the best chunk of each document first."""
    late_sentence_weight: float = 0.4  # evaluation/reports/late.md
    """a of `late`: weight of the best sentence's similarity on the scale of the fused score."""
    late_token_weight: float = 1.0  # evaluation/reports/late.md
    """b of `late`: weight of MaxSim on the same scale."""
    cross_encoder_head: int = 20
    """Candidates that `cross_encoder`, the built-in reader, reads."""
    near_duplicate_jaccard: float = 0.7
    """Token sets at least this alike are one passage, [0, 1]."""
    source_cap: float = 0.5
    """Largest share of the passages one document may fill while others still have some, (0, 1]."""
    mmr_lambda: float = 0.6
    """Weight of relevance against novelty in MMR, [0, 1]."""
    band_strong: float = 0.5
    """Cosine similarity above which a hit is strong; for MiniLM."""
    band_partial: float = 0.35
    """Cosine similarity from which a hit is partial, below strong; for MiniLM."""

    def on_scale(self, similarity: float) -> float:
        """Return a cosine similarity on the thresholds' scale, [-1, 1]; NaN stays NaN."""
        return min(1.0, max(-1.0, (similarity - self.similarity_offset) / self.similarity_scale))
