"""Jobs, answers and conversations survive and forget as told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.errors import NotFound
from app.core.types import Answer, JobFile, Message, Question
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.job_queue import put_row


def an_answer(answer_id: str) -> Answer:
    return Answer(answer_id, "text", "answered", Question("who?", "papers"), "g", "e")


def test_jobs_survive_reopening_and_are_pruned(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        first = store.jobs.create("ingest", {"files": ["a"]}, total=3, unit="chunks")
        second = store.jobs.create("bulk", {})
        put_row(
            store.jobs,
            replace(
                first,
                state="running",
                done=2,
                eta_s=1.5,
                errors=("x",),
                files=(JobFile("a", "running", 0.5),),
                result={"n": 1},
            ),
        )
    with IndexStore(options, vector_store="off") as store:
        job = store.jobs.get(first.id)
        assert (job.state, job.done, job.eta_s, job.errors, job.result) == (
            "running",
            2,
            1.5,
            ("x",),
            {"n": 1},
        )
        assert job.files == (JobFile("a", "running", 0.5),)
        assert job.updated_at >= job.created_at
        assert [j.id for j in store.jobs.list()] == [second.id, first.id]
        assert [j.id for j in store.jobs.unfinished()] == [first.id, second.id]
        for job in store.jobs.list():
            put_row(store.jobs, replace(job, state="done"))
        assert store.jobs.delete_finished(1) == 1
        assert [j.id for j in store.jobs.list()] == [second.id]
        with pytest.raises(NotFound):
            store.jobs.get(first.id)
        assert not store.jobs.save(first, "a worker")


def test_answers_are_kept_rated_listed_and_wiped(store: IndexStore) -> None:
    for name in ("a", "b"):
        record = {"answer_id": name, "answer": "Zürich", "at": "2026-01-01T00:00:00Z"}
        store.answers.save(an_answer(name), record)
    store.answers.add_feedback("a", {"thumb": "up"})
    assert store.answers.get("a") == {
        "answer_id": "a",
        "answer": "Zürich",
        "at": "2026-01-01T00:00:00Z",
        "feedback": {"thumb": "up"},
    }
    assert [r["answer_id"] for r in store.answers.list()] == ["b", "a"]
    assert [r["answer_id"] for r in store.answers.list(with_feedback=True)] == ["a"]
    with pytest.raises(NotFound):
        store.answers.add_feedback("c", {})
    assert store.answers.delete("2000-01-01T00:00:00Z") == 0
    assert store.answers.delete() == 2
    with pytest.raises(NotFound):
        store.answers.get("a")


def test_conversations_grow_and_are_forgotten(store: IndexStore) -> None:
    talk = store.conversations.create("first", "papers")
    other = store.conversations.create()
    store.conversations.append(talk, [Message("user", "hi"), Message("assistant", "hello")], "a1")
    store.conversations.set_summary(talk, "greetings", 2)
    store.conversations.rename(talk, "renamed")
    found = store.conversations.get(talk)
    assert (found["title"], found["library"], found["summary"], found["folded"]) == (
        "renamed",
        "papers",
        "greetings",
        2,
    )
    turns = found["turns"]
    assert isinstance(turns, list)
    assert [(t["role"], t["content"], t["answer_id"]) for t in turns] == [
        ("user", "hi", "a1"),
        ("assistant", "hello", "a1"),
    ]
    assert [c["id"] for c in store.conversations.list()] == [other, talk]
    assert store.conversations.delete(talk) == 1
    for call in (
        lambda: store.conversations.get(talk),
        lambda: store.conversations.append(talk, [], "a2"),
        lambda: store.conversations.rename(talk, "x"),
        lambda: store.conversations.set_summary(talk, "x", 1),
    ):
        with pytest.raises(NotFound):
            call()
    assert store.conversations.delete_all() == 1


def test_an_answer_is_kept_after_the_reply_and_no_later_than_a_stop(options: IndexOptions) -> None:
    record = {"answer_id": "x", "answer": "Zürich", "at": "2026-01-01T00:00:00Z"}
    with IndexStore(options, vector_store="off") as store:
        with store.database.write("meta"):  # as a bulk run, in another thread
            store.answers.save(an_answer("x"), record)
        assert store.answers.get("x") == record
        store.answers.save(an_answer("y"), record | {"answer_id": "y"})
    with IndexStore(options, vector_store="off") as store:
        assert store.answers.get("y")["answer_id"] == "y"
