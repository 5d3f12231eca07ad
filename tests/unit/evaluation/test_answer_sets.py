"""Answer sets: reading them, and what each measure says about scripted answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.cancel import CancelToken
from app.core.errors import InvalidInput
from app.core.types import (
    Answer,
    AnswerStatus,
    Citation,
    Evidence,
    Hit,
    Prompt,
    Question,
    Sentence,
    Token,
)
from app.evaluation.answers import Judge, evaluate, faithfulness
from app.evaluation.cases import AnswerCase, load
from app.generation.prompts import PromptLibrary
from tests.fakes.retrievers import passage

SOURCE = "Rollo was the leader of the Norse who settled in Normandy."


def _answer(text: str, status: AnswerStatus = "answered", *, key: str = "rollo") -> Answer:
    evidence: tuple[Evidence, ...] = (
        (Evidence(1, Hit(passage(SOURCE, key=key), 1.0)),) if status == "answered" else ()
    )
    citation = Citation(1, 0, 5, "Rollo", 0.9)
    sentences: tuple[Sentence, ...] = (
        (Sentence(text, 0, len(text), "supported", (citation,)),) if evidence else ()
    )
    return Answer(
        "a1",
        text,
        status,
        Question("?", "papers"),
        "fake",
        "fake",
        evidence=evidence,
        sentences=sentences,
    )


def _line(**fields: object) -> str:
    return json.dumps({"question": "Who?", "library": "papers"} | fields)


def test_a_set_is_read(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(
        _line(expected_substrings=["Rollo"], oos=False) + "\n\n" + _line(intent="chitchat") + "\n"
    )
    one, two = load(path)
    assert one == AnswerCase("Who?", "papers", "question", ("Rollo",))
    assert two.intent == "chitchat"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        (_line(answer="x"), "none but"),
        (_line(library="other"), "names the library 'other'"),
        (_line(keywords="x"), "must be a list of strings"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InvalidInput, match=message):
        load(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load(tmp_path / "none.jsonl")


def test_the_bundled_question_file_is_a_set() -> None:
    cases = load(Path(__file__).parents[3] / "data" / "sample_docs" / "questions.jsonl")
    assert len(cases) >= 40
    assert any(case.oos for case in cases)


def test_each_measure_over_scripted_answers() -> None:
    answers = {
        "right": _answer("Rollo was the leader [1]."),
        "wrong": _answer("Harald ruled the Danes [1].", key="other"),
        "oos": _answer("I don't know.", "abstained"),
        "shy": _answer("I don't know.", "abstained"),
        "hello": _answer("Hello!", "chitchat"),
    }
    names = ("right", "wrong", "shy")
    cases = [
        *(
            AnswerCase(name, "papers", "question", ("Rollo",), ("leader", "Norse"), ("rollo.txt",))
            for name in names
        ),
        AnswerCase("oos", "papers", "question", oos=True),
        AnswerCase("hello", "papers", "chitchat"),
    ]
    report = evaluate(cases, lambda question: answers[question.text])
    right, wrong, shy, oos, hello = report.outcomes
    assert (right.correct, right.recalled, right.citation_precision, right.keyword_coverage) == (
        True,
        True,
        1.0,
        0.5,
    )
    assert (wrong.correct, wrong.recalled, wrong.citation_precision) == (False, False, 0.0)
    assert right.faithfulness == 1.0
    assert wrong.faithfulness == 0.0
    assert (shy.refused, shy.correct, shy.faithfulness) == (True, False, None)
    assert oos.refused
    assert oos.correct is None
    assert hello.intent_right
    rates = report.rates()
    assert rates["intent_accuracy"] == 1.0
    assert rates["out_of_scope_refusal"] == 1.0
    assert rates["wrong_refusal"] == pytest.approx(1 / 3)
    assert rates["answer_accuracy"] == pytest.approx(1 / 3)
    assert "judged_faithful" not in rates
    assert rates["p95_ms"] >= rates["p50_ms"] >= 0


def test_questions_are_asked_as_told() -> None:
    asked: list[Question] = []

    def ask(question: Question) -> Answer:
        asked.append(question)
        return _answer("Rollo.")

    evaluate(
        [AnswerCase("Who?", "public", "question")],
        ask,
        ask_as=Question("", "papers", mode="compare", strategy="hyde"),
    )
    assert asked == [Question("Who?", "public", mode="compare", strategy="hyde")]


def test_faithfulness_leaves_marks_out_and_short_answers_alone() -> None:
    assert faithfulness(_answer("Rollo was the leader [1] of the Norse [2].")) == 1.0
    assert faithfulness(_answer("Rollo.")) == 1.0
    assert faithfulness(_answer("Rollo was the leader of the Danes.")) == pytest.approx(4 / 5)


class _Scripted:
    name = "scripted"
    context_tokens = None

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.prompts: list[Prompt] = []

    def stream(self, prompt: Prompt, cancel: CancelToken) -> Iterator[Token]:
        self.prompts.append(prompt)
        yield Token(self.reply, finish="stop")


@pytest.mark.parametrize(
    ("reply", "share"),
    [
        ('{"statements": 4, "supported": 3}', 0.75),
        ('Sure: {"statements": 1, "supported": 1}.', 1.0),
        ('{"statements": 0, "supported": 0}', None),
        ("I think so", None),
        ('{"statements": "many"}', None),
    ],
)
def test_a_judge_counts_statements(reply: str, share: float | None) -> None:
    generator = _Scripted(reply)
    judge = Judge(generator, PromptLibrary.load())
    report = evaluate(
        [AnswerCase("Who?", "papers", "question")], lambda _: _answer("Rollo led."), judge=judge
    )
    assert report.outcomes[0].judged == share
    sent = "\n".join(message.content for message in generator.prompts[0].messages)
    assert SOURCE in sent
    assert "Rollo led." in sent
