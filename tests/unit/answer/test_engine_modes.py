from __future__ import annotations

import pytest

from app.core.types import Answer, Filters, Mode, ModelProfile, QuoteEvent, SourcesEvent
from app.generation.quote.comparisons import NOT_FOUND, POINTS
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.stores import passage
from tests.unit.answer.bench import Bench, codes, final, papers

TEA = passage(
    "Tea is a drink made of cured leaves. A cup of tea holds about 50 milligrams of caffeine."
    " Green tea is steamed at once.",
    key="tea",
)
COFFEE = passage(
    "Coffee is a drink brewed from roasted seeds. A cup of coffee holds about 95 milligrams of"
    " caffeine. Coffee grows on shrubs.",
    key="coffee",
)
STUDY = [
    passage(
        "2 Methods\nThe training set consists of 812 photographs of kelp. First, every photograph"
        " is"
        " cut into tiles of 256 pixels. The network was trained for 30 epochs with a batch size of"
        " 16. Training ran on two A100 graphics cards for nine hours.",
        key="kelp",
        title="Counting Kelp",
        section="methodology",
    ),
    passage(
        "3 Results\nWe report the mean over five runs with different random seeds. The code is"
        " available in a public repository.",
        key="kelp",
        title="Counting Kelp",
        section="results",
        ordinal=1,
        start=1000,
    ),
]


def ask(question: str, mode: Mode, **options: object) -> Answer:
    return Bench(passages=[TEA, COFFEE, *STUDY]).ask(papers(question, mode=mode, **options))


def checked(answer: Answer) -> Answer:
    """Return the answer after following every citation to its characters."""
    evidence = {item.n: item.hit.passage.chunk for item in answer.evidence}
    for sentence in answer.sentences:
        assert answer.text[sentence.answer_start : sentence.answer_end] == sentence.text
        for citation in sentence.citations:
            chunk = evidence[citation.n]
            place = slice(citation.start - chunk.start, citation.end - chunk.start)
            assert chunk.text[place] == citation.quote
    return answer


def points(answer: Answer) -> dict[str, str]:
    """Return what the list says of each point, by its name."""
    rows = [line for line in answer.text.splitlines() if line.startswith("- [")]
    return {row.split("**")[1]: row.split("**: ", 1)[1] for row in rows}


