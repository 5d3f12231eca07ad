"""Arms over a small collection, and the reports of it."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from app.core.types import Library
from app.evaluation.arms import plain, standard_arms
from app.evaluation.collections import Collection, TestPassage, TestQuestion
from app.evaluation.report import (
    EvaluationReport,
    Experiment,
    ReportProvenance,
    report_of,
    settings_hash,
    to_csv,
    to_html,
    to_json,
    to_markdown,
)
from app.evaluation.runner import RetrieverSearch, run
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from evaluation.studies.fusion import grid
from tests.fakes.embedders import HashEmbedder
from tests.stores import passage, shelved

TEXTS = {
    "rollo": "Rollo was the leader of the Norse who settled in Normandy.",
    "hastings": "The dukes of Normandy conquered England in 1066 at <b>Hastings</b>.",
    "cereals": "Wheat and barley are cereals grown in temperate climates.",
    "sonata": "A sonata is a piece of music for one or two instruments.",
}
QUESTIONS = {
    "Who led the Norse?": "rollo",
    "Where was England conquered?": "hastings",
    "Which cereals are grown?": "cereals",
}


def _collection() -> Collection:
    questions = tuple(
        TestQuestion(f"q{i}", text, i, ("Rollo",) if i == 1 else ())
        for i, text in enumerate(QUESTIONS, start=1)
    )
    relevance = {q.id: {QUESTIONS[q.text]: 1} for q in questions}
    return Collection(
        "toy",
        tuple(TestPassage(key, "", text) for key, text in TEXTS.items()),
        questions,
        relevance,
    )


def _search() -> RetrieverSearch:
    passages = [passage(text, key=key, library=Library.PUBLIC) for key, text in TEXTS.items()]
    store = shelved(*passages, embedder=(embedder := HashEmbedder(dimension=256)))
    return RetrieverSearch(
        lambda arm: Retriever(store.catalog, store.vectors, store.lexical, embedder, arm.options),
        Library.PUBLIC,
        {p.document.doc_id: p.document.source_key for p in passages},
    )


def an_experiment(seed: int = 1) -> Experiment:
    search = _search()
    return run(_collection(), standard_arms(), search, baseline="rrf", seed=seed, resamples=200)


def a_report(experiment: Experiment) -> EvaluationReport:
    made = ReportProvenance(
        "0123456789abcdef", settings_hash([experiment]), "f00d", {"hash": "d1"}, 1
    )
    return report_of("A toy report", made, (experiment,), ("Nothing was decided.",), {"auc": 0.5})


def test_every_arm_answers_every_question() -> None:
    experiment = an_experiment()
    names = [arm.name for arm in standard_arms()]
    assert [arm.name for arm in experiment.shown.arms] == names
    default = experiment.arm("default")
    assert default.measures["nDCG@10"].mean == 1.0
    assert default.grounded_rate == 1.0
    assert experiment.shown.found["default"]["q1"][0] == "rollo"
    assert experiment.timings["default"].p50_ms > 0
    stages = experiment.timings["default"].stages_p50_ms
    assert {"embed", "search", "complete", "fusion"} <= set(stages)
    assert experiment.arm("rrf").overlap_with_baseline == 1.0
    assert {c.arm for c in experiment.shown.comparisons} == {*names} - {"rrf"}


def test_an_unknown_baseline_is_named() -> None:
    search = _search()
    with pytest.raises(ValueError, match="no arm 'x'"):
        run(_collection(), [plain("dense", "dense")], search, baseline="x", seed=1, resamples=50)


def test_a_grid_names_its_arms() -> None:
    arms = list(grid(RetrievalOptions(), {"dense_weight": (0.3, 0.5), "rerank": ("mmr",)}))
    assert [arm.name for arm in arms] == [
        "dense_weight=0.3 rerank=mmr",
        "dense_weight=0.5 rerank=mmr",
    ]
    assert arms[0].options.dense_weight == 0.3
    assert arms[0].fusion == "relative_score"


def test_a_rerun_gives_identical_json_apart_from_timings() -> None:
    one, two = (json.loads(to_json(a_report(an_experiment()), passages=True)) for _ in range(2))
    assert one.pop("timings").keys() == two.pop("timings").keys() == {"toy"}
    assert one == two
    assert one["provenance"]["git_sha"] == "0123456789abcdef"
    assert one["experiments"][0]["arms"][0]["per_question"].keys() == {"q1", "q2", "q3"}


def test_markdown_and_csv_hold_every_arm() -> None:
    report = a_report(an_experiment())
    text = to_markdown(report)
    rows = list(csv.DictReader(io.StringIO(to_csv(report))))
    for arm in standard_arms():
        assert f"| {arm.name} |" in text
        assert sum(row["arm"] == arm.name for row in rows) == 6
    assert "| against rrf | p (Holm) |" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table[: 2 + len(standard_arms())]} == {table[0].count("|")}
    assert "Nothing was decided." in text
    assert "| auc | 0.5 |" in text


def test_the_dashboard_needs_nothing_from_outside() -> None:
    page = to_html(a_report(an_experiment()))
    assert page.count("<svg") == 1
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=['\"](?:https?:)?//", page)
    assert "@import" not in page
    assert "&lt;b&gt;Hastings" in page
    assert "Where was England conquered?" in page
    assert "<li class='hit'><small>hastings</small>" in page
    assert "<li class='hit'><small>sonata</small>" not in page
