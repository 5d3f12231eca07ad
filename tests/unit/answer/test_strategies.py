from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answer.options import AnswerOptions
from app.answer.search import fused, hypothetical_vector, joined
from app.answer.strategies import gate, read_draft
from app.core.errors import ProviderUnreachable
from app.core.types import REFUSAL, Hit, Library, Notice, Strategy, Token
from app.core.vectors import l2_normalise
from app.retrieval.request import Retrieval
from tests.fakes.embedders import HashEmbedder
from tests.fakes.generators import FixedModels, ScriptedGenerator, with_probabilities
from tests.stores import passage
from tests.unit.answer.bench import Bench, codes, papers

QUESTION = "What is the melting point of copper?"
REPLY = "Copper melts at 1085 degrees Celsius [1]."
SURE, UNSURE = math.log(0.95), math.log(0.1)


def _bench(model: ScriptedGenerator, helper: ScriptedGenerator | None = None) -> Bench:
    return Bench(models=FixedModels(model, helper))


# --- calls and queries, as tabled in app/answer/strategies.py ---


def test_baseline_searches_the_question_once() -> None:
    bench = _bench(ScriptedGenerator(REPLY), ScriptedGenerator())
    answer = bench.ask(papers(QUESTION))
    assert bench.retriever.queries == [QUESTION]
    assert (answer.strategy, answer.trace.llm_calls) == ("baseline", 1)


def test_hyde_searches_with_the_vector_of_a_written_passage() -> None:
    helper = ScriptedGenerator("Copper melts at about one thousand degrees.")
    bench = _bench(ScriptedGenerator(REPLY), helper)
    answer = bench.ask(papers(QUESTION, strategy="hyde"))
    assert (answer.strategy, answer.trace.llm_calls, codes(answer)) == ("hyde", 2, [])
    assert bench.retriever.queries == [
        QUESTION,
        QUESTION,
    ]  # the question's own search, then with the passage's vector
    embedder = HashEmbedder(256)
    rows = [
        embedder.embed_passages(["Copper melts at about one thousand degrees."])[0],
        embedder.embed_query(QUESTION),
    ]
    vector = bench.retriever.requests[1].vector
    assert vector is not None
    np.testing.assert_allclose(vector, l2_normalise(np.mean(rows, axis=0)), rtol=1e-6)
    assert (
        "a research paper" in helper.prompts[0].messages[-1].content
        or "a research paper" in helper.prompts[0].messages[0].content
    )


def test_multi_query_searches_each_sub_query() -> None:
    helper = ScriptedGenerator(
        "1. copper melting point\n2. Who won the regatta?\n3. melting copper wire\n4. point of"
        " melting\n5. copper"
    )
    bench = _bench(ScriptedGenerator(REPLY), helper)
    answer = bench.ask(papers(QUESTION, strategy="multi_query"))
    assert bench.retriever.queries == [
        QUESTION,
        "copper melting point",
        "melting copper wire",
        "point of melting",
    ]
    assert (answer.strategy, answer.trace.llm_calls) == ("multi_query", 2)


def test_flare_with_probabilities_masks_the_unsure_sentence_and_generates_it_again() -> None:
    sure = [
        (text, SURE)
        for text in [
            "Copper",
            " is",
            " a",
            " metal",
            ".",
            " Its",
            " founder",
            " Duarte",
            " was",
            " born",
            " in",
        ]
    ]
    draft = with_probabilities(*sure, (" Li", UNSURE), ("sbon", SURE), (".", SURE))
    again = with_probabilities(
        (" Duarte", UNSURE),
        (" was", SURE),
        (" born", SURE),
        (" in", SURE),
        (" Porto", UNSURE),
        (".", SURE),
    )
    model = ScriptedGenerator(draft, again, REPLY)
    bench = _bench(model)
    answer = bench.ask(papers(QUESTION, strategy="flare"))
    assert bench.retriever.queries == [QUESTION, "Its founder Duarte was born in"]
    assert (answer.strategy, answer.trace.llm_calls) == ("flare", 3)
    assert [prompt.logprobs for prompt in model.prompts] == [True, True, False]
    assert model.prompts[1].messages[-1].role == "assistant"
    assert model.prompts[1].messages[-1].content == "Copper is a metal."
    assert {evidence.hit.passage.document.title for evidence in answer.evidence} == {
        "Copper",
        "Duarte",
    }


