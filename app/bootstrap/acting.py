"""Tell which thresholds act under a fusion and an embedder's calibration."""

from __future__ import annotations

from app.core.types import Library
from app.retrieval.calibration import Calibration
from app.retrieval.options import RetrievalOptions
from app.settings import Settings


def inert_settings(settings: Settings) -> list[str]:
    """Return a line for each changed setting without effect, naming what acts."""
    if settings.fusion == "dense":
        return []
    options = settings.retrieval()
    weight = options.keyword_fusion_weight if settings.fusion == "relative_score" else 0.0
    closeness = (
        "the closeness of the embedder's calibration decides (documind calibrate;"
        " diagnostics shows it)"
    )
    instead = {
        "relevance_threshold": closeness,
        "public_relevance_threshold": closeness,
        "keyword_rerank_weight": f"keyword overlap weighs {weight:g}",
        "public_keyword_rerank_weight": f"keyword overlap weighs {weight:g}",
    }
    return [
        f"{name.upper()} acts under FUSION=dense only; under FUSION={settings.fusion} {acts}"
        for name, acts in instead.items()
        if getattr(settings, name) != Settings.model_fields[name].default
    ]


def acting_constants(
    options: RetrievalOptions, library: Library, row: Calibration | None
) -> dict[str, float]:
    """Return the constants that decide in a library, by fusion and calibration.

    `row` None: MiniLM's.

    Args:
        options: Of the server.
        library: Whose thresholds.
        row: Of the library's embedder.
    """
    acting = row.applied(options) if row else options
    constants = {name: float(getattr(acting, name)) for name in ("band_strong", "band_partial")}
    constants |= {
        "similarity_offset": acting.similarity_offset,
        "similarity_scale": acting.similarity_scale,
    }
    if options.fusion == "dense":
        papers = library is Library.PAPERS
        return {
            **constants,
            "distance_threshold": options.relevance_threshold
            if papers
            else options.public_relevance_threshold,
            "keyword_weight": options.keyword_rerank_weight
            if papers
            else options.public_keyword_rerank_weight,
        }
    weighs = options.fusion == "relative_score"
    return {
        **constants,
        "closeness_threshold": acting.closeness_threshold,
        "coverage_threshold": acting.coverage_threshold,
        "confidence_midpoint": acting.confidence_midpoint,
        "confidence_slope": acting.confidence_slope,
        "keyword_weight": options.keyword_fusion_weight if weighs else 0.0,
        "phrase_weight": options.phrase_fusion_weight if weighs else 0.0,
    }
