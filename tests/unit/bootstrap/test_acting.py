"""Settings that have no effect are named, with what acts instead."""

from __future__ import annotations

from pathlib import Path

from app.bootstrap.inert import effective_thresholds, ineffective_settings
from app.core.types import Library
from app.retrieval.request import RetrievalOptions
from app.settings import Settings


def _settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]  # keywords


def test_a_threshold_of_another_fusion_is_named_once() -> None:
    assert ineffective_settings(_settings()) == []
    (line,) = ineffective_settings(_settings(relevance_threshold=0.4))
    assert line.startswith(
        "RELEVANCE_THRESHOLD acts under FUSION=dense only; under FUSION=relative_score the"
        " closeness"
    )
    assert ineffective_settings(_settings(relevance_threshold=0.4, fusion="dense")) == []
    (line,) = ineffective_settings(_settings(public_keyword_rerank_weight=0.5, fusion="rrf"))
    assert line.endswith("keyword overlap weighs 0")


def test_what_acts_follows_the_fusion() -> None:
    usual = effective_thresholds(RetrievalOptions(), Library.PAPERS, None)
    assert (usual["closeness_threshold"], usual["keyword_weight"]) == (0.375, 0.2)
    dense = effective_thresholds(
        RetrievalOptions(fusion="dense", relevance_threshold=0.4), Library.PAPERS, None
    )
    assert (dense["distance_threshold"], dense["keyword_weight"]) == (0.4, 0.15)
    assert "closeness_threshold" not in dense


def test_settings_of_a_model_that_is_never_asked_are_named() -> None:
    lines = ineffective_settings(
        _settings(llm_provider="extractive", reasoning="cot", llm_max_tokens=99)
    )
    assert [line.split()[0] for line in lines] == ["LLM_MAX_TOKENS", "REASONING"]
    assert ineffective_settings(_settings(reasoning="cot", llm_max_tokens=99)) == []
    (line,) = ineffective_settings(_settings(llm_provider="groq", llm_model="phi4"))
    assert line.endswith("under LLM_PROVIDER=groq HOSTED_MODEL decides")


def test_prompts_that_the_other_kind_leaves_out_are_named(tmp_path: Path) -> None:
    for name in ("general", "compact", "hyde"):
        (tmp_path / f"{name}.yml").touch()
    assert ineffective_settings(_settings(prompts_dir=tmp_path)) == []
    (line,) = ineffective_settings(_settings(prompts_dir=tmp_path, model_prompts="compact"))
    assert line == "general.yml of PROMPTS_DIR does not act under MODEL_PROMPTS=compact"
    (line,) = ineffective_settings(_settings(prompts_dir=tmp_path, model_prompts="full"))
    assert line.startswith("compact.yml")