def test_flare_stops_after_its_rounds() -> None:
    drafts = [
        with_probabilities(
            (f"Metal{n}", SURE),
            (" is", SURE),
            (" red.", UNSURE),
            (f" Tin{n}", SURE),
            (" bends", SURE),
            (" far.", UNSURE),
        )
        for n in range(4)
    ]
    bench = _bench(ScriptedGenerator(*drafts, REPLY))
    answer = bench.ask(papers(QUESTION, strategy="flare"))
    assert len(bench.retriever.queries) == 4
    assert answer.trace.llm_calls == 5  # draft, three regenerations, answer


def test_flare_that_is_sure_searches_once() -> None:
    bench = _bench(
        ScriptedGenerator(with_probabilities(("Copper", SURE), (" melts.", SURE)), REPLY)
    )
    answer = bench.ask(papers(QUESTION, strategy="flare"))
    assert bench.retriever.queries == [QUESTION]
    assert (answer.strategy, answer.trace.llm_calls) == ("flare", 2)


def test_flare_without_probabilities_is_gated_by_hedges() -> None:
    bench = _bench(ScriptedGenerator("Copper melts at ??? degrees. Copper is red.", REPLY))
    answer = bench.ask(papers(QUESTION, strategy="flare"))
    assert bench.retriever.queries == [QUESTION, f"{QUESTION} Copper melts at degrees."]
    assert (answer.strategy, answer.trace.llm_calls) == ("flare", 2)
    sure = _bench(ScriptedGenerator("Copper melts at 1085 degrees.", REPLY))
    sure.ask(papers(QUESTION, strategy="flare"))
    assert sure.retriever.queries == [QUESTION]


def test_the_draft_reads_a_bounded_context() -> None:
    model = ScriptedGenerator("Copper melts.", REPLY)
    bench = Bench(
        passages=[
            passage(f"Copper melting point {i}. " + "filler words here. " * 30, key=f"c{i}")
            for i in range(5)
        ],
        models=FixedModels(model),
        options=AnswerOptions(flare_draft_max_context_chars=900),
    )
    bench.ask(papers(QUESTION, strategy="flare"))
    draft, answer = (len(prompt.messages[-1].content) for prompt in model.prompts)
    assert draft < 1800
    assert answer > 3000


@pytest.mark.parametrize(
    ("strategy", "calls"), [("baseline", 0), ("hyde", 1), ("multi_query", 1), ("flare", 1)]
)
def test_retrieve_only_costs_what_the_strategy_costs(strategy: Strategy, calls: int) -> None:
    bench = _bench(
        ScriptedGenerator("Copper melts at 1085 degrees."),
        ScriptedGenerator("copper melting point"),
    )
    answer = bench.ask(papers(QUESTION, strategy=strategy, retrieve_only=True))
    assert (answer.status, answer.strategy, answer.trace.llm_calls) == (
        "retrieved",
        strategy,
        calls,
    )


# --- degrading ---


@pytest.mark.parametrize("strategy", ["hyde", "multi_query", "flare"])
def test_without_a_model_every_strategy_degrades_to_the_baseline(strategy: Strategy) -> None:
    bench = Bench()
    answer = bench.ask(papers(QUESTION, strategy=strategy))
    assert (answer.status, answer.strategy, answer.trace.llm_calls) == ("answered", "baseline", 0)
    assert codes(answer) == ["strategy_degraded"]
    assert bench.retriever.queries == [QUESTION]


