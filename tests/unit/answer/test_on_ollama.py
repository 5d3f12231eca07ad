"""Strategies, rewriting and cancelling on the Ollama client, against the protocol double."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.core.cancel import CancelToken
from app.core.types import TokenEvent
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator
from app.models.retries import CallSlots
from tests.fakes.generators import FixedModels
from tests.fakes.ollama_double import Fault, OllamaDouble, Script
from tests.stores import kept_answers
from tests.unit.answer.bench import Bench, codes, papers

QUESTION = "What is the melting point of copper?"
REPLY = "Copper melts at 1085 degrees Celsius [1]."
CHAT = "/api/chat"


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as running:
        yield running


@pytest.fixture
def bench(double: OllamaDouble) -> Bench:
    model = OllamaGenerator(
        OllamaHost(double.url, read_timeout_s=5.0), "llama3.2", slots=CallSlots(4, 1.0, "Ollama")
    )
    return Bench(models=FixedModels(model, model))


def test_hyde_and_multi_query(double: OllamaDouble, bench: Bench) -> None:
    double.say("Copper melts at a thousand degrees.", REPLY)
    hyde = bench.ask(papers(QUESTION, strategy="hyde"))
    assert (hyde.strategy, hyde.text, hyde.generator) == ("hyde", REPLY, "ollama:llama3.2")
    assert len(double.bodies(CHAT)) == hyde.trace.llm_calls == 2
    double.say("copper melting point\nmelting copper", REPLY)
    multi = bench.ask(papers(QUESTION, strategy="multi_query"))
    assert bench.retriever.queries == [
        QUESTION,
        QUESTION,
        QUESTION,
        "copper melting point",
        "melting copper",
    ]
    assert len(double.bodies(CHAT)) == hyde.trace.llm_calls + multi.trace.llm_calls == 4


def test_flare_by_log_probabilities(double: OllamaDouble, bench: Bench) -> None:
    draft = Script(
        ("Copper", " is", " red.", " Duarte", " was", " born", " in", " Lisbon."),
        (-0.1,) * 7 + (-3.0,),
    )
    double.say(draft, Script.of("Duarte was born in Porto."), REPLY)
    answer = bench.ask(papers(QUESTION, strategy="flare"))
    assert bench.retriever.queries == [QUESTION, "Duarte was born in"]
    assert (answer.strategy, answer.trace.llm_calls) == ("flare", 3)
    bodies = double.bodies(CHAT)
    assert [bool(body.get("logprobs")) for body in bodies] == [True, True, False]
    messages = bodies[1]["messages"]
    assert isinstance(messages, list)
    assert messages[-1] == {"role": "assistant", "content": "Copper is red."}
    assert double.reloads == 0  # the same window on every call


def test_flare_on_a_server_without_log_probabilities(double: OllamaDouble, bench: Bench) -> None:
    double.version = "0.11.0"
    double.say("Copper melts at ??? degrees.", REPLY)
    answer = bench.ask(papers(QUESTION, strategy="flare"))
    assert bench.retriever.queries == [QUESTION, f"{QUESTION} Copper melts at degrees."]
    assert (answer.strategy, answer.trace.llm_calls) == ("flare", 2)


def test_a_strategy_whose_model_breaks_degrades_and_the_answer_still_comes(
    double: OllamaDouble, bench: Bench
) -> None:
    double.fail(CHAT, Fault("error_line", after=2))
    double.say("never finished by the host", REPLY)
    answer = bench.ask(papers(QUESTION, strategy="hyde"))
    assert (answer.status, codes(answer)) == ("answered", ["strategy_degraded"])


def test_the_plan_is_held_against_what_the_host_read(double: OllamaDouble, bench: Bench) -> None:
    double.say(REPLY)
    context = bench.ask(papers(QUESTION)).trace.context
    assert context is not None
    assert context.seen is not None
    assert context.seen <= context.planned <= context.budget


def test_leaving_stops_the_model(double: OllamaDouble, bench: Bench) -> None:
    double.tokens_per_s = 200
    double.say(Script.of("word " * 500))
    stream = bench.service.stream(papers(QUESTION), CancelToken())
    for event in stream:
        if isinstance(event, TokenEvent):
            break
    stream.close()
    assert double.wait_for_abort()
    assert kept_answers(bench.answers) == []
