"""The scoreboard ranks documents of every contestant by the same pieces and vectors."""

import json
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
    Texts,
    areas,
    page_of,
    quality_table,
    rows_of,
    whole_rows,
    write_trec,
)

COST = {"index_ms": 1.0, "ask_ms": 1.0, "stored": None, "peak_mb": 1.0} | {
    "installed_mb": None,
    "version": "x",
}
REPORTS = Path("evaluation/reports")
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
    found, best = ask("clover bees", np.array([0.1, 0.2, 0], dtype=np.float32))
    assert found[0] == 1
    assert best > 0


@pytest.mark.parametrize("way", [dense, min_max])
def test_vectors_find_the_text_that_is_near(way: object, tmp_path: Path) -> None:
    assert callable(way)
    ask = way(TEXTS, np.eye(3, dtype=np.float32), tmp_path)
    assert ask("zzz", np.eye(3, dtype=np.float32)[2])[0][0] == 2


def test_a_contestant_runs_in_its_own_process_and_is_judged(tmp_path: Path) -> None:
    texts = Texts(tmp_path, {one.id: one.text for one in COLLECTION.questions})
    texts.prepare((one.id, one.document) for one in COLLECTION.passages)
    assert texts.owners == ["0", "1", "2"]
    assert texts.pieces == list(TEXTS)
    result = texts.contest("min_max", {})
    assert {question: found[0] for question, found in result.rankings.items()} == {
        "a": "0",
        "b": "1",
    }
    assert result.best.keys() == {"a", "b"}
    assert result.cost["ask_ms"] >= 0
    assert result.cost["installed_mb"] is None  # it runs in our environment
    rankings = {OURS: {"a": ["1", "0"], "b": ["1"]}, "the other": result.rankings}
    rows = rows_of(
        {who: per_question(one, COLLECTION.relevance, MEASURES) for who, one in rankings.items()}
    )
    table = quality_table("tiny", rows)
    assert table[3].startswith("| the other | 1.000")  # what is better stands first
    assert table[4].startswith(f"| {OURS} | 0.815")


def test_tables_that_are_lost_stand_first() -> None:
    def rows(others: float) -> list[dict[str, object]]:
        return rows_of(
            {OURS: {"m": {"a": 0.5, "b": 0.5}}, "the other": {"m": {"a": others, "b": others}}}
        )

    record = {
        "sets": {"won": rows(0.1), "lost": rows(0.6), "lost by more": rows(0.9)},
        "answerable": rows(0.5),
        "whole": {"the other": {one: [0, 90] for one in _asked()}},
        "costs": {OURS: [COST], "the other": [COST]},
    }
    heads = [
        line for line in page_of(record) if line.startswith(("## ", "| ")) and "beside" in line
    ]
    named = [head.removeprefix("| ").partition(",")[0] for head in heads]
    assert named[:2] == ["lost by more", "lost"]
    page = page_of(record)
    assert page.index("## Where no other is better") > page.index(heads[1])
    assert page.index("## Where no other is better") < page.index(heads[2])


def _asked() -> dict[str, dict[str, object]]:
    asked: dict[str, dict[str, object]] = json.loads((REPORTS / "whole.json").read_text("utf-8"))[
        "asked"
    ]
    return asked


def test_answers_about_whole_documents_are_those_of_the_newest_report() -> None:
    asked = _asked()
    others = {one: [int(reply["kind"] != "absent"), 100] for one, reply in asked.items()}
    best, ours = whole_rows({"all right": others})
    assert (best["who"], best["right"], best["refused"]) == ("all right", 1.0, "0 of 15")
    line = json.loads((REPORTS / "whole.json").read_text("utf-8"))["lines"][0]
    assert ours["right"] == pytest.approx(line["measured"], abs=1e-4)


def test_a_score_that_knows_tells_questions_apart_better() -> None:
    sure = {
        OURS: {"a": 0.9, "b": 0.8, "c": 0.2, "d": 0.85},
        "knows": {"a": 9.0, "b": 8.0, "c": 1.0, "d": 2.0},
    }
    best, ours = areas(sure, {"a", "b"})
    assert (best["who"], best["AUC"]) == ("knows", 1.0)
    assert ours["AUC"] == pytest.approx(0.75)  # of four pairs d beats b
    assert best["beside"]["mean"] == pytest.approx(0.25)


def test_runs_and_judgements_are_in_the_formats_of_trec_eval(tmp_path: Path) -> None:
    result = Result({}, {"a": ["0", "2"], "b": ["1"]}, {}, COST)
    write_trec(tmp_path, "foreign/tiny", COLLECTION, {"txtai, hybrid": result})
    assert (tmp_path / "foreign-tiny.qrels").read_text("utf-8") == "a 0 0 1\nb 0 1 1\n"
    rows = (tmp_path / "foreign-tiny.txtai.run").read_text("utf-8").splitlines()
    assert rows == ["a Q0 0 1 2 txtai", "a Q0 2 2 1 txtai", "b Q0 1 1 1 txtai"]


def test_the_page_has_the_figures_of_the_newest_reports() -> None:
    page = (REPORTS / "scoreboard.md").read_text("utf-8")
    record = json.loads((REPORTS / "scoreboard.json").read_text("utf-8"))["measured"]
    assert "\n".join(page_of(record)) in page, (
        "run: python -m evaluation.benchmarks.scoreboard --render"
    )
