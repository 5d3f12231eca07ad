"""Every strategy through the real retriever: words and vectors that reach the index, calls that reach the model host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from app.answer.search import LibrarySearcher
from app.core.types import Filters, FloatArray, Library, Scored, Strategy
from app.core.vectors import l2_normalise
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator
from app.models.retries import CallSlots
from app.retrieval.pipeline import Retriever
from app.retrieval.request import RetrievalOptions
from tests.fakes.embedders import HashEmbedder
from tests.fakes.generators import FixedModels
from tests.fakes.ollama_double import OllamaDouble, Script
from tests.stores import OpenWriter
from tests.unit.answer.bench import COPPER, DUARTE, TIDES, Bench, codes, papers

QUESTION = "What is the melting point of copper?"
REPLY = "Copper melts at 1085 degrees Celsius [1]."
SUPPOSED = "Copper melts at about a thousand degrees."
CHAT = "/api/chat"
UNSURE = Script(
    ("Copper", " is", " red.", " Duarte", " was", " born", " in", " Lisbon."), (-0.1,) * 7 + (-3.0,)
)
SURE = Script(("Copper", " is", " red."), (-0.1,) * 3)
AGAIN = Script(("Duarte", " was", " born", " in", " Porto."), (-0.1,) * 5)
EMBEDDER = HashEmbedder()


@dataclass
class Searched:
    """What reached the index of words, and that of vectors."""

    texts: list[str]
    queries: list[FloatArray]


@dataclass(frozen=True)
class Expected:
    """What a scripted host must lead to."""

    strategy: Strategy
    script: tuple[str | Script, ...]
    """Replies before the answer."""
    words: tuple[str, ...]
    calls: int
    """Of the model, the answer included; as tabled in app/answer/strategies.py."""
    version: str = "0.12.11"


CASES = {
    "baseline": Expected("baseline", (), (QUESTION,), 1),
    "hyde": Expected("hyde", (SUPPOSED,), (QUESTION, QUESTION), 2),
    "multi_query": Expected(
        "multi_query",
        ("copper melting heat\ncopper melting\nthe regatta\nmelting point",),
        (QUESTION, "copper melting heat", "copper melting", "melting point"),
        2,
    ),
    "flare, sure": Expected("flare", (SURE,), (QUESTION,), 2),
    "flare, masked": Expected("flare", (UNSURE, AGAIN), (QUESTION, "Duarte was born in"), 3),
    "flare, hedged": Expected(
        "flare",
        ("Copper melts at ??? degrees.",),
        (QUESTION, f"{QUESTION} Copper melts at degrees."),
        2,
        version="0.11.0",
    ),
}


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as running:
        yield running


def _models(double: OllamaDouble) -> FixedModels:
    model = OllamaGenerator(
        OllamaHost(double.url, read_timeout_s=5.0), "llama3.2", slots=CallSlots(4, 1.0, "Ollama")
    )
    return FixedModels(model, model)


def _bench(models: FixedModels) -> tuple[Bench, Searched]:
    writer, searched = OpenWriter(), Searched([], [])
    writer.shelve([COPPER, TIDES, DUARTE], EMBEDDER)
    store = writer.opened
    words, vectors = store.lexical.search, store.vectors.search

    def by_words(library: Library, text: str, k: int, filters: Filters | None) -> list[Scored]:
        searched.texts.append(text)
        return words(library, text, k, filters)

    def by_vector(
        library: Library, query: FloatArray, k: int, filters: Filters | None
    ) -> list[Scored]:
        searched.queries.append(query)
        return vectors(library, query, k, filters)

    store.lexical.search, store.vectors.search = by_words, by_vector  # type: ignore[method-assign, assignment]
    retriever = Retriever(store.catalog, store.vectors, store.lexical, EMBEDDER, RetrievalOptions())

    class OverIndex(Bench):
        def searcher_for(self, library: Library) -> LibrarySearcher:
            return LibrarySearcher(retriever, EMBEDDER)

    return OverIndex(models=models), searched


def _vectors(texts: Sequence[str]) -> list[FloatArray]:
    return [EMBEDDER.embed_query(text) for text in texts]


@pytest.mark.parametrize("expected", CASES.values(), ids=list(CASES))
def test_queries_that_reach_the_index_equal_the_script(
    expected: Expected, double: OllamaDouble
) -> None:
    double.version = expected.version
    double.say(*expected.script, REPLY)
    bench, searched = _bench(_models(double))
    answer = bench.ask(papers(QUESTION, strategy=expected.strategy))
    assert searched.texts == list(expected.words)
    by_meaning = _vectors(expected.words)
    if (
        expected.strategy == "hyde"
    ):  # the supposed passage and the question, in one vector; words are the question's own
        by_meaning[1:] = [
            l2_normalise(
                np.mean(
                    [EMBEDDER.embed_passages([SUPPOSED])[0], EMBEDDER.embed_query(QUESTION)], axis=0
                )
            )
        ]
    assert len(searched.queries) == len(by_meaning)
    for query, wanted in zip(searched.queries, by_meaning, strict=True):
        np.testing.assert_allclose(query, wanted, rtol=1e-5, atol=1e-6)
    assert (answer.strategy, answer.text, codes(answer)) == (expected.strategy, REPLY, [])
    assert answer.trace.llm_calls == len(double.bodies(CHAT)) == expected.calls


@pytest.mark.parametrize("strategy", ["hyde", "multi_query", "flare"])
def test_without_a_host_the_question_alone_reaches_the_index(strategy: Strategy) -> None:
    bench, searched = _bench(FixedModels())
    answer = bench.ask(papers(QUESTION, strategy=strategy))
    assert (searched.texts, len(searched.queries)) == ([QUESTION], 1)
    assert (answer.strategy, codes(answer), answer.trace.llm_calls) == (
        "baseline",
        ["strategy_degraded"],
        0,
    )
