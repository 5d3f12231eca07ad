from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from app.answer.suggestions import Suggester, questions_about, questions_in
from app.core.cancel import CancelToken
from app.core.types import Heading, Question, Scope
from tests.api.conftest import Site, site
from tests.stores import passage

FAQ = """# Frequently asked questions

## Can I bring a dog?

Dogs are welcome on a lead in all rooms but the kitchen.

## Q2: How much does a night cost?

A night costs 48 euros, breakfast included.

We asked ourselves what to do. Was it wrong? Then the season began.
"""
COPPER = """# Copper

Copper is a soft red metal.

## Mining and smelting

The mining of copper began in Chile, where mining and smelting of the ore lie near the coast.

## References

None.
"""
NOTE = "Note\n\nThe pump in the cellar was repaired on Monday by a man from the town."


@pytest.fixture
def inn(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as opened:
        files = {"faq.md": FAQ, "copper.md": COPPER, "note.txt": NOTE}
        status, _ = opened.upload(*((name, text.encode()) for name, text in files.items()))
        assert status == 201
        yield opened


def suggested(of: Site, n: int = 20, **where: str) -> list[str]:
    reply = of.client.get("/api/v1/suggestions", params={"library": "papers", "n": n, **where})
    assert reply.status_code == 200
    return [one["question"] for one in reply.json()["suggestions"]]


def test_what_stands_in_documents_and_under_headings_is_asked_then_summaries(inn: Site) -> None:
    found = suggested(inn)
    assert set(found[:2]) == {"Can I bring a dog?", "What is copper?"}
    assert found[2] == "Summarise Note"
    assert set(found[3:5]) == {
        "How much does a night cost?",
        "What does Copper say about mining and smelting?",
    }
    assert set(found[5:]) == {"Summarise Copper", "Summarise Frequently asked questions"}


def test_each_is_answered(inn: Site) -> None:
    for question in suggested(inn):
        asked = {"question": question, "library": "papers"}
        assert inn.client.post("/api/v1/query", json=asked).json()["status"] == "answered"


def test_questions_of_one_document(inn: Site) -> None:
    papers = inn.client.get("/api/v1/papers", params={"library": "papers"}).json()["documents"]
    note = next(one["doc_id"] for one in papers if one["filename"] == "note.txt")
    assert suggested(inn, doc_id=note) == ["Summarise Note"]


def test_documents_of_one_title_are_asked_for_by_their_files(inn: Site) -> None:
    inn.upload(("second.txt", NOTE.replace("pump", "stove").encode()))
    found = suggested(inn)
    assert {"Summarise note.txt", "Summarise second.txt", "Summarise Copper"} <= set(found)
    assert len(set(found)) == len(found)


def test_without_documents_there_is_nothing_to_ask(tmp_path: Path) -> None:
    with site(tmp_path) as empty:
        assert suggested(empty) == []
        unknown = {"library": "papers", "doc_id": "nope"}
        assert empty.client.get("/api/v1/suggestions", params=unknown).status_code == 404


def test_what_changed_is_asked_again(inn: Site) -> None:
    assert "Can I bring a dog?" in suggested(inn)
    inn.upload(("faq.md", FAQ.replace("a dog", "a cat").replace("Dogs", "Cats").encode()))
    found = suggested(inn)
    assert "Can I bring a cat?" in found
    assert "Can I bring a dog?" not in found


def test_equal_requests_are_joined_and_the_list_is_kept(
    inn: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    suggester, tried, free = inn.services.suggester, list[str](), threading.Event()
    answering = Suggester._answering_document

    def held(of: Suggester, scope: Scope, question: str) -> str:
        assert free.wait(30)
        tried.append(question)
        return answering(of, scope, question)

    monkeypatch.setattr(Suggester, "_answering_document", held)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(suggester.suggest, "papers", 4) for _ in range(4)]
        free.set()
        lists = {one.result() for one in asked}
    assert len(lists) == 1
    assert len(tried) == len(set(tried)) > 0
    assert suggester.suggest("papers", 4) in lists
    assert len(tried) == len(set(tried))


def test_nothing_is_asked_while_a_person_waits(inn: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    suggester, rag = inn.services.suggester, inn.services.rag
    monkeypatch.setattr("app.answer.suggestions._PATIENCE_S", 0.01)
    searched = list[str]()
    answering = Suggester._answering_document

    def counted(of: Suggester, scope: Scope, question: str) -> str:
        searched.append(question)
        return answering(of, scope, question)

    monkeypatch.setattr(Suggester, "_answering_document", counted)
    events = rag.stream(Question("Can I bring a dog?", "papers"), CancelToken())
    next(events)
    waiting = suggester.suggest("papers", 20)
    assert {one.question.split()[0] for one in waiting} == {"Summarise"}
    assert searched == []
    events.close()
    assert "Can I bring a dog?" in {one.question for one in suggester.suggest("papers", 20)}
    assert searched


@pytest.mark.parametrize(
    ("language", "title", "text", "headings", "asked"),
    [
        (
            "en",
            "Locks",
            "Locks\n\nThe sluice\nThe sluice is a gate. We open the sluice.\n\nHow to open it\nTurn it.",
            ["Locks", "The sluice", "How to open it"],
            ["What is the sluice?", "How do I open it?"],
        ),
        ("en", "Tides", "Tides are the rise and fall of the sea.", [], ["What are Tides?"]),
        ("en", "Tides", "Tides are caused by the Moon.", [], []),
        (
            "de",
            "Schleusen",
            "Wehr\nDas Wehr ist ein Damm.",
            ["Wehr"],
            ["Was ist das Wehr?"],
        ),
        ("es", "Filtros", "Cómo cambiar el filtro\nGire.", ["Cómo cambiar el filtro"],
         ["¿Cómo cambiar el filtro?"]),
        ("en", "PaSa", "Method\nIt searches.\n\nMain results\nGood.", ["3 Method", "Main results"], []),
        ("en", "Pumps", "Safety\nTake care.", ["Safety"], []),
    ],
)  # fmt: skip
def test_a_person_asks_what_a_thing_is_and_how_something_is_done(
    language: str, title: str, text: str, headings: list[str], asked: list[str]
) -> None:
    document = replace(passage("", title=title).document, language=language)
    places = [text.find(one.removeprefix("3 ")) + len(one.removeprefix("3 ")) for one in headings]
    named = [Heading(end - 1, end, 2, one) for end, one in zip(places, headings, strict=True)]
    assert questions_about(document, named, text, shared={"safety"}) == asked


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("1.2 Who pays for repairs?", "Who pays for repairs?"),
        ("- Frage 3: Wer zahlt die Reparatur?", "Wer zahlt die Reparatur?"),
        ("¿Quién paga las reparaciones?", "¿Quién paga las reparaciones?"),
        ("He came late. Who knew of it?", None),
        ("Really? Why?", None),
        ("Why?", None),
    ],
)
def test_a_question_is_a_line_of_its_own(line: str, question: str | None) -> None:
    assert questions_in(f"Before it.\n{line}\nAfter it.") == ([question] if question else [])


def test_rules_and_blank_lines_take_no_time() -> None:
    """Expressions that go over line ends take minutes for this one."""
    assert questions_in("- - -\n" * 3000 + "\n" * 20_000 + "=" * 20_000) == []


def test_headings_that_name_nothing_are_not_asked_for() -> None:
    titles = ["Copper", "2 Uses of Copper", "2.1 References", "Who uses it?", " ".join("abcdefghi")]
    headings = [Heading(0, 1, 2, title) for title in titles]
    copper = passage("", title="Copper").document
    assert questions_about(copper, headings, "Many are the uses of copper.") == [
        "What does Copper say about uses of copper?"
    ]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Copper", "Copper"),
        (f"BERT: {'deep ' * 12}networks", "BERT"),
        ("This section holds " + "very " * 12 + "many words", "copper.txt"),
    ],
)
def test_a_question_holds_a_short_name_of_its_document(title: str, name: str) -> None:
    document = replace(passage("", title=title).document, filename="copper.txt")
    assert questions_about(document, [Heading(0, 1, 2, "Uses")], "") == [
        f"What does {name} say about Uses?"
    ]
