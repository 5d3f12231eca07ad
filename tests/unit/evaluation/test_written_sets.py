"""The sets written by hand keep their form: counts, marks, and answers that stand in the text."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

EVALUATION = Path(__file__).parents[3] / "evaluation"
EVERYDAY = EVALUATION / "everyday"
EXCHANGES = {
    "row", "role", "order", "negation", "quantifier", "unit", "number", "name", "direction",
    "plan_for_fact", "attribution", "not_stated",
}  # fmt: skip
REWORDINGS = {"paraphrase", "passive", "joined", "general"}
LANGUAGES = ["english", "german", "spanish", "french"]


def read(name: str) -> Any:
    return json.loads((EVALUATION / name).read_text(encoding="utf-8"))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_each_everyday_document_has_ten_questions_of_which_two_have_no_answer() -> None:
    questions = read("everyday/questions.json")
    assert len({one["id"] for one in questions}) == len(questions) == 60
    assert len({one["question"] for one in questions}) == 60
    documents = {path.name for path in EVERYDAY.iterdir()} - {"questions.json"}
    assert Counter(one["file"] for one in questions) == dict.fromkeys(documents, 10)
    absent = Counter(one["file"] for one in questions if one["absent"])
    assert absent == dict.fromkeys(documents, 2)
    assert all(one["absent"] != bool(one["answers"]) for one in questions)
    for name in documents:
        assert 250 <= len((EVERYDAY / name).read_text(encoding="utf-8").split()) <= 450, name


def test_one_paragraph_of_the_document_holds_all_of_an_answer() -> None:
    for one in read("everyday/questions.json"):
        text = (EVERYDAY / one["file"]).read_text(encoding="utf-8")
        wanted = [re.compile(part, re.IGNORECASE) for part in one["answers"]]
        holding = [
            paragraph
            for paragraph in re.split(r"\n\n+", text)
            if all(part.search(paragraph) for part in wanted)
        ]
        assert one["absent"] or len(holding) == 1, one["id"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_claims_are_counted_and_no_true_one_is_a_sentence_of_its_text(language: str) -> None:
    entries = read(f"two_rates/{language}.json")
    true, false, texts = (5, 7, 16) if language == "english" else (6, 6, 5)
    assert len({entry["title"] for entry in entries}) == len(entries) == texts
    for entry in entries:
        assert 80 <= len(words(entry["text"])) <= 160, entry["title"]
        claims = entry["claims"]
        assert len({one["claim"] for one in claims}) == len(claims)
        assert Counter(one["true"] for one in claims) == {True: true, False: false}
        for one in claims:
            assert 6 <= len(one["claim"].split()) <= 25, one["claim"]
            assert one["claim"] not in entry["text"]
            assert one["kind"] in (REWORDINGS if one["true"] else EXCHANGES)
        kinds = Counter(one["kind"] for one in claims if not one["true"])
        assert kinds["not_stated"] == 1
        assert set(kinds.values()) == {1}, entry["title"]


def test_every_kind_of_exchange_is_in_the_english_claims() -> None:
    kinds = {one["kind"] for entry in read("two_rates/english.json") for one in entry["claims"]}
    assert kinds == EXCHANGES | REWORDINGS


def test_conversations_change_the_subject_and_point_back_once_or_twice() -> None:
    conversations = read("conversations.json")
    assert [len(one) for one in conversations] == [5] * 20
    assert len({turn["question"] for one in conversations for turn in one}) == 100
    for one in conversations:
        assert one[0]["stands_alone"]
        assert 1 <= sum(not turn["stands_alone"] for turn in one) <= 2
