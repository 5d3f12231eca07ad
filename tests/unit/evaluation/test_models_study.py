"""The study of real models: what it asks, what it keeps, and what its tables say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.answer.writing import AnswerWriter
from app.core.errors import ProviderError, ProviderUnreachable
from app.evaluation.cases import CaseBody
from app.evaluation.collections import Collection, TestQuestion
from app.evaluation.runner import KeptRows
from app.generation.check.grounding import Grounder
from app.generation.language.tokens import TokenCalibrator
from app.generation.prompt.prompts import PromptLibrary
from app.generation.quote.quoting import ExtractiveGenerator
from evaluation.studies.models import (
    STRATEGIES,
    Asker,
    Place,
    Row,
    Task,
    modes,
    prompts,
    strategies,
    tasks_of,
)
from tests.api.conftest import LIBRARY, Site, site
from tests.fakes.generators import FixedModels, Reply, ScriptedGenerator

COPPER = Task(
    "prompt",
    "samples",
    "compact",
    0,
    "What is the melting point of copper?",
    "papers",
    expected=("1085",),
)


def collection(name: str) -> Collection:
    questions = tuple(
        TestQuestion(f"{name}{n}", f"question {n} of {name}", n, (str(n),)) for n in range(1, 9)
    )
    return Collection(name, (), questions, {one.id: {"right": 1} for one in questions})


CASES = [CaseBody(f"sample {n}", "public", "question", ("x",)) for n in range(6)]
CASES += [CaseBody(f"absent {n}", "public", "question", oos=True) for n in range(2)]


def asker(opened: Site, *replies: Reply) -> Asker:
    local = opened.services
    return Asker(
        opened.settings,
        Place(local.store, local.libraries.searcher),
        FixedModels(ScriptedGenerator(*replies)),
        AnswerWriter(
            ExtractiveGenerator(),
            PromptLibrary.load(),
            TokenCalibrator(),
            opened.settings.generation(),
        ),
        Grounder(),
    )


def test_a_small_run_is_the_beginning_of_a_large_one_and_arms_of_a_question_stay_together() -> None:
    collections = {name: collection(name) for name in ("squad", "cranfield")}
    small, large = (tasks_of(collections, CASES, n) for n in (2, 4))
    assert {task.key for task in small} <= {task.key for task in large}
    first = [(task.part, task.collection, task.arm) for task in small[:8]]
    arms = STRATEGIES
    assert first == [("strategy", name, arm) for name in collections for arm in arms]
    absent = [task for task in large if task.absent and task.collection == "squad"]
    assert all("cranfield" in task.text and not task.expected for task in absent)
    assert len({task.key for task in large}) == len(large)


def test_a_row_says_what_the_reader_and_the_model_and_the_quotes_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluation.studies.models._PAUSE_S", 0.0)
    with site(tmp_path) as opened:
        opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        broken = ProviderUnreachable("the host broke the connection")
        row = asker(opened, broken, "Copper melts at 1085 degrees Celsius.").ask(COPPER)
        assert (row.status, row.seen, row.own, row.quote, row.quoted, row.cited) == (
            "answered",
            True,
            True,
            True,
            True,
            True,
        )
        assert (row.leak, row.loop, row.reason) == (False, False, "")
        assert row.prompt_tokens is not None
        assert 0 < (row.quote_s or 0) < row.whole_s
        refused = asker(opened, "Trains run on rails of steel in Peru.").ask(COPPER)
        assert (refused.own, refused.seen, refused.reason) == (
            False,
            True,
            "no passage says what the model wrote",
        )
        with pytest.raises(ProviderError, match="could not be answered"):
            asker(opened, *[broken] * 4).ask(COPPER)


def test_finished_rows_are_kept_and_a_line_that_was_cut_off_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [Row("one", "answered", 1.5, 2, ("a", "b"), seen=True), Row("two", "abstained", 0.1, 0)]
    kept = KeptRows(path, Row)
    for row in rows:
        kept.add(row)
    path.write_text(path.read_text("utf-8") + '{"key": "thr', "utf-8")
    again = KeptRows(path, Row)
    assert again.rows == rows
    again.add(rows[0])
    assert KeptRows(path, Row).rows == [*rows, rows[0]]


def test_strategies_are_compared_on_the_questions_that_both_searched() -> None:
    relevance = {"squad": {"q1": {"a": 1}, "q2": {"a": 1}}}
    base, hyde = (
        Task("strategy", "squad", arm, 0, "?", "public", "q1") for arm in ("baseline", "hyde")
    )
    found = Row("k", "retrieved", 1.0, 0, ("a", "b"))
    done = [
        (base, found),
        (replace(base, question_id="q2"), found),
        (hyde, replace(found, ranking=("b", "a"), calls=1, degraded=True)),
    ]
    lines, figures = strategies(done, relevance)
    assert lines[2] == "| squad | baseline | 2 | 1.000 |  | 0 | 0.0 | 1 |"
    assert lines[3] == "| squad | hyde | 1 | 0.631 | -0.369 [-0.369, -0.369] | 1 | 1.0 | 1 |"
    assert figures["squad hyde nDCG@10 minus baseline"] == pytest.approx(-0.369, abs=0.001)


def test_modes_and_prompts_are_counted() -> None:
    task = Task("mode", "samples", "general", 0, "?", "public")
    good = Row(
        "k",
        "answered",
        2.0,
        1,
        cited=True,
        seen=True,
        own=False,
        quote=True,
        prompt_tokens=100,
        quote_s=0.1,
    )
    rows = [
        good,
        replace(good, cited=False, leak=True),
        replace(good, status="abstained", loop=True, cited=False),
    ]
    lines, _ = modes([(task, row) for row in rows])
    assert lines[2] == "| general | 3 | 2 | 1 | 1 | 1 | 1 | 0 | 2 |"
    asked, absent = (
        replace(task, part="prompt", arm="full"),
        replace(task, part="prompt", arm="full", absent=True),
    )
    lines, figures = prompts(
        [(asked, good), (absent, replace(good, status="abstained", prompt_tokens=None))]
    )
    assert lines[2] == (
        "| samples | full | 1 | 1.00 [1.00, 1.00] | 0.00 [0.00, 0.00] | 1.00 [1.00, 1.00] | 1 |"
        " 1.00 [1.00, 1.00]"
        " | 0 | 0 | 100 | 0.1 | 2 |"
    )
    assert (figures["samples full right own"], figures["samples full refused"]) == (0.0, 1.0)
