"""Which settings act: those that do nothing as things are, and the constants that decide."""

from __future__ import annotations

from typing import get_args

from app.core.types import Library
from app.generation.prompt.prompts import AnswerMode
from app.retrieval.request import RetrievalOptions
from app.retrieval.scoring import Calibration
from app.settings import Settings

_OF_MODELS = (
    "llm_model helper_model llm_temperature llm_max_tokens llm_num_ctx reasoning model_prompts"
    " evidence prompts_dir"
).split()
"""Settings that act where a model is asked."""


def ineffective_settings(settings: Settings) -> list[str]:
    """Return a line for each changed setting without effect, naming what acts."""
    return [*_without_fusion(settings), *_without_model(settings), *_unused_prompts(settings)]


def _without_fusion(settings: Settings) -> list[str]:
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


def _without_model(settings: Settings) -> list[str]:
    provider = settings.llm_provider
    if provider == "extractive":
        return [
            f"{name.upper()} does not act under LLM_PROVIDER=extractive: no model is asked"
            for name in _OF_MODELS
            if name in settings.model_fields_set
        ]
    if provider in {"auto", "ollama"} or not settings.llm_model:
        return []
    return [
        f"LLM_MODEL names a model of Ollama; under LLM_PROVIDER={provider} HOSTED_MODEL decides"
    ]


def _unused_prompts(settings: Settings) -> list[str]:
    """Return a line for each prompt of PROMPTS_DIR that MODEL_PROMPTS leaves out."""
    folder = settings.prompts_dir
    if folder is None or settings.model_prompts == "auto" or not folder.is_dir():
        return []
    own = {path.stem for path in folder.glob("*.yml")}
    left_out = (
        own & {"contract", *get_args(AnswerMode)}
        if settings.model_prompts == "compact"
        else own & {"compact"}
    )
    return [
        f"{name}.yml of PROMPTS_DIR does not act under MODEL_PROMPTS={settings.model_prompts}"
        for name in sorted(left_out)
    ]


def effective_thresholds(
    options: RetrievalOptions, library: Library, row: Calibration | None
) -> dict[str, float]:
    """Return the constants that decide in a library, by fusion and calibration (None: MiniLM's)."""
    acting = row.applied(options) if row else options

    def taken(names: str) -> dict[str, float]:
        return {name: float(getattr(acting, name)) for name in names.split()}

    constants = taken("band_strong band_partial similarity_offset similarity_scale")
    if options.fusion == "dense":
        prefix = "" if library is Library.PAPERS else "public_"
        return {
            **constants,
            "distance_threshold": getattr(options, f"{prefix}relevance_threshold"),
            "keyword_weight": getattr(options, f"{prefix}keyword_rerank_weight"),
        }
    weighs = options.fusion == "relative_score"
    return {
        **constants,
        **taken("closeness_threshold coverage_threshold confidence_midpoint confidence_slope"),
        "keyword_weight": options.keyword_fusion_weight if weighs else 0.0,
        "phrase_weight": options.phrase_fusion_weight if weighs else 0.0,
    }
