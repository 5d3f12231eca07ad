from __future__ import annotations

import pytest

from app.answer.memory import Memory
from app.answer.models import ModelCalls
from app.answer.pointing import stands_alone
from app.answer.questions import cleaned, holds, rewrite
from app.core.cancel import CancelToken
from app.core.errors import ProviderTimeout
from app.core.trace import Trace
from app.core.types import Message
from tests.fakes.generators import Reply, ScriptedGenerator
from tests.unit.answer.bench import PROMPTS

MEMORY = Memory(
    "",
    (
        Message("user", "What is copper?"),
        Message("assistant", "A metal that conducts electricity [1]."),
    ),
    ("What is copper?",),
)


def _rewrite(
    question: str, *script: Reply, memory: Memory = MEMORY
) -> tuple[str | None, ScriptedGenerator, Trace]:
    helper, trace = ScriptedGenerator(*script), Trace()
    return (
        rewrite(question, memory, ModelCalls(trace, CancelToken(), PROMPTS, helper)),
        helper,
        trace,
    )


def test_a_follow_up_is_rewritten_with_the_conversation() -> None:
    query, helper, trace = _rewrite(
        "What is its melting point?", "What is the melting point of copper?"
    )
    assert query == "What is the melting point of copper?"
    assert trace.llm_calls == 1
    prompt = helper.prompts[0].messages[-1].content
    assert "User: What is copper?" in prompt
    assert "[1]" not in prompt


def test_the_first_turn_and_no_model_stay_literal() -> None:
    assert _rewrite("What is copper?", memory=Memory())[0] is None
    assert rewrite("Why?", MEMORY, ModelCalls(Trace(), CancelToken(), PROMPTS)) is None


def test_a_first_question_after_a_greeting_costs_no_call() -> None:
    greeted = Memory(
        "", (Message("user", "Hello"), Message("assistant", "Hello! What would you like to know?"))
    )
    query, _, trace = _rewrite("What is copper?", "What is copper, the metal?", memory=greeted)
    assert (query, trace.llm_calls) == (None, 0)


@pytest.mark.parametrize(
    "reply", ["", "  \n ", '""', "What is its melting point?", "x" * 900, ProviderTimeout("slow")]
)
def test_an_unusable_rewrite_leaves_the_literal_question(reply: Reply) -> None:
    assert _rewrite("What is its melting point?", reply)[0] is None


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("Rewritten: copper melting point", "copper melting point"),
        ('Standalone question: "When was it founded?"', "When was it founded?"),
        ("\n- copper melting point\nbecause the user asked", "copper melting point"),
        ("What about ratios like 1:2?", "What about ratios like 1:2?"),
        ("**copper melting point**", "copper melting point"),
    ],
)
def test_replies_are_cleaned(reply: str, query: str) -> None:
    assert cleaned(reply) == query


@pytest.mark.parametrize(
    ("question", "query", "kept"),
    [
        ("How do spring tides form in it?", "How do spring tides form in copper?", True),
        ("How is it made?", "How is copper made?", True),
        ("And the melting point?", "copper melting point", True),
        ("What does that metal conduct?", "What does copper conduct?", True),
        ("Wie hoch ist sein Schmelzpunkt?", "Wie hoch ist der Schmelzpunkt von copper?", False),
        ("When did it receive the Nobel Prize?", "When did copper conduct electricity?", False),
        ("How is it made?", "How is bronze made?", False),
        ("How is it made?", "I don't have enough information in the given text.", False),
    ],
)
def test_a_rewrite_keeps_the_question_and_adds_only_what_was_said(
    question: str, query: str, kept: bool
) -> None:
    assert holds(question, query, MEMORY) is kept


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("How do spring tides form?", True),
        ("What is the melting point of silver?", True),
        ("How is it made?", False),
        ("And in Spain?", False),
        ("Why?", False),
    ],
)
def test_a_message_that_points_back_to_nothing_stands_alone(question: str, alone: bool) -> None:
    assert stands_alone(question) is alone


def test_a_message_that_stands_alone_costs_no_call() -> None:
    query, helper, trace = _rewrite("How do spring tides form?")
    assert query is None
    assert (helper.prompts, trace.llm_calls) == ([], 0)
