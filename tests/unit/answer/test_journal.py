from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from app.answer.options import AnswerOptions
from app.answer.records import AnswerJournal
from app.core.types import Answer
from app.storage.catalog.answers import AnswerStore
from tests.stores import catalog_with_documents_of, kept_answers, shelved
from tests.telling import tells
from tests.unit.answer.bench import COPPER, DUARTE, TIDES, Bench, papers

QUESTION = "What is the melting point of copper?"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def _answer() -> Answer:
    return Bench(options=AnswerOptions(store_answers="off")).ask(papers(QUESTION))


def _store() -> AnswerStore:
    """Return a store of answers beside the documents that they draw on."""
    return AnswerStore(catalog_with_documents_of(shelved(COPPER, TIDES, DUARTE)))


def _journal(store: AnswerStore, clock: list[datetime], **options: object) -> AnswerJournal:
    chosen = AnswerOptions(**options)  # type: ignore[arg-type]
    return AnswerJournal(store, chosen, lambda: {"FUSION": "rrf"}, lambda: clock[0])


def test_full_keeps_question_trace_and_settings() -> None:
    store, answer = _store(), _answer()
    _journal(store, [NOON]).keep(answer)
    record = store.get(answer.answer_id)
    assert record["answer"] == answer.text
    assert record["asked"]["question"] == QUESTION  # type: ignore[index]  # a mapping
    assert (record["at"], record["kept"], record["settings"]) == (
        "2026-05-01T12:00:00Z",
        "full",
        {"FUSION": "rrf"},
    )
    assert record["sources"]


def test_hash_keeps_places_and_no_words() -> None:
    store, answer = _store(), _answer()
    assert tells(answer.text, "1085")
    _journal(store, [NOON], store_answers="hash").keep(answer)
    kept = json.dumps(store.get(answer.answer_id)).lower()
    assert not tells(kept, "1085")
    for word in ("melting", "electricity", "celsius"):
        assert word not in kept
    assert store.get(answer.answer_id)["kept"] == "hash"
    sources = store.get(answer.answer_id)["sources"]
    assert isinstance(sources, list)
    assert sources[0]["doc_id"] == answer.evidence[0].hit.passage.chunk.doc_id


def test_off_keeps_nothing() -> None:
    store = _store()
    journal = _journal(store, [NOON], store_answers="off")
    journal.keep(_answer())
    assert kept_answers(store) == []
    assert not journal.keeps_traces


def test_retention_forgets_old_answers_at_most_once_an_hour() -> None:
    store, clock = _store(), [NOON]
    journal = _journal(store, clock, answer_retention_days=7)
    old, first, second, third = (_answer() for _ in range(4))
    journal.keep(old)
    clock[0] = NOON + timedelta(days=8)
    journal.keep(first)
    assert kept_answers(store) == [first.answer_id]
    _journal(store, [NOON]).keep(old)
    clock[0] += timedelta(minutes=30)
    journal.keep(second)
    assert kept_answers(store) == [second.answer_id, old.answer_id, first.answer_id]
    clock[0] += timedelta(minutes=31)
    journal.keep(third)
    assert kept_answers(store) == [third.answer_id, second.answer_id, first.answer_id]


def test_without_retention_nothing_is_forgotten() -> None:
    store, old, new = _store(), _answer(), _answer()
    _journal(store, [NOON - timedelta(days=3000)]).keep(old)
    _journal(store, [NOON]).keep(new)
    assert kept_answers(store) == [new.answer_id, old.answer_id]
