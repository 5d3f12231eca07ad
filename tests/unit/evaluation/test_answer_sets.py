"""Answer sets: reading them, and what each measure says about scripted answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.cancel import CancelToken
from app.core.errors import InvalidInput, TooLarge
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
from app.evaluation import cases
from app.evaluation.answers import Judge, ask_case, faithfulness
from app.evaluation.cases import CaseBody, load
from app.generation.prompt.prompts import PromptLibrary
from tests.stores import passage

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
    assert one == CaseBody("Who?", "papers", "question", ("Rollo",))
    assert two.intent == "chitchat"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Invalid JSON"),
        ("[]", "line 1 of 'set.jsonl': Input should be"),
        (_line(answer="x"), "answer: Unexpected keyword argument"),
        (_line(library="other"), "library: Input should be .* got 'other'"),
        (_line(keywords="x"), "keywords: Input should be a valid array"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InvalidInput, match=message):
        load(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load(tmp_path / "none.jsonl")


def test_questions_are_read_from_a_regular_file_of_a_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(InvalidInput):
            load(path)
    monkeypatch.setattr(cases, "MOST_BYTES", 10)
    path = tmp_path / "huge.jsonl"
    path.write_text('{"question": "Who?"}\n', "utf-8")
    with pytest.raises(TooLarge):
        load(path)


def test_a_complaint_quotes_little_of_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(_line(question="x" * 100_000) + "\n")
    with pytest.raises(InvalidInput, match="question: String should have at most") as raised:
        load(path)
    assert len(raised.value.message) < 400


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
            CaseBody(name, "papers", "question", ("Rollo",), ("leader", "Norse"), ("rollo.txt",))
            for name in names
        ),
        CaseBody("oos", "papers", "question", oos=True),
        CaseBody("hello", "papers", "chitchat"),
    ]
    right, wrong, shy, oos, hello = (
        ask_case(case, lambda question: answers[question.text]).values for case in cases
    )
    assert (right["answer accuracy"], right["recall"], right["citation precision"]) == (1, 1, 1)
    assert (right["keyword coverage"], right["faithfulness"], right["right"]) == (0.5, 1, 1)
    assert (wrong["answer accuracy"], wrong["recall"], wrong["citation precision"]) == (0, 0, 0)
    assert (wrong["faithfulness"], wrong["right"]) == (0, 0)
    assert (shy["wrong refusal"], shy["answer accuracy"], shy["faithfulness"]) == (1, 0, None)
    assert (right["wrong refusal"], wrong["wrong refusal"]) == (0, 0)
    assert (oos["out-of-scope refusal"], oos["answer accuracy"], oos["right"]) == (1, None, 1)
    assert oos["wrong refusal"] is None
    assert all(row["intent accuracy"] == 1 for row in (right, wrong, shy, oos, hello))
    assert all(row["judged faithful"] is None for row in (right, wrong, shy, oos, hello))


def test_questions_are_asked_as_told() -> None:
    asked: list[Question] = []

    def ask(question: Question) -> Answer:
        asked.append(question)
        return _answer("Rollo.")

    ask_case(
        CaseBody("Who?", "public", "question"),
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
    outcome = ask_case(
        CaseBody("Who?", "papers", "question"), lambda _: _answer("Rollo led."), judge=judge
    )
    assert outcome.values["judged faithful"] == share
    sent = "\n".join(message.content for message in generator.prompts[0].messages)
    assert SOURCE in sent
    assert "Rollo led." in sent