@pytest.mark.parametrize("strategy", ["hyde", "multi_query", "flare"])
def test_a_host_that_fails_degrades_to_the_baseline(strategy: Strategy) -> None:
    gone = ProviderUnreachable("no connection to the model host")
    bench = _bench(
        ScriptedGenerator(*([gone, REPLY] if strategy == "flare" else [REPLY])),
        ScriptedGenerator(gone),
    )
    answer = bench.ask(papers(QUESTION, strategy=strategy))
    assert (answer.text, answer.strategy, codes(answer)) == (
        REPLY,
        "baseline",
        ["strategy_degraded"],
    )
    assert "no connection" in answer.notices[0].message


@pytest.mark.parametrize(
    ("strategy", "reply"),
    [
        ("hyde", " \n"),
        ("hyde", REFUSAL),
        ("hyde", "I'm sorry, I cannot help with that."),
        ("hyde", "The passages do not mention the melting point of copper in the given context."),
        ("multi_query", "Here are some queries:\n-\n"),
    ],
)
def test_a_useless_reply_degrades_to_the_baseline(strategy: Strategy, reply: str) -> None:
    bench = _bench(ScriptedGenerator(REPLY), ScriptedGenerator(reply))
    answer = bench.ask(papers(QUESTION, strategy=strategy))
    assert (answer.strategy, codes(answer)) == ("baseline", ["strategy_degraded"])
    assert bench.retriever.queries == [QUESTION]


def test_hyde_without_an_embedder_degrades_without_a_call() -> None:
    bench = Bench(models=FixedModels(ScriptedGenerator(REPLY), ScriptedGenerator()), embedder=None)
    answer = bench.ask(papers(QUESTION, strategy="hyde"))
    assert codes(answer) == ["embedder_unavailable", "strategy_degraded"]


def test_datasets_mode_is_always_baseline_and_asks_no_model() -> None:
    bench = Bench(
        passages=[passage("We train on the CIFAR-10 dataset of images.", key="p")],
        models=FixedModels(ScriptedGenerator(), ScriptedGenerator()),
    )
    answer = bench.ask(papers("Which dataset of images?", mode="datasets", strategy="multi_query"))
    assert (answer.strategy, answer.trace.llm_calls, answer.generator, answer.notices) == (
        "baseline",
        0,
        "scanner",
        (),
    )
    assert "**CIFAR-10**" in answer.text
    assert bench.models.asked == []


# --- parts ---


def test_a_long_hypothetical_passage_is_cut_at_a_sentence() -> None:
    embedder = HashEmbedder(max_tokens=12)
    assert (
        hypothetical_vector(
            embedder, "q", "Copper is a metal. It melts at a thousand degrees and more besides."
        )
        is not None
    )
    assert embedder.embedded == ["Copper is a metal."]
    assert hypothetical_vector(embedder, "q", "word " * 40) is not None
    assert len(embedder.embedded[-1].split()) <= 10


