"""What the stores of answers and conversations do, on each database of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.answer.records import StoredRecord
from app.core.access import Caller, digest_of
from app.core.errors import Conflict, NotFound
from app.core.serialization import json_values
from app.core.types import Answer, Library, Message, Question
from app.storage.catalog.answers import AnswerStore, ConversationStore
from app.storage.catalog.keys import KeyStore
from app.storage.options import IndexOptions
from app.storage.store import IndexStore


@pytest.fixture
def stores(tmp_path: Path, database_url: str) -> Iterator[tuple[AnswerStore, ConversationStore]]:
    options = IndexOptions(tmp_path, tmp_path / "chroma", database_url, tantivy_threads=1)
    with IndexStore(options, vector_store="off") as store:
        yield store.answers, store.conversations


@pytest.fixture
def answers(stores: tuple[AnswerStore, ConversationStore]) -> AnswerStore:
    return stores[0]


@pytest.fixture
def conversations(stores: tuple[AnswerStore, ConversationStore]) -> ConversationStore:
    return stores[1]


def _save(answers: AnswerStore, answer_id: str) -> None:
    answer = Answer(
        answer_id,
        f"Text of {answer_id} \u2603.",
        "answered",
        Question("What?", "papers"),
        "fake:one",
        "none",
    )
    answers.save(
        answer,
        json_values(StoredRecord.kept_whole(answer, {"FUSION": "rrf"}, "2026-01-01T00:00:00Z")),
    )


def test_a_record_comes_back_as_it_was(answers: AnswerStore) -> None:
    _save(answers, "a")
    found = answers.get("a")
    assert (found["answer"], found["settings"], found["kept"]) == (
        "Text of a \u2603.",
        {"FUSION": "rrf"},
        "full",
    )
    assert "feedback" not in found


def test_unknown_answers_are_not_found(answers: AnswerStore) -> None:
    with pytest.raises(NotFound):
        answers.get("nope")
    with pytest.raises(NotFound):
        answers.add_feedback("nope", {"thumbs": "up"})


def test_feedback_is_attached_and_listed(answers: AnswerStore) -> None:
    for answer_id in ("a", "b", "c"):
        _save(answers, answer_id)
    answers.add_feedback("a", {"thumbs": "up"})
    answers.add_feedback("a", {"thumbs": "down"})
    assert answers.get("a")["feedback"] == {"thumbs": "down"}
    assert [record["answer_id"] for record in answers.list()] == ["c", "b", "a"]
    assert [record["answer_id"] for record in answers.list(limit=2)] == ["c", "b"]
    assert [record["answer_id"] for record in answers.list(with_feedback=True)] == ["a"]


def test_wiping_by_age_and_whole(answers: AnswerStore) -> None:
    for answer_id in ("a", "b"):
        _save(answers, answer_id)
    assert answers.delete("2000-01-01T00:00:00Z") == 0
    assert answers.delete("2999-01-01T00:00:00Z") == 2
    _save(answers, "c")
    assert answers.delete() == 1
    assert list(answers.list()) == []


def test_exchanges_are_kept_in_order(conversations: ConversationStore) -> None:
    made = conversations.create("Title", "papers")
    conversations.append(made, [Message("user", "One?"), Message("assistant", "Yes.")], "a1")
    conversations.append(made, [Message("user", "Two?"), Message("assistant", "No.")], "a2")
    found = conversations.get(made)
    turns = found["turns"]
    assert isinstance(turns, list)
    assert [(turn["role"], turn["content"], turn["answer_id"]) for turn in turns] == [
        ("user", "One?", "a1"),
        ("assistant", "Yes.", "a1"),
        ("user", "Two?", "a2"),
        ("assistant", "No.", "a2"),
    ]
    assert (found["title"], found["library"], found["summary"], found["folded"]) == (
        "Title",
        "papers",
        "",
        0,
    )
    assert set(found) == {
        "id",
        "title",
        "library",
        "summary",
        "folded",
        "created_at",
        "updated_at",
        "turns",
    }


def said(conversations: ConversationStore, made: str) -> list[tuple[str, str, str]]:
    turns = conversations.get(made)["turns"]
    assert isinstance(turns, list)
    return [(turn["role"], turn["content"], turn["answer_id"]) for turn in turns]


def test_a_question_is_kept_before_its_answer(conversations: ConversationStore) -> None:
    made = conversations.create()
    conversations.begin(made, "One?", "a1")
    assert said(conversations, made) == [("user", "One?", "a1")]
    conversations.begin(made, "Two?", "a2")
    conversations.append(made, [Message("user", "Two?"), Message("assistant", "No.")], "a2")
    assert said(conversations, made) == [
        ("user", "One?", "a1"),
        ("user", "Two?", "a2"),
        ("assistant", "No.", "a2"),
    ]
    conversations.begin(made, "One?", "a3")  # asked again: the one without an answer goes
    conversations.begin(made, "Two?", "a4")  # this one was answered, and stays
    assert said(conversations, made) == [
        ("user", "Two?", "a2"),
        ("assistant", "No.", "a2"),
        ("user", "One?", "a3"),
        ("user", "Two?", "a4"),
    ]
    conversations.append(made, [Message("user", "One?"), Message("assistant", "Yes.")], "a3")
    assert said(conversations, made)[-2:] == [("user", "One?", "a3"), ("assistant", "Yes.", "a3")]


def _exchange(conversations: ConversationStore, made: str, question: str, answer_id: str) -> None:
    conversations.begin(made, question, answer_id)
    both = [Message("user", question), Message("assistant", f"{question} Yes.")]
    conversations.append(made, both, answer_id)


def _branch(conversations: ConversationStore, made: str) -> list[tuple[str, list[str]]]:
    """Return the ids of the exchanges that are shown, each with its versions."""
    turns = conversations.get(made)["turns"]
    assert isinstance(turns, list)
    return list(
        {turn["answer_id"]: (turn["answer_id"], turn["versions"]) for turn in turns}.values()
    )


def test_a_changed_question_is_a_branch_and_the_old_one_stays(
    conversations: ConversationStore,
) -> None:
    made = conversations.create()
    for question, answer_id in (("One?", "a1"), ("Two?", "a2"), ("Three?", "a3")):
        _exchange(conversations, made, question, answer_id)
    conversations.set_summary(made, "So far.", 2)
    conversations.leave(made, "a2")
    assert _branch(conversations, made) == [("a1", ["a1"])]
    _exchange(conversations, made, "Two, changed?", "b2")
    assert _branch(conversations, made) == [("a1", ["a1"]), ("b2", ["a2", "b2"])]
    assert conversations.get(made)["folded"] == 0  # the summary was of the other branch
    _exchange(conversations, made, "And then?", "b3")
    conversations.show(made, "a2")
    old = [("a1", ["a1"]), ("a2", ["a2", "b2"]), ("a3", ["a3"])]
    assert _branch(conversations, made) == old
    conversations.show(made, "b2")
    new = [("a1", ["a1"]), ("b2", ["a2", "b2"]), ("b3", ["b3"])]
    assert _branch(conversations, made) == new
    conversations.leave(made, "a1")
    assert _branch(conversations, made) == []
    _exchange(conversations, made, "One, changed?", "c1")
    assert _branch(conversations, made) == [("c1", ["a1", "c1"])]
    conversations.show(made, "a1")
    assert _branch(conversations, made)[1:] == new[1:]
    for away in (conversations.leave, conversations.show):
        with pytest.raises(NotFound):
            away(made, "nope")


def test_a_broken_off_question_of_a_branch_gives_way_to_its_repetition(
    conversations: ConversationStore,
) -> None:
    made = conversations.create()
    _exchange(conversations, made, "One?", "a1")
    conversations.leave(made, "a1")
    conversations.begin(made, "Changed?", "b1")
    _exchange(conversations, made, "After it?", "b2")
    assert _branch(conversations, made) == [("b1", ["a1", "b1"]), ("b2", ["b2"])]
    _exchange(conversations, made, "Changed?", "b3")
    assert _branch(conversations, made) == [("b2", ["a1", "b2"]), ("b3", ["b3"])]


def test_a_deleted_one_comes_back_within_its_grace(conversations: ConversationStore) -> None:
    made, other = conversations.create("kept"), conversations.create("other")
    conversations.append(made, [Message("user", "One?"), Message("assistant", "Yes.")], "a1")
    with pytest.raises(NotFound):
        conversations.restore(made)
    assert conversations.delete(made, grace_s=600) == 1
    assert conversations.delete(made, grace_s=600) == 0
    assert [one["id"] for one in conversations.list()] == [other]
    for gone in (
        lambda: conversations.get(made),
        lambda: conversations.rename(made, "x"),
        lambda: conversations.begin(made, "x", "a2"),
    ):
        with pytest.raises(NotFound):
            gone()
    assert conversations.delete_due() == 0
    conversations.restore(made)
    assert said(conversations, made) == [("user", "One?", "a1"), ("assistant", "Yes.", "a1")]
    assert conversations.delete(made) == 1
    with pytest.raises(NotFound):
        conversations.restore(made)
    assert conversations.delete(other, grace_s=600) == 1
    assert conversations.delete_all() == 1


def test_summary_and_title_are_replaced(conversations: ConversationStore) -> None:
    made = conversations.create()
    conversations.set_summary(made, "So far.", 4)
    conversations.rename(made, "Better")
    found = conversations.get(made)
    assert (found["summary"], found["folded"], found["title"]) == ("So far.", 4, "Better")


def test_lists_are_newest_first_without_turns(conversations: ConversationStore) -> None:
    made = [conversations.create(str(i)) for i in range(3)]
    listed = conversations.list(limit=2)
    assert [entry["id"] for entry in listed] == [made[2], made[1]]
    assert "turns" not in listed[0]


def test_forgetting_one_and_all(conversations: ConversationStore) -> None:
    made = [conversations.create() for _ in range(3)]
    assert conversations.delete(made[0]) == 1
    with pytest.raises(NotFound):
        conversations.get(made[0])
    assert conversations.delete_all() == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.get("nope"),
        lambda store: store.append("nope", [Message("user", "x")], "a1"),
        lambda store: store.begin("nope", "x", "a1"),
        lambda store: store.restore("nope"),
        lambda store: store.rename("nope", "x"),
        lambda store: store.set_summary("nope", "x", 0),
    ],
    ids=["get", "append", "begin", "restore", "rename", "set_summary"],
)
def test_unknown_conversations_are_not_found(
    conversations: ConversationStore, call: Callable[[ConversationStore], object]
) -> None:
    with pytest.raises(NotFound):
        call(conversations)


def test_forgetting_what_is_not_there_forgets_nothing(conversations: ConversationStore) -> None:
    conversations.create()
    assert conversations.delete("nope") == 0
    assert len(conversations.list()) == 1


def test_keys_are_kept_by_their_digest_until_they_are_revoked(
    tmp_path: Path, database_url: str
) -> None:
    options = IndexOptions(tmp_path, tmp_path / "chroma", database_url, tantivy_threads=1)
    with IndexStore(options, vector_store="off") as store:
        keys, other = store.keys, KeyStore(store.database)
        assert keys.list() == ()
        key, kept = keys.add("b", {"read", "ask"}, {Library.PAPERS})
        keys.add("a", {"admin"}, set(Library))
        assert kept.digest == digest_of(key.encode())
        assert kept.caller == Caller("b", frozenset({"ask", "read"}), frozenset({Library.PAPERS}))
        with pytest.raises(Conflict):
            keys.add("b", {"read"}, set(Library))
        assert [one.caller.name for one in other.read()] == ["a", "b"]
        keys.use("b")
        assert [one.used_at is None for one in other.list()] == [True, True]
        keys.flush()
        assert [one.used_at is None for one in other.list()] == [True, False]
        assert keys.revoke("b").digest == kept.digest
        with pytest.raises(NotFound):
            keys.revoke("b")
        assert [one.caller.name for one in other.read()] == ["a"]


def test_a_share_opens_by_its_token_until_it_is_revoked(tmp_path: Path, database_url: str) -> None:
    options = IndexOptions(tmp_path, tmp_path / "chroma", database_url, tantivy_threads=1)
    with IndexStore(options, vector_store="off") as store:
        shares = store.shares
        token, made = shares.add("a", {"question": "Who?", "answer": "Z\u00fcrich."})
        other, _ = shares.add("a", {"question": "Where?"})
        assert shares.open(token) == made
        assert {one.record["question"] for one in shares.list("a")} == {"Who?", "Where?"}
        assert shares.list("b") == []
        assert shares.revoke(made.id) == made
        with pytest.raises(NotFound):
            shares.open(token)
        with pytest.raises(NotFound):
            shares.revoke(made.id)
        assert shares.open(other).record == {"question": "Where?"}
        store.answers.delete("2026-01-01T00:00:00Z")
        assert len(shares.list()) == 1
        store.answers.delete()
        assert shares.list() == []