def test_a_comparison_is_a_table_with_a_cited_row_per_thing() -> None:
    answer = checked(ask("Compare tea and coffee in terms of caffeine", "compare"))
    assert (answer.status, answer.generator, codes(answer)) == ("answered", "extractive", [])
    rows = [line for line in answer.text.splitlines() if line.startswith("|")][2:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == ["tea", "coffee"]
    assert "50 milligrams" in rows[0]
    assert "95 milligrams" in rows[1]
    assert rows[0].endswith("| Tea |")
    assert {one.citations[0].quote for one in answer.sentences} == {
        "A cup of tea holds about 50 milligrams of caffeine.",
        "A cup of coffee holds about 95 milligrams of caffeine.",
    }


def test_a_plain_question_for_a_difference_gets_the_table_too() -> None:
    sleep = passage("The difference between tea and coffee matters to your sleep.", key="sleep")
    asked = papers("What is the difference between tea and coffee?")
    answer = checked(Bench(passages=[TEA, COFFEE, sleep]).ask(asked))
    assert answer.text.startswith("The difference between tea and coffee matters")
    assert "| tea | Tea is a drink made of cured leaves" in answer.text
    assert "| coffee | Coffee is a drink brewed from roasted seeds" in answer.text


def test_what_no_passage_says_is_marked_as_not_found() -> None:
    answer = checked(ask("Compare tea and unicorns", "compare"))
    assert "| tea | Tea is a drink" in answer.text
    assert f"| unicorns | {NOT_FOUND} | |" in answer.text
    plain = ask("What is the difference between tea and unicorns?", "general")
    assert "|" not in plain.text


def test_documents_are_compared_where_no_things_are_named() -> None:
    answer = checked(ask("Compare the milligrams of caffeine in a cup", "compare"))
    assert "| Tea | A cup of tea" in answer.text
    assert "| Coffee | A cup of coffee" in answer.text


@pytest.mark.parametrize("mode", ["methodology", "reproduce"])
def test_a_list_goes_through_the_whole_document_and_says_what_is_missing(mode: Mode) -> None:
    answer = checked(ask("How was kelp counted in the photographs of kelp?", mode))
    said = points(answer)
    assert list(said) == [point.name for point in POINTS[mode]]  # type: ignore[index]
    assert "30 epochs with a batch size of 16" in said["Parameters"]
    assert "812 photographs" in said["Data"]
    assert said["Materials"] == NOT_FOUND
    assert "### Counting Kelp" in answer.text


def test_repeating_a_study_takes_code_hardware_and_seeds() -> None:
    said = points(checked(ask("What do I need to repeat Counting Kelp?", "reproduce")))
    assert "public repository" in said["Code"]
    assert "A100 graphics cards" in said["Hardware"]
    assert "five runs with different random seeds" in said["Seeds and repetitions"]


def test_selected_documents_are_gone_through_whatever_is_asked() -> None:
    chosen = Filters(doc_ids=(STUDY[0].document.doc_id, TEA.document.doc_id))
    answer = checked(ask("What would I need?", "reproduce", filters=chosen))
    assert "### Counting Kelp" in answer.text
    assert "### Tea" in answer.text


@pytest.mark.parametrize("mode", ["compare", "methodology", "reproduce"])
def test_where_quotes_cannot_answer_the_mode_says_it_needs_a_model(mode: Mode) -> None:
    answer = ask("What is the airspeed of a swallow?", mode)
    assert (answer.status, answer.nearest) == ("abstained", ())
    assert "mode_needs_model" in codes(answer)


def test_a_model_reads_the_passages_of_every_thing_and_the_table_stands_by() -> None:
    model = ScriptedGenerator("A cup of tea holds about 50 milligrams of caffeine [1].")
    bench = Bench(passages=[TEA, COFFEE, *STUDY], models=FixedModels(model))
    events = bench.events(
        papers("Compare tea and coffee in terms of caffeine", mode="compare", top_k=1)
    )
    read = model.prompts[0].messages[-1].content
    assert "50 milligrams" in read
    assert "95 milligrams" in read
    quote = next(event.quote for event in events if isinstance(event, QuoteEvent))
    assert "| coffee | A cup of coffee" in quote.text
    numbers = {one.n for s in quote.sentences for one in s.citations}
    sent = [event for event in events if isinstance(event, SourcesEvent)][-1]
    assert numbers <= {item.n for item in sent.evidence}
    assert final(events).model_text


def test_a_small_model_is_not_asked_where_the_table_is_complete() -> None:
    model = ScriptedGenerator("Tea | 19 [1]")
    small = ModelProfile("fake:scripted", "fake", parameters=0.5e9)
    bench = Bench(passages=[TEA, COFFEE, *STUDY], models=FixedModels(model, profile=small))
    answer = bench.ask(papers("Compare tea and coffee in terms of caffeine", mode="compare"))
    assert "| coffee | A cup of coffee" in checked(answer).text
    assert "Tea | 19" not in answer.text
    assert model.prompts == []
    (said,) = [one.message for one in answer.notices if one.code == "mode_needs_model"]
    assert "The model was not asked" in said


def test_a_thing_is_found_in_the_sentence_that_names_both() -> None:
    robusta = passage(
        "Coffea canephora, called robusta, is stronger and more bitter than arabica, which has a"
        " milder taste.",
        key="robusta",
        title="Robusta",
    )
    answer = Bench(passages=[robusta, TEA]).ask(
        papers("Compare robusta and arabica coffee.", mode="compare")
    )
    assert "not found" not in checked(answer).text
    assert "| arabica coffee | Coffea canephora" in answer.text


def test_two_things_by_two_points_are_four_rows() -> None:
    said = {
        "BERT": "BERT has 110 million parameters. The training data of BERT are books.",
        "LLaMA": "LLaMA has 7 billion parameters. The training data of LLaMA are web pages.",
    }
    papers_of = [passage(text, key=name, title=name) for name, text in said.items()]
    answer = Bench(passages=papers_of).ask(
        papers("Compare BERT and LLaMA: training data and number of parameters", mode="compare")
    )
    rows = [row.split(" | ") for row in checked(answer).text.splitlines() if row.startswith("| B")]
    rows += [row.split(" | ") for row in answer.text.splitlines() if row.startswith("| L")]
    assert [(row[0], row[2]) for row in rows] == [
        ("| BERT: training data", "BERT |"),
        ("| BERT: number of parameters", "BERT |"),
        ("| LLaMA: training data", "LLaMA |"),
        ("| LLaMA: number of parameters", "LLaMA |"),
    ]
    assert "110 million" in rows[1][1]
    assert "web pages" in rows[2][1]


def test_a_small_model_makes_up_no_table_where_nothing_can_be_quoted() -> None:
    model = ScriptedGenerator("| swallow | 11 m/s [1] |")
    small = ModelProfile("fake:scripted", "fake", parameters=0.5e9)
    bench = Bench(passages=[TEA, COFFEE, *STUDY], models=FixedModels(model, profile=small))
    answer = bench.ask(papers("What is the airspeed of a swallow?", mode="compare"))
    assert answer.status == "abstained"
    assert "mode_needs_model" in codes(answer)
    assert model.prompts == []


def test_a_run_of_titles_is_no_row_of_a_comparison() -> None:
    titles = (
        "Measuring Tea and Other Plants in the Northern Highlands Comparing Several Methods of"
        " Careful Steeping for Every Season Growing Leaves Under Shade Nets While Harvesting Early"
        " Spring Buds With Ancient Wooden Tools Made Among Distant Mountain Villages."
    )
    passages = [passage(titles, key="list"), COFFEE]
    answer = Bench(passages=passages).ask(papers("Compare tea and coffee", mode="compare"))
    assert "| tea | not found | |" in checked(answer).text


def test_of_versions_the_newest_leads_and_the_other_is_named() -> None:
    old = passage("Valid from 2021. Each member pays a fee of 140 euros.", key="old", title="Fees")
    new = passage("Valid from 2024. Each member pays a fee of 165 euros.", key="new", title="Fees")
    answer = Bench(passages=[old, new]).ask(papers("What fee does each member pay?"))
    said = [sentence.text for sentence in checked(answer).sentences]
    assert [text.partition(" [")[0] for text in said] == [
        "Each member pays a fee of 165 euros", "Each member pays a fee of 140 euros",
    ]  # fmt: skip
    assert "\n\n2021: Each member" in answer.text