def test_reciprocal_rank_fusion_by_hand() -> None:
    a, b, c = (Hit(passage(key, key=key), 1.0) for key in ("alpha", "beta", "gamma"))
    result = fused([Retrieval((a, b), confidence=0.4), Retrieval((b, c), confidence=0.7)], 2)
    # beta: 1/62 + 1/61; alpha: 1/61; gamma: 1/62
    assert [hit.passage.document.title for hit in result.hits] == ["Beta", "Alpha"]
    assert result.hits[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert result.confidence == 0.7


def test_the_own_search_keeps_its_first_half_of_the_places() -> None:
    pool = [Hit(passage(f"text {i}", key=f"d{i}", chunk_id=i + 1), 1.0) for i in range(6)]
    own = Retrieval((pool[0], pool[1], pool[2], pool[3]))
    poor = Retrieval((pool[5], pool[4], pool[3]))
    plain = fused([own, poor, poor], 4, [2, 1, 1])
    assert (
        plain.hits[0].passage == pool[3].passage
    )  # three searches found it; the answer fell to the third place
    result = joined(own, [poor, poor], 4)
    assert [hit.passage for hit in result.hits] == [pool[i].passage for i in (0, 1, 3, 5)]
    assert [hit.score for hit in result.hits] == [hit.score for hit in plain.hits]
    weak = replace(own, fallback=True)
    assert joined(weak, [poor], 4) == fused([weak, poor], 4)


def test_fused_searches_ignore_fallback_when_one_found_something() -> None:
    real, weak = Hit(passage("x", key="x"), 1.0), Hit(passage("y", key="y"), 0.1, fallback=True)
    fell_back = Retrieval(
        (weak,), (Notice("fallback_used", "nothing"), Notice("vectors_missing", "3")), fallback=True
    )
    result = fused([Retrieval((real,)), fell_back], 5)
    assert (result.hits[0].passage, len(result.hits), result.fallback) == (real.passage, 1, False)
    assert [notice.code for notice in result.notices] == ["vectors_missing"]
    other = replace(weak, passage=passage("z", key="z"))
    only_weak = fused([fell_back, replace(fell_back, hits=(other,))], 5)
    assert only_weak.fallback
    assert len(only_weak.hits) == 1, "FALLBACK_TOP_N holds for all searches together"
    assert [notice.code for notice in only_weak.notices] == ["fallback_used", "vectors_missing"]


@given(
    st.lists(st.lists(st.integers(0, 8), max_size=6, unique=True), max_size=4), st.integers(1, 6)
)
def test_fusion_keeps_each_passage_once_best_first(rankings: list[list[int]], places: int) -> None:
    pool = [
        Hit(passage(f"text {i}", key=f"d{i}", chunk_id=i + 1, library=Library.PUBLIC), 1.0)
        for i in range(9)
    ]
    result = fused([Retrieval(tuple(pool[i] for i in ranking)) for ranking in rankings], places)
    ids = [hit.passage.chunk.chunk_id for hit in result.hits]
    assert (
        len(ids) == len(set(ids)) == min(places, len({i for ranking in rankings for i in ranking}))
    )
    assert [hit.score for hit in result.hits] == sorted(
        (hit.score for hit in result.hits), reverse=True
    )


@pytest.mark.parametrize(
    ("draft", "query"),
    [
        ("Copper melts at 1085 degrees.", ""),
        ("Copper melts at ???.", "q Copper melts at ."),
        ("It is unclear who found it. Copper is red.", "q It who found it."),
        ("I do not have enough information about alloys.", "q I about alloys."),
    ],
)
def test_the_hedge_gate(draft: str, query: str) -> None:
    assert gate("q", draft) == query


def test_marks_and_punctuation_are_never_unsure() -> None:
    draft = read_draft(
        [
            Token("Copper", SURE),
            Token(" [", UNSURE),
            Token("2", UNSURE),
            Token("]", UNSURE),
            Token(".", UNSURE),
        ]
    )
    assert draft.has_probabilities
    assert draft.first_unsure(0.4) is None


def test_a_repeated_beginning_is_taken_off_the_draft() -> None:
    draft = read_draft(
        [Token("Copper is red. ", SURE), Token("Tides", UNSURE), Token(" rise.", SURE)],
        "Copper is red.",
    )
    unsure = draft.first_unsure(0.4)
    assert draft.text == "Tides rise."
    assert unsure is not None
    assert (unsure.start, unsure.without_words_under(0.4)) == (0, "rise.")


def test_gaps_are_unsure_whatever_their_probability() -> None:
    assert read_draft([Token("It has ??? legs.", SURE)]).first_unsure(0.4) is not None
    assert read_draft([Token("It has ??? legs.")]).has_probabilities is False


@given(st.lists(st.tuples(st.text(max_size=6), st.floats(-5, 0)), max_size=20))
def test_words_of_a_draft_lie_where_they_say(pairs: list[tuple[str, float]]) -> None:
    draft = read_draft([Token(text, logprob) for text, logprob in pairs])
    for word in draft.words:
        assert draft.text[word.start : word.end] == word.text
        assert 0 < word.probability <= 1
