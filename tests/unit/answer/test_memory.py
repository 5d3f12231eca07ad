from __future__ import annotations

import pytest

from app.answer.memory import ConversationMemory, Memory, recollection
from app.answer.options import AnswerOptions
from app.core.errors import NotFound
from app.core.types import Message, Question
from app.storage.catalog.answers import ConversationStore
from tests.stores import catalog_database


class _Summariser:
    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.calls: list[tuple[str, str]] = []

    def __call__(self, summary: str, turns: str) -> str:
        self.calls.append((summary, turns))
        return self.replies.pop(0) if self.replies else ""


def _memory(
    store: ConversationStore, exchanges: int, **options: object
) -> tuple[ConversationMemory, Question]:
    memory = ConversationMemory(store, AnswerOptions(**options))  # type: ignore[arg-type]  # keywords
    conversation = memory.open(None, "papers", "first question")
    for i in range(exchanges):
        memory.record(conversation, f"What is question {i}?", f"Answer {i} [1].", f"a{i}")
    return memory, Question("next", "papers", conversation_id=conversation)


def test_the_buffer_keeps_the_last_exchanges_and_folds_the_rest_once() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(store, 5, memory_buffer_size=2)
    summariser = _Summariser("They talked about 0 to 2.")
    first = memory.recall(question, summariser)
    assert first.summary == "They talked about 0 to 2."
    assert [turn.content for turn in first.recent if turn.role == "user"] == [
        "What is question 3?",
        "What is question 4?",
    ]
    assert summariser.calls[0][0] == ""
    assert summariser.calls[0][1].count("User:") == 3
    assert "[1]" not in summariser.calls[0][1]
    assert memory.recall(question, summariser) == first
    assert len(summariser.calls) == 1


def test_a_long_conversation_is_summarised_once_per_buffer() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(store, 0)
    summariser = _Summariser(*(f"S{i}" for i in range(20)))
    for turn in range(20):
        recalled = memory.recall(question, summariser)
        assert min(turn, 4) <= len(recalled.recent) / 2 < 8
        memory.record(
            str(question.conversation_id), f"What is {turn}?", f"It is {turn}.", f"a{turn}"
        )
    assert len(summariser.calls) == 3


def test_long_answers_are_folded_several_at_a_time() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(store, 0)
    summariser = _Summariser(*(f"S{i}" for i in range(20)))
    for turn in range(20):
        recalled = memory.recall(question, summariser)
        assert turn == 0 or recalled.recent[-1].content.endswith(f"{turn - 1}.")
        memory.record(
            str(question.conversation_id), f"What is {turn}?", f"{'word ' * 300}{turn}.", f"a{turn}"
        )
    assert len(summariser.calls) <= 7


def test_a_buffer_of_zero_folds_every_turn() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(store, 1, memory_buffer_size=0)
    summariser = _Summariser("S1", "S2")
    assert memory.recall(question, summariser) == Memory("S1", (), ("What is question 0?",))
    memory.record(str(question.conversation_id), "And then?", "Then.", "a")
    assert memory.recall(question, summariser).summary == "S2"
    assert summariser.calls[1] == ("S1", "User: And then?\nAssistant: Then.")


def test_without_a_model_nothing_is_lost_and_a_later_model_catches_up() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(store, 4, memory_buffer_size=1)
    kept = memory.recall(question, _Summariser())
    assert (kept.summary, len(kept.recent)) == ("", 8)
    later = memory.recall(question, _Summariser("All of it."))
    assert (later.summary, len(later.recent)) == ("All of it.", 2)


def test_a_long_backlog_is_folded_in_readable_portions() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(store, 12, memory_buffer_size=1, memory_token_budget=100)
    summariser = _Summariser(*(f"S{i}" for i in range(20)))
    found = memory.recall(question, summariser)
    assert len(summariser.calls) > 1
    assert [summary for summary, _ in summariser.calls] == [
        "",
        *(f"S{i}" for i in range(len(summariser.calls) - 1)),
    ]
    told = "\n".join(turns for _, turns in summariser.calls)
    assert [f"question {i}?" in told for i in range(12)] == [True] * 11 + [False]
    assert found.recent[0].content == "What is question 11?"


def test_a_fold_that_breaks_off_goes_on_later() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(store, 12, memory_buffer_size=1, memory_token_budget=100)
    assert memory.recall(question, _Summariser("S0")).summary == "S0"
    later = _Summariser(*(f"L{i}" for i in range(20)))
    memory.recall(question, later)
    assert later.calls[0][0] == "S0"
    assert "question 0?" not in later.calls[0][1]


def test_the_token_budget_bounds_what_is_kept() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(
        store, 10, memory_strategy="buffer", memory_buffer_size=10, memory_token_budget=60
    )
    recent = memory.recall(question, _Summariser()).recent
    assert 0 < len(recent) < 20
    assert recent[0].role == "user"
    assert recent[-1].content == "Answer 9 [1]."


def test_a_summary_never_eats_the_whole_budget() -> None:
    store = ConversationStore(catalog_database())
    memory, question = _memory(store, 3, memory_buffer_size=1, memory_token_budget=100)
    summary = memory.recall(question, _Summariser("word " * 500 + "end")).summary
    assert summary.endswith("end")
    assert len(summary) < 200
    assert memory.recall(question, _Summariser()).recent != ()


def test_memory_may_be_off() -> None:
    memory, question = _memory(ConversationStore(catalog_database()), 3, memory_strategy="none")
    assert not memory.recall(question, _Summariser())


def test_history_that_comes_with_the_question_is_taken_as_it_is() -> None:
    memory = ConversationMemory(ConversationStore(catalog_database()), AnswerOptions())
    history = (
        Message("user", "hi"),
        Message("assistant", "Hello!"),
        Message("user", "Who was Duarte?"),
        Message("assistant", "An optician [2]."),
    )
    found = memory.recall(Question("next", "papers", history=history), _Summariser())
    assert (found.recent, found.questions) == (history, ("Who was Duarte?",))
    assert found.messages()[-1].content == "An optician."


def test_opening_checks_and_titles() -> None:
    store = ConversationStore(catalog_database())
    memory = ConversationMemory(store, AnswerOptions())
    created = memory.open(None, "papers", "  A very\nlong question " + "x" * 100)
    title = str(store.get(created)["title"])
    assert title.startswith("A very long question xx")
    assert len(title) <= 120
    assert memory.open(created, "papers", "again") == created
    with pytest.raises(NotFound):
        memory.open("nope", "papers", "x")


def test_recollection() -> None:
    assert recollection(Memory()) == "We have not discussed anything yet."
    text = recollection(Memory("About tides.", (), ("What are tides?", "Why?")))
    assert text == "About tides.\n\nSo far you asked:\n\n- What are tides?\n- Why?"
