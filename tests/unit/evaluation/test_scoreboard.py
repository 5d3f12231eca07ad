"""The scoreboard ranks documents of every contestant by the same pieces and vectors."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from app.evaluation.collections import Collection, TestPassage, TestQuestion
from app.evaluation.metrics import per_question
from evaluation.benchmarks.contest import CONTESTANTS, bm25, dense, min_max, rrf
from evaluation.benchmarks.scoreboard import (
    MEASURES,
    NAMES,
    OURS,
    Result,
    contest,
    cost_table,
    elsewhere,
    prepare,
    quality_table,
    write_trec,
)

TEXTS = ("The lighthouse flashes twice.", "Bees visit clover.", "Salt dissolves in water.")
COLLECTION = Collection(
    "tiny",
    tuple(TestPassage(str(n), "", text) for n, text in enumerate(TEXTS)),
    (
        TestQuestion("a", "How often does the lighthouse flash?", 1),
        TestQuestion("b", "What do bees visit?", 3),
    ),
    {"a": {"0": 1}, "b": {"1": 1}},
)


def test_every_contestant_has_a_name() -> None:
    assert CONTESTANTS.keys() == NAMES.keys()


@pytest.mark.parametrize("way", [bm25, rrf, min_max])
def test_words_find_the_text_that_has_them(way: object, tmp_path: Path) -> None:
    assert callable(way)
    ask = way(TEXTS, np.eye(3, dtype=np.float32), tmp_path)
    assert ask("clover bees", np.array([0.1, 0.2, 0], dtype=np.float32))[0] == 1


@pytest.mark.parametrize("way", [dense, min_max])
def test_vectors_find_the_text_that_is_near(way: object, tmp_path: Path) -> None:
    assert callable(way)
    ask = way(TEXTS, np.eye(3, dtype=np.float32), tmp_path)
    assert ask("zzz", np.eye(3, dtype=np.float32)[2])[0] == 2


def test_a_contestant_runs_in_its_own_process_and_is_judged(tmp_path: Path) -> None:
    owners = prepare(COLLECTION, tmp_path)
    assert owners == ["0", "1", "2"]
    result = contest("min_max", sys.executable, COLLECTION, owners, tmp_path)
    assert {question: found[0] for question, found in result.rankings.items()} == {
        "a": "0",
        "b": "1",
    }
    assert result.ask_ms >= 0
    other = Result({"a": ["1", "0"], "b": ["1"]}, 1.0, 1.0, None, 1.0, "x")
    scores = {
        who: per_question(one.rankings, COLLECTION.relevance, MEASURES)
        for who, one in ((OURS, other), ("the other", result))
    }
    table = quality_table("tiny", scores)
    assert table[3].startswith("| the other | 1.000")  # what is better stands first
    assert table[4].startswith(f"| {OURS} | 0.815")
    assert len(cost_table({OURS: [other], "the other": [result]})) == 7


def test_runs_and_judgements_are_in_the_formats_of_trec_eval(tmp_path: Path) -> None:
    result = Result({"a": ["0", "2"], "b": ["1"]}, 1.0, 1.0, None, 1.0, "x")
    write_trec(tmp_path, "foreign/tiny", COLLECTION, {"txtai, hybrid": result})
    assert (tmp_path / "foreign-tiny.qrels").read_text("utf-8") == "a 0 0 1\nb 0 1 1\n"
    rows = (tmp_path / "foreign-tiny.txtai.run").read_text("utf-8").splitlines()
    assert rows == ["a Q0 0 1 20 txtai", "a Q0 2 2 19 txtai", "b Q0 1 1 20 txtai"]


def test_figures_of_other_qualities_are_those_of_their_reports() -> None:
    whole = json.loads(Path("evaluation/reports/whole.json").read_text("utf-8"))
    line = whole["lines"][0]
    assert f"| [whole](whole.md) | {line['what']} | {line['measured']:.3g} |" in elsewhere()
