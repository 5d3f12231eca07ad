"""The six-turn conversation: grounded, pronoun, topic switch, off topic, thanks, what have we discussed."""

from __future__ import annotations

from app.core.types import REFUSAL, Answer, Question
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.unit.answer.bench import PROMPTS, Bench


def test_six_turns_on_the_server() -> None:
    model = ScriptedGenerator(
        "Copper conducts electricity better than any metal except silver [1].",
        "Its melting point is 1085 degrees Celsius [1].",
        "Tides are caused by the gravity of the Moon [1].",
        REFUSAL,
    )
    helper = ScriptedGenerator(
        "What is the melting point of copper?"  # pronoun resolved
    )
    bench = Bench(models=FixedModels(model, helper))
    conversation = bench.memory.open(None, "papers", "How well does copper conduct electricity?")

    def ask(text: str) -> Answer:
        return bench.ask(Question(text, "papers", conversation_id=conversation))

    grounded = ask("Hi! How well does copper conduct electricity?")
    assert (grounded.status, grounded.rewritten_query) == ("answered", None)
    assert grounded.sentences[0].verdict == "supported"

    pronoun = ask("And what is its melting point?")
    assert (pronoun.status, pronoun.rewritten_query) == (
        "answered",
        "What is the melting point of copper?",
    )
    assert pronoun.trace.llm_calls == 2
    assert "And what is its melting point?" in model.prompts[1].messages[-1].content
    assert (
        "melting point of copper"
        not in model.prompts[1].messages[-1].content.rsplit("</passage", 1)[-1]
    )
    history = [
        message.content for message in model.prompts[1].messages[1 + len(PROMPTS.turns) : -1]
    ]
    assert history == [
        "Hi! How well does copper conduct electricity?",
        "Copper conducts electricity better than any metal except silver.",
    ]

    switched = ask("What causes the tides of the sea?")
    assert (switched.status, switched.rewritten_query) == ("answered", None)
    assert {item.hit.passage.document.title for item in switched.evidence} == {"Tides"}

    off_topic = ask("Who won the cycling race?")
    assert (off_topic.status, off_topic.text, off_topic.evidence) == ("abstained", REFUSAL, ())

    thanks = ask("Thanks a lot!")
    assert (thanks.status, thanks.trace.llm_calls) == ("chitchat", 0)
    assert thanks.text.startswith("You're welcome")

    recalled = ask("What have we discussed so far?")
    assert (recalled.status, recalled.trace.llm_calls) == ("conversation", 0)
    assert recalled.text.splitlines()[2:] == [
        "- How well does copper conduct electricity?",
        "- And what is its melting point?",
        "- What causes the tides of the sea?",
        "- Who won the cycling race?",
    ]
    assert bench.retriever.queries == [
        "How well does copper conduct electricity?",
        "And what is its melting point?",  # quoted at once, before the helper rewrites it
        "What is the melting point of copper?",
        "What causes the tides of the sea?",
        "Who won the cycling race?",
        "Who won the cycling race?",  # refused: the nearest places are looked for
    ]
    assert (model.left, helper.left) == (0, 0)
    turns = bench.conversations.get(conversation)["turns"]
    assert isinstance(turns, list)
    assert len(turns) == 12
    assert {turn["answer_id"] for turn in turns} == {
        a.answer_id for a in (grounded, pronoun, switched, off_topic, thanks, recalled)
    }


def test_a_pleasantry_reaches_neither_index_nor_model() -> None:
    bench = Bench(models=FixedModels(ScriptedGenerator(), ScriptedGenerator()))
    answer = bench.ask(Question("Guten Tag!", "papers"))
    assert (answer.status, answer.generator, answer.evidence) == ("chitchat", "none", ())
    assert answer.text.startswith("Hallo")
    assert bench.retriever.requests == []
    assert bench.models.asked == []


def test_follow_ups_without_a_model_search_the_literal_question() -> None:
    bench = Bench()
    conversation = bench.memory.open(None, "papers", "x")
    for text in (
        "How well does copper conduct electricity?",
        "What is the melting point of copper?",
    ):
        bench.ask(Question(text, "papers", conversation_id=conversation))
    assert bench.retriever.queries[-1] == "What is the melting point of copper?"


def test_looking_back_on_nothing() -> None:
    assert (
        Bench().ask(Question("What have we discussed?", "papers")).text
        == "We have not discussed anything yet."
    )
