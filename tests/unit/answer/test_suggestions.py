from __future__ import annotations

import pytest

from app.answer.suggestions import Suggester, made_of
from app.core.errors import NotFound
from app.core.types import Library, Passage
from app.generation.quoting import ExtractiveGenerator
from tests.fakes.retrievers import PassageCatalog, WordRetriever, passage
from tests.unit.answer.bench import Bench

PASSAGES = [
    passage(
        "Ines Duarte was a Portuguese physicist. Ines Duarte was born in Porto in 1901.",
        key="ines-duarte",
    ),
    passage(
        "The Lisbon observatory was founded in 1931. It stands on a hill.", key="lisbon-observatory"
    ),
    passage(
        "Spring tides are caused by the alignment of the Moon and the Sun.",
        key="spring-tides",
        library=Library.PUBLIC,
    ),
]


def _suggester(passages: list[Passage]) -> tuple[Suggester, WordRetriever]:
    bench = Bench(passages=passages)
    catalog = PassageCatalog(bench.passages)
    suggester = Suggester(
        catalog=catalog, searcher_for=bench.searcher_for, extractive=ExtractiveGenerator()
    )
    return suggester, bench.retriever


def _texts(suggester: Suggester, n: int = 10, **where: str) -> list[str]:
    return [
        found.question
        for found in suggester.suggest(where.get("scope", "papers"), n, where.get("doc_id"))  # type: ignore[arg-type]
    ]


def test_questions_made_of_sentences_without_a_model() -> None:
    found = _suggester(PASSAGES)[0].suggest("papers", 2)
    assert [(one.question, one.title) for one in found] == [
        ("Who was Ines Duarte?", "Ines Duarte"),
        ("When was the Lisbon observatory founded?", "Lisbon Observatory"),
    ]


def test_both_libraries_take_turns() -> None:
    found = _suggester(PASSAGES)[0].suggest("all", 3)
    assert {one.library for one in found} == {Library.PAPERS, Library.PUBLIC}
    assert "What causes Spring tides?" in [one.question for one in found]


def test_one_document_may_have_several() -> None:
    suggester, _ = _suggester(PASSAGES)
    assert _texts(suggester, doc_id=PASSAGES[0].chunk.doc_id) == [
        "Who was Ines Duarte?",
        "When was Ines Duarte born?",
    ]
    with pytest.raises(NotFound):
        suggester.suggest("all", 3, "nope")


def test_a_question_that_no_document_answers_is_not_shown() -> None:
    passages = [
        *PASSAGES,
        passage("Basalt is a rock. Nothing else is said of anything at all here.", key="basalt"),
    ]
    suggester, retriever = _suggester(passages)
    retriever.passages = PASSAGES
    assert "What is Basalt?" not in _texts(suggester)


def test_results_are_kept_until_documents_change() -> None:
    passages = list(PASSAGES)
    suggester, retriever = _suggester(passages)
    first = _texts(suggester, 2)
    asked = len(retriever.requests)
    assert _texts(suggester, 2) == first
    assert len(retriever.requests) == asked
    passages[0] = passage("Ines Duarte was a Brazilian painter.", key="ines-duarte", revision=2)
    _texts(suggester, 2)
    assert len(retriever.requests) > asked


def test_an_empty_library_suggests_nothing() -> None:
    assert _texts(_suggester([])[0]) == []


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("Entropy is a measure of disorder.", ["What is Entropy?"]),
        ("The Moon is the only natural satellite of Earth.", ["What is the Moon?"]),
        ("Marie Curie (1867-1934) was a physicist and chemist.", ["Who was Marie Curie?"]),
        ("It is a metal. This was a surprise. There are a few.", []),
        ("Penicillin was discovered in 1928 by accident.", ["When was Penicillin discovered?"]),
        ("Penicillin was discovered by accident.", []),
        ("Tides are caused by gravity.", ["What causes Tides?"]),
        ("no capital is a start.", []),
        ("An earthquake is a tremor that geologists measure.", ["What is an earthquake?"]),
        ("After water it is the most popular drink.", []),
        ("The crawler consists of two agents.", ["What does the crawler consist of?"]),
        ("Sieves are used for sorting grain.", ["What are Sieves used for?"]),
        ("PaSa significantly outperforms all baselines.", ["What does PaSa outperform?"]),
        ("In this work we introduce ReAct, a way to act.", ["What is ReAct?"]),
        (
            "Christiaan Huygens built the first pendulum clock in 1656.",
            ["Who built the first pendulum clock?"],
        ),
        ("The Moscow Metro opened in 1935.", ["When did the Moscow Metro open?"]),
        ("Octopuses are molluscs with eight arms.", ["What are Octopuses?"]),
        ("The system consists of two agents.", []),
        ("Origami is an art. It needs paper, for origami folds.", ["What is origami?"]),
        ("Der Mond ist ein Trabant der Erde.", ["Was ist der Mond?"]),
        ("La penicilina es un antibiótico.", ["¿Qué es la penicilina?"]),
        ("Le piano est un instrument.", ["Qu\u2019est-ce que le piano\u00a0?"]),
        ("First is a step of the method. Table is a figure. Results are the best.", []),
    ],
)
def test_forms_of_sentences(text: str, questions: list[str]) -> None:
    assert made_of([passage(text)]) == questions


def test_a_document_is_asked_what_its_subject_does() -> None:
    text = "A bridge carries a road over an obstacle. A deck hangs from cables."
    assert made_of([passage(text, title="Bridge")]) == ["What does a bridge do?"]


def test_a_numbered_heading_is_asked_for_where_the_text_speaks_of_it() -> None:
    text = "4.2 Crawler\nRelevant papers are found by the Crawler of our system."
    assert made_of([passage(text)]) == ["What is the Crawler?"]
    assert made_of([passage("4.2 Results\nNothing is said of them.")]) == []


def test_headings_become_questions() -> None:
    assert made_of(
        [passage("Nothing of a known form here.", title="Copper", section="mining and smelting")]
    ) == ["What does Copper say about mining and smelting?"]
    assert made_of([passage("Nothing of a known form here.", section="references")]) == []
    assert made_of([]) == []
