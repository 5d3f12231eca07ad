from __future__ import annotations

from pathlib import Path

from app.answer.options import AnswerOptions
from app.answer.records import answer_set, to_case
from app.evaluation.cases import load
from tests.unit.answer.bench import COPPER, TIDES, Bench, papers

QUESTION = "What is the melting point of copper?"


def test_feedback_becomes_an_answer_set_that_evaluation_reads(tmp_path: Path) -> None:
    bench = Bench()
    right, refused, wrong, moved = (
        bench.ask(papers(text)).answer_id
        for text in (
            QUESTION,
            "Who won the regatta?",
            "How often do spring tides occur?",
            "What causes tides of the sea?",
        )
    )
    bench.answers.add_feedback(right, {"thumbs": "up"})
    bench.answers.add_feedback(refused, {"thumbs": "up"})
    bench.answers.add_feedback(wrong, {"thumbs": "down"})
    place = {"library": "papers", "doc_id": TIDES.chunk.doc_id, "start": 0, "end": 10}
    bench.answers.add_feedback(moved, {"thumbs": "down", "passage": place})
    file = tmp_path / "set.jsonl"
    file.write_text(answer_set(bench.answers.list(with_feedback=True)), encoding="utf-8")
    cases = {case.question: case for case in load(file)}
    assert set(cases) == {QUESTION, "Who won the regatta?", "What causes tides of the sea?"}
    assert (cases[QUESTION].expected_docs, cases[QUESTION].oos) == ((COPPER.chunk.doc_id,), False)
    assert (cases["Who won the regatta?"].expected_docs, cases["Who won the regatta?"].oos) == (
        (),
        True,
    )
    assert cases["What causes tides of the sea?"].expected_docs == (TIDES.chunk.doc_id,)


def test_the_newest_feedback_on_a_question_counts() -> None:
    bench = Bench()
    first, second = (bench.ask(papers(QUESTION)).answer_id for _ in range(2))
    bench.answers.add_feedback(first, {"thumbs": "up"})
    place = {"library": "papers", "doc_id": "elsewhere", "start": 0, "end": 10}
    bench.answers.add_feedback(second, {"passage": place})
    assert answer_set(bench.answers.list(with_feedback=True)).count('"elsewhere"') == 1


def test_answers_kept_as_hashes_make_no_cases() -> None:
    bench = Bench(options=AnswerOptions(store_answers="hash"))
    answer_id = bench.ask(papers(QUESTION)).answer_id
    bench.answers.add_feedback(answer_id, {"thumbs": "up"})
    assert to_case(bench.answers.get(answer_id)) is None
