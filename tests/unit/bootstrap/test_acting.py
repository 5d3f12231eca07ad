"""Settings that have no effect are named, with what acts instead."""

from __future__ import annotations

from app.bootstrap.acting import acting_constants, inert_settings
from app.core.types import Library
from app.retrieval.options import RetrievalOptions
from app.settings import Settings


def _settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]  # keywords


def test_a_threshold_of_another_fusion_is_named_once() -> None:
    assert inert_settings(_settings()) == []
    (line,) = inert_settings(_settings(relevance_threshold=0.4))
    assert line.startswith(
        "RELEVANCE_THRESHOLD acts under FUSION=dense only; under FUSION=relative_score the"
        " closeness"
    )
    assert inert_settings(_settings(relevance_threshold=0.4, fusion="dense")) == []
    (line,) = inert_settings(_settings(public_keyword_rerank_weight=0.5, fusion="rrf"))
    assert line.endswith("keyword overlap weighs 0")


def test_what_acts_follows_the_fusion() -> None:
    usual = acting_constants(RetrievalOptions(), Library.PAPERS, None)
    assert (usual["closeness_threshold"], usual["keyword_weight"]) == (0.375, 0.2)
    dense = acting_constants(
        RetrievalOptions(fusion="dense", relevance_threshold=0.4), Library.PAPERS, None
    )
    assert (dense["distance_threshold"], dense["keyword_weight"]) == (0.4, 0.15)
    assert "closeness_threshold" not in dense
