from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.core.types import REFUSAL
from app.generation.check.grounding import Grounder, answer_sentence_spans
from app.generation.check.support import SUPPORT_UNREAD
from app.generation.prompt.prompts import PromptLibrary
from tests.fakes.readers import WordReader
from tests.unit.generation.passages import evidence

NORMANS = (
    "The Normans were descended from Norse raiders. Their leader Rollo swore fealty to King"
    " Charles III of West Francia in 911."
    " They were not driven out."
)
WARSAW = (
    "Warsaw is the capital of Poland. It stands on the Vistula, roughly 260 km from the Baltic Sea."
)
FOUND = evidence(NORMANS, WARSAW, start=100)
GROUNDER = Grounder(WordReader())


def test_a_right_citation_is_kept_with_exact_characters() -> None:
    grounded = GROUNDER.ground("Rollo swore fealty to King Charles III [1].", FOUND)
    (sentence,) = grounded.sentences
    (citation,) = sentence.citations
    assert (sentence.verdict, grounded.dropped) == ("supported", ())
    assert NORMANS[citation.start - 100 : citation.end - 100] == citation.quote
    assert (
        citation.quote
        == "Their leader Rollo swore fealty to King Charles III of West Francia in 911."
    )
    assert 0.45 <= citation.support <= 1


def test_a_wrong_citation_is_moved_to_the_passage_that_says_it() -> None:
    grounded = GROUNDER.ground(
        "Rollo swore fealty to King Charles III [2]. Warsaw is the capital of Poland [2].", FOUND
    )
    assert (
        grounded.text
        == "Rollo swore fealty to King Charles III [1]. Warsaw is the capital of Poland [2]."
    )
    assert [sentence.verdict for sentence in grounded.sentences] == ["supported", "supported"]
    assert [sentence.citations[0].cited_by for sentence in grounded.sentences] == [
        "engine",
        "model",
    ]
    assert grounded.dropped == ((0, 2),)


def test_of_two_citations_the_wrong_one_goes() -> None:
    grounded = GROUNDER.ground("Warsaw is the capital of Poland [1][2].", FOUND)
    assert grounded.text == "Warsaw is the capital of Poland [2]."
    assert grounded.sentences[0].verdict == "supported"


def test_a_changed_figure_name_or_denial_is_caught() -> None:
    for changed in (
        "Rollo swore fealty to King Charles III of West Francia in 912 [1].",
        "Rollo swore fealty to King Louis III of West Francia in 911 [1].",
        "Rollo never swore fealty to King Charles III of West Francia in 911 [1].",
    ):
        grounded = GROUNDER.ground(changed, FOUND)
        (sentence,) = grounded.sentences
        assert sentence.verdict == "contradicted", changed
        (denies,) = sentence.citations
        assert denies.quote.startswith("Their leader Rollo swore fealty"), changed
        assert denies.support < 0.1


def test_an_uncited_sentence_gets_the_mark_of_what_supports_it() -> None:
    grounded = GROUNDER.ground("Warsaw is the capital of Poland. Bananas ripen in Ecuador.", FOUND)
    assert grounded.text == "Warsaw is the capital of Poland [2]. Bananas ripen in Ecuador."
    assert [sentence.verdict for sentence in grounded.sentences] == ["supported", "not_found"]
    assert grounded.sentences[0].citations[0].cited_by == "engine"


def test_lines_of_bare_marks_and_marks_on_headings_go() -> None:
    grounded = GROUNDER.ground(
        "# Warsaw is the capital of Poland\nWarsaw is the capital of Poland.\n[1] [2]\n", FOUND
    )
    assert (
        grounded.text == "# Warsaw is the capital of Poland\nWarsaw is the capital of Poland [2]."
    )


def test_the_refusal_stands_alone() -> None:
    grounded = GROUNDER.ground("[9]", FOUND)
    assert grounded.text == REFUSAL
    assert grounded.sentences[0].citations == ()


def test_a_mark_after_the_full_stop_belongs_to_the_sentence_before() -> None:
    text = "Warsaw is the capital of Poland. [2] Rollo swore fealty to King Charles III.[1]"
    assert [text[start:end] for start, end in answer_sentence_spans(text)] == [
        "Warsaw is the capital of Poland. [2]",
        "Rollo swore fealty to King Charles III.[1]",
    ]


def test_messy_output_of_a_small_model_is_read() -> None:
    text = (
        "**Answer:**\n- Warsaw is the capital of Poland [Source 2]\n- Rollo swore fealty to"
        " King Charles III (see [1, 7])\n"
    )
    grounded = GROUNDER.ground(text, FOUND)
    assert {citation.n for sentence in grounded.sentences for citation in sentence.citations} == {
        1,
        2,
    }


@given(
    st.lists(
        st.sampled_from(
            [*NORMANS.split(), *WARSAW.split(), "[1]", "[2].", "[3]", "\n", "- ", "Why?", "**x**"]
        ),
        max_size=40,
    )
)
def test_sentences_lie_where_they_say_and_quotes_are_exact(words: list[str]) -> None:
    grounded = GROUNDER.ground(" ".join(words), FOUND)
    end = 0
    for sentence in grounded.sentences:
        assert sentence.answer_start >= end
        end = sentence.answer_end
        assert grounded.text[sentence.answer_start : end] == sentence.text
        for citation in sentence.citations:
            text = FOUND[citation.n - 1].hit.passage.chunk.text
            assert text[citation.start - 100 : citation.end - 100] == citation.quote
            assert 1 <= len(citation.quote) <= 600
            assert f"[{citation.n}]" in sentence.text


def test_a_sentence_that_repeats_the_prompt_is_never_supported() -> None:
    told = "Copy names, figures, dates and units exactly as the passages give them."
    found = evidence(f"A note on style. {told}", "Warsaw is the capital of Poland.")
    grounder = Grounder(WordReader(), PromptLibrary.load().instructions())
    grounded = grounder.ground(f"{told[:-1]} [1]. Warsaw is the capital of Poland [2].", found)
    assert [sentence.verdict for sentence in grounded.sentences] == ["not_found", "supported"]
    assert grounded.dropped == ((0, 1),)


def test_headings_and_lead_ins_have_no_claim_and_lose_their_marks() -> None:
    grounded = GROUNDER.ground(
        "## Capitals of the East [1]\n\nWarsaw is the capital of Poland [2].", FOUND
    )
    assert [sentence.verdict for sentence in grounded.sentences] == ["no_claim", "supported"]
    assert grounded.text.startswith("## Capitals of the East\n")


def test_without_a_reader_only_copies_are_supported_and_the_rest_is_unsure() -> None:
    said = "Warsaw is the capital of Poland [2]. The capital Warsaw stands in Poland [2]."
    grounded = Grounder().ground(said, FOUND)
    assert grounded.text == said
    assert [one.verdict for one in grounded.sentences] == ["supported", "unsure"]
    assert grounded.sentences[1].citations[0].support == SUPPORT_UNREAD


def test_an_echo_of_the_question_claims_nothing_unless_yes_or_no_is_asked() -> None:
    said = "Warsaw is the capital of Poland [2]."
    echo = GROUNDER.ground(said, FOUND, question="Which capital of Poland is Warsaw?")
    assert [(one.verdict, one.citations) for one in echo.sentences] == [("no_claim", ())]
    for question in (
        "Is Warsaw the capital of Poland?",
        "What is the capital of Poland?",
        "Which is the capital of Poland, Warsaw or Lublin?",
    ):
        found = GROUNDER.ground(said, FOUND, question=question)
        assert [one.verdict for one in found.sentences] == ["supported"], question
