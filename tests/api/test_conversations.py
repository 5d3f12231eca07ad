"""Conversations, stored answers, feedback, models."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.api.schemas.questions import StoredAnswer
from app.core.cancel import CancelToken
from app.core.serialization import from_json, json_values
from app.core.types import REFUSAL, LedgerEntry, Library, ModelProfile
from app.models.ollama import PullProgress
from tests.api.conftest import LIBRARY, Site, site
from tests.fakes.generators import FixedModels, ScriptedGenerator


def filled_with(shop: Site) -> Site:
    assert shop.upload(*((name, text.encode()) for name, text in LIBRARY.items()))[0] == 201
    return shop


def test_a_conversation_is_remembered_renamed_and_forgotten(shop: Site) -> None:
    filled_with(shop)
    first = shop.client.post(
        "/api/v1/chat",
        json={"message": "What is the melting point of copper?", "library": "papers"},
    ).json()
    conversation = first["conversation_id"]
    second = shop.client.post(
        "/api/v1/chat",
        json={
            "message": "What have we discussed?",
            "conversation_id": conversation,
            "library": "papers",
        },
    ).json()
    assert second["status"] == "conversation"
    assert "copper" in second["answer"]
    shown = shop.client.get(f"/api/v1/conversations/{conversation}").json()
    assert [turn["role"] for turn in shown["turns"]] == ["user", "assistant", "user", "assistant"]
    assert shown["turns"][1]["answer_id"] == first["answer_id"]
    assert shown["title"] == "What is the melting point of copper?"
    renamed = shop.client.patch(
        f"/api/v1/conversations/{conversation}", json={"title": "Metals"}
    ).json()
    assert renamed["title"] == "Metals"
    begun = shop.client.post("/api/v1/conversations", json={"title": "Empty"})
    assert (begun.status_code, begun.json()["turns"]) == (201, [])
    listed = shop.client.get("/api/v1/conversations").json()["conversations"]
    assert [row["title"] for row in listed] == ["Empty", "Metals"]
    assert shop.client.delete(f"/api/v1/conversations/{conversation}").json() == {"forgotten": 1}
    assert shop.client.get(f"/api/v1/conversations/{conversation}").status_code == 404
    assert shop.client.delete(f"/api/v1/conversations/{conversation}").status_code == 404
    assert (
        shop.client.patch(f"/api/v1/conversations/{conversation}", json={"title": "x"}).status_code
        == 404
    )
    assert (
        shop.client.post(
            "/api/v1/chat", json={"message": "hi", "conversation_id": conversation}
        ).status_code
        == 404
    )
    back = shop.client.post(f"/api/v1/conversations/{conversation}/restore").json()
    assert (back["title"], len(back["turns"])) == ("Metals", 4)
    at_once = {"grace_s": 0}
    deleted = shop.client.delete(f"/api/v1/conversations/{conversation}", params=at_once)
    assert deleted.json() == {"forgotten": 1}
    lost = shop.client.post(f"/api/v1/conversations/{conversation}/restore")
    assert (lost.status_code, lost.json()["code"]) == (404, "not_found")
    assert shop.client.delete("/api/v1/conversations").json() == {"forgotten": 1}


def test_an_answer_is_kept_with_its_trace_and_takes_feedback(shop: Site) -> None:
    filled_with(shop)
    body = {
        "question": "What is the melting point of copper?",
        "library": "papers",
        "trace": "none",
    }
    answer = shop.client.post("/api/v1/query", json=body).json()
    assert answer["trace"] is None
    reply = shop.client.get(f"/api/v1/answers/{answer['answer_id']}")
    assert json_values(from_json(StoredAnswer, reply.json())) == reply.json()
    stored = reply.json()
    assert stored["asked"]["question"] == body["question"]
    assert stored["kept"] == "full"
    assert stored["trace"]["stages"]
    assert {name: stored[name] for name in ("answer", "sources", "sentences")} == {
        name: answer[name] for name in ("answer", "sources", "sentences")
    }
    source = answer["sources"][0]
    passage = {
        "library": "papers",
        "doc_id": source["doc_id"],
        "start": source["start"],
        "end": source["end"],
    }
    given = shop.client.post(
        f"/api/v1/answers/{answer['answer_id']}/feedback",
        json={"thumbs": "up", "comment": "exactly", "passage": passage},
    )
    assert given.json()["feedback"] == {"thumbs": "up", "comment": "exactly", "passage": passage}
    listed = shop.client.get("/api/v1/answers").json()["answers"]
    assert [(one["answer_id"], one["question"]) for one in listed] == [
        (answer["answer_id"], body["question"])
    ]
    assert (
        shop.client.get(f"/api/v1/answers/{answer['answer_id']}").json()["feedback"]
        == given.json()["feedback"]
    )
    assert (
        shop.client.post(
            f"/api/v1/answers/{answer['answer_id']}/feedback", json={"thumbs": "sideways"}
        ).status_code
        == 422
    )
    assert (
        shop.client.post("/api/v1/answers/nope/feedback", json={"thumbs": "up"}).status_code == 404
    )
    assert shop.client.get("/api/v1/answers/nope").status_code == 404


def test_models_are_listed_and_pulled_as_a_job(tmp_path: Path) -> None:
    asked: list[str] = []

    def pull(model: str, cancel: CancelToken) -> Iterable[PullProgress]:
        asked.append(model)
        yield PullProgress("pulling manifest")
        yield PullProgress("pulling", 50, 200)
        yield PullProgress("success")

    with site(tmp_path, pull=pull) as opened:
        models = opened.client.get("/api/v1/models").json()
        assert models["installed"] == [
            {"name": "llama3.2:latest", "size_bytes": 2_000_000_000, "chats": True}
        ]
        accepted = opened.client.post(
            "/api/v1/models/pull", json={"model": "nomic-embed-text:v1.5"}
        )
        assert accepted.status_code == 202
        job = opened.services.jobs.wait(accepted.json()["id"], 20)
        assert (job.state, job.total, job.unit) == ("done", 200, "bytes")
        assert job.result == {"model": "nomic-embed-text:v1.5", "status": "success"}
        assert asked == ["nomic-embed-text:v1.5"]
        for bad in ("", "../x", "a b", "-x"):
            assert opened.client.post("/api/v1/models/pull", json={"model": bad}).status_code == 422


def test_a_model_is_tested_as_a_job_and_what_it_finds_is_listed(tmp_path: Path) -> None:
    models = FixedModels(profile=ModelProfile("fake:scripted", "fake", "digest", 5e8))
    with site(tmp_path, models) as opened:
        assert opened.client.get("/api/v1/models/tests").json() == {"tests": [], "advice": ""}
        nothing = opened.client.post("/api/v1/models/test", json={})
        assert (nothing.status_code, nothing.json()["code"]) == (422, "invalid_input")
        assert "no model to test" in nothing.json()["detail"]
        models.model = ScriptedGenerator(*[REFUSAL] * 88)
        accepted = opened.client.post("/api/v1/models/test", json={"model": "tiny:1b"})
        assert (accepted.status_code, accepted.json()["kind"], accepted.json()["unit"]) == (
            202,
            "model_test",
            "questions",
        )
        job = opened.services.jobs.wait(accepted.json()["id"], 60)
        assert (job.state, job.done, job.total) == ("done", 88, 88)
        assert set(models.asked) == {None, "tiny:1b"}
        found = opened.client.get("/api/v1/models/tests").json()
        [test] = found["tests"]
        assert (test["model"], test["questions"], test["as_good_as_quotes"]) == (
            "fake:scripted",
            24,
            False,
        )
        assert test["counts"]["full"]["refused_wrongly"] == 20
        assert found["advice"].startswith("fake:scripted: 4 of 24 with compact, first word after ")
        assert test["checks"]["model"]["true_supported"] == 0
        assert opened.client.get("/api/v1/models").json()["tests"] == [test]
        assert opened.client.post("/api/v1/models/test", json={"model": "../x"}).status_code == 422


def test_the_bulk_account_adds_up(shop: Site) -> None:
    assert shop.client.get("/api/v1/bulk/ledger").json() == {
        "articles": 0,
        "indexed": 0,
        "redirects": 0,
        "skipped": {},
    }
    entries = [
        LedgerEntry("1", "r1", "indexed", ""),
        LedgerEntry("2", "r1", "redirect", ""),
        LedgerEntry("3", "r1", "skipped", "empty"),
    ]
    shop.services.store.ledger.record(Library.PUBLIC, "dump", entries)
    account = shop.client.get("/api/v1/bulk/ledger", params={"library": "public"}).json()
    assert account == {"articles": 3, "indexed": 1, "redirects": 1, "skipped": {"empty": 1}}
    assert (
        shop.client.get("/api/v1/bulk/ledger", params={"library": "papers"}).json()["articles"] == 0
    )


def test_a_letter_is_answered_by_what_it_asks(shop: Site) -> None:
    mill = "# The mill\n\nThe mill was built in 1388. It burned in 1877. It is a school now."
    assert shop.upload(("mill.md", mill.encode()))[0] == 201
    letters = {
        "We passed by on our bicycles on Sunday, and it rained. When was the mill built?": "1388",
        "Hello! I am writing a text for our village paper about the old mill and need one thing"
        " that I could not find, namely the year in which it burned. Could you tell me?": "1877",
    }
    for question, year in letters.items():
        answer = shop.client.post(
            "/api/v1/query", json={"question": question, "library": "papers"}
        ).json()
        assert answer["status"] == "answered"
        assert year in answer["answer"]


def test_each_question_of_a_message_is_answered_or_named(shop: Site) -> None:
    files = {
        "mill.md": "# The mill\n\nThe old mill of Brook was built in 1388. It burned in 1877.",
        "school.md": "# The school\n\nThe school has 64 children and three teachers.",
        "gorse.md": "# Gorse\n\nGorse flowers are yellow and smell of coconut.",
    }
    assert shop.upload(*((name, text.encode()) for name, text in files.items()))[0] == 201

    def asked(question: str) -> tuple[str, list[str]]:
        answer = shop.client.post(
            "/api/v1/query", json={"question": question, "library": "papers"}
        ).json()
        return answer["answer"], [
            one["message"] for one in answer["notices"] if one["code"] == "subject_missing"
        ]

    for between in (", and ", "? "):
        text, missing = asked(
            f"When was the old mill of Brook built{between}how many children has the school?"
        )
        assert ("1388" in text, "64" in text, missing) == (True, True, [])
    text, missing = asked(
        "When was the old mill of Brook built, and who painted the chapel of Saint Bran?"
    )
    assert "1388" in text
    assert missing == ["nothing that was found answers 'who painted the chapel of Saint Bran?'"]


def test_a_changed_question_is_a_branch_that_is_remembered_alone(shop: Site) -> None:
    filled_with(shop)

    def chat(message: str, **more: str) -> dict[str, Any]:
        asked = {"message": message, "library": "papers", **more}
        reply = shop.client.post("/api/v1/chat", json=asked)
        assert reply.status_code == 200, reply.text
        return reply.json()  # type: ignore[no-any-return]

    def shown() -> list[tuple[str, list[str]]]:
        turns = shop.client.get(path).json()["turns"]
        return [(one["content"], one["versions"]) for one in turns if one["role"] == "user"]

    copper, lions = "What is the melting point of copper?", "How long do lions sleep?"
    first = chat(copper)
    talk = {"conversation_id": first["conversation_id"]}
    path = f"/api/v1/conversations/{first['conversation_id']}"
    changed = chat(lions, replaces=first["answer_id"], **talk)
    versions = [first["answer_id"], changed["answer_id"]]
    assert shown() == [(lions, versions)]
    recalled = chat("What did I ask before?", **talk)
    assert (lions in recalled["answer"], copper in recalled["answer"]) == (True, False)
    back = shop.client.put(f"{path}/branch", json={"answer_id": first["answer_id"]})
    assert next(turn["content"] for turn in back.json()["turns"]) == copper
    assert shown() == [(copper, versions)]
    there = shop.client.put(f"{path}/branch", json={"answer_id": changed["answer_id"]})
    assert len(there.json()["turns"]) == 4
    unknown = {"message": copper, "library": "papers", "replaces": "nope", **talk}
    assert shop.client.post("/api/v1/chat", json=unknown).status_code == 404
    assert shop.client.put(f"{path}/branch", json={"answer_id": "nope"}).status_code == 404
    assert len(shop.client.get(path).json()["turns"]) == 4


def test_a_branch_begins_where_nothing_is_stored_before_its_answer(tmp_path: Path) -> None:
    with site(tmp_path, store_answers="off") as shop:
        filled_with(shop)
        body = {"message": "What is the melting point of copper?", "library": "papers"}
        first = shop.client.post("/api/v1/chat", json=body).json()
        changed = {
            "message": "How long do lions sleep?",
            "library": "papers",
            "conversation_id": first["conversation_id"],
            "replaces": first["answer_id"],
        }
        shop.client.post("/api/v1/chat", json=changed)
        path = f"/api/v1/conversations/{first['conversation_id']}"
        turns = shop.client.get(path).json()["turns"]
        assert next(turn["content"] for turn in turns) == changed["message"]
        assert len(turns[0]["versions"]) == 2
