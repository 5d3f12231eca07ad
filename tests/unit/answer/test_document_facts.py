"""What is asked of a document itself is answered with a sentence of its opening."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.answer.document_facts import FactWish, fact_wish, which_documents
from app.core.types import Library, Passage
from tests.stores import passage
from tests.unit.answer.bench import Bench, papers


def _handbook() -> Passage:
    text = (
        "Handbook of the harbour. Written by Marit Oldham, head of personnel. Version 3.2,"
        " published in 2019. The cranes stand still at night."
    )
    made = passage(text, key="handbook")
    document = replace(
        made.document,
        library=Library.PAPERS,
        title="Harbour handbook",
        filename="handbook.docx",
        authors=("Marit Oldham",),
        year=2019,
    )
    return Passage(replace(made.chunk, library=Library.PAPERS), document)


@pytest.mark.parametrize(
    ("question", "wish"),
    [
        ("Who wrote the handbook?", FactWish("author", "handbook")),
        (
            "Could you tell me who is the author of the tide tables?",
            FactWish("author", "tide tables"),
        ),
        ("When was the policy manual published?", FactWish("date", "policy manual")),
        ("Which release of the policy manual is this?", FactWish("version", "policy manual")),
        ("To whom was the mail addressed?", FactWish("recipient", "mail")),
        ("Who received the letter about eels?", FactWish("recipient", "letter about eels")),
        ("When was the message sent?", FactWish("date", "message")),
        ("When was the mill built?", None),
        ("When was the parcel sent?", None),
        ("Who received the prize?", None),
        ("Who wrote to the owners?", None),
    ],
)
def test_questions_about_a_document_itself_are_told(question: str, wish: FactWish | None) -> None:
    assert fact_wish(question) == wish


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Who wrote the handbook?", "Written by Marit Oldham, head of personnel [1]."),
        ("When was the handbook published?", "Version 3.2, published in 2019 [1]."),
        ("Which version of the handbook is this?", "Version 3.2, published in 2019 [1]."),
    ],
)
def test_they_are_answered_from_its_opening(question: str, said: str) -> None:
    with_handbook = Bench(passages=[_handbook()])
    answer = with_handbook.ask(papers(question))
    assert (answer.status, answer.text) == ("answered", said)
    (cited,) = [one for sentence in answer.sentences for one in sentence.citations]
    assert cited.quote in _handbook().chunk.text


def test_it_means_the_one_document_that_the_last_answer_cites() -> None:
    tide = passage("The tide tables hold for the north quay.", key="tides", title="Tide tables")
    other = replace(tide.document, library=Library.PAPERS, authors=("Nils Aker",), year=None)
    bench = Bench(
        passages=[_handbook(), Passage(replace(tide.chunk, library=Library.PAPERS), other)]
    )
    asked = bench.conversations.create()
    assert bench.ask(papers("Who wrote it?", conversation_id=asked)).status == "abstained"
    bench.ask(papers("When do the cranes stand still?", conversation_id=asked))
    answer = bench.ask(papers("Who wrote it?", conversation_id=asked))
    assert answer.text == "Written by Marit Oldham, head of personnel [1]."
    bench.ask(papers("Which quay do the tide tables hold for?", conversation_id=asked))
    # its text does not say it, the record does
    assert (
        bench.ask(papers("Who wrote it?", conversation_id=asked)).text == "Tide tables: Nils Aker."
    )
    when = bench.ask(papers("When was it published?", conversation_id=asked))
    assert (when.status, when.rewritten_query) == ("abstained", None)
    about = bench.ask(papers("What is this document about?", conversation_id=asked))
    assert about.text == "The tide tables hold for the north quay [1]."


def test_a_document_that_is_not_there_is_searched_for_as_ever() -> None:
    answer = Bench(passages=[_handbook()]).ask(papers("Who wrote the tide tables?"))
    assert answer.status == "abstained"


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("Which documents do you have?", ""),
        ("What files are there?", ""),
        ("How many papers are in my library?", ""),
        ("Please list all documents", ""),
        ("What have I uploaded?", ""),
        ("Which documents are about the Tide Tables?", "the Tide Tables"),
        ("What papers deal with cranes?", "cranes"),
        ("Which documents do I have to bring?", None),
        ("Which documents are needed for a permit?", None),
        ("How many books are about to be sold?", None),
        ("What is in the box?", None),
    ],
)
def test_questions_about_the_documents_are_told(question: str, about: str | None) -> None:
    assert which_documents(question) == about


def test_a_document_of_which_nothing_can_be_quoted_is_named_alone() -> None:
    bare = passage("Tide tables", key="tides", title="Tide tables")
    bare = Passage(
        replace(bare.chunk, library=Library.PAPERS), replace(bare.document, library=Library.PAPERS)
    )
    answer = Bench(passages=[bare]).ask(papers("Which documents do you have?"))
    assert answer.text == "1 document:\n\n- Tide tables (tides.txt)"


def test_documents_are_listed_each_with_its_own_words() -> None:
    tide = passage("The tide tables hold for the north quay.", key="tides", title="Tide tables")
    tide = Passage(
        replace(tide.chunk, library=Library.PAPERS), replace(tide.document, library=Library.PAPERS)
    )
    both = Bench(passages=[_handbook(), tide])
    answer = both.ask(papers("Which documents do you have?"))
    assert answer.status == "answered"
    assert answer.text.startswith("2 documents:\n")
    assert "- Harbour handbook (handbook.docx): Handbook of the harbour [2]." in answer.text
    assert "Tide tables (tides.txt): The tide tables hold for the north quay [1]." in answer.text
    assert len(answer.sentences) == 2
    assert [stage.name for stage in answer.trace.stages][-1] == "catalog"
    one = both.ask(papers("Which documents are about the tide tables?"))
    assert one.text.startswith("1 document that a search for \u201cthe tide tables\u201d finds:")
    assert "handbook" not in one.text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("To whom is the mail addressed?", 'To: "Vik, Ola" <ola@x.example> [1].'),
        ("When was the mail sent?", "Date: Tue, 3 Jun 2025 09:12:00 +0200 [1]."),
    ],
)
def test_the_head_of_a_mail_tells_to_whom_and_when(question: str, said: str) -> None:
    head = 'From: "Moe, Siv" <siv@x.example>\nTo: "Vik, Ola" <ola@x.example>\n'
    text = f"{head}Date: Tue, 3 Jun 2025 09:12:00 +0200\n\nWe pay 31,500 for the crane."
    made = passage(text, key="mail")
    document = replace(made.document, library=Library.PAPERS, title="Price of the crane", year=2025)
    mail = Passage(replace(made.chunk, library=Library.PAPERS), document)
    answer = Bench(passages=[mail]).ask(papers(question))
    assert (answer.status, answer.text) == ("answered", said)
