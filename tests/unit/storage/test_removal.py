"""Deleting, undoing, clearing, and what goes along."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from app.core.errors import DiskFull, NoOriginal, NotFound, Superseded
from app.core.types import (
    Answer,
    Evidence,
    Hit,
    LedgerEntry,
    Library,
    Message,
    PageWords,
    Question,
    Word,
)
from app.storage import writer
from app.storage.catalog.answers import BLANK, redact_answer
from app.storage.catalog.schema import deletions
from app.storage.files.durable import Steps
from app.storage.files.originals import Originals
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.job_queue import put_row
from tests.unit.storage.drafts import make_draft
from tests.unit.storage.test_writer import embed_all, found

PAPERS = Library.PAPERS


def test_delete_removes_from_every_search_and_reports(store: IndexStore) -> None:
    sha256 = store.writer.store_original(b"the bytes")
    draft = make_draft("a.txt", "walruses whistle loudly", has_original=True, sha256=sha256)
    store.writer.write([draft, make_draft("b.txt", "penguins parade proudly")])
    embed_all(store)
    assert store.catalog.original(PAPERS, draft.doc_id).read_bytes() == b"the bytes"
    result = store.writer.delete(PAPERS, draft.doc_id)
    assert (result.chunks, result.vectors, result.originals, result.purged) == (2, 2, 1, True)
    assert found(store, "walruses") == set()
    counts = store.catalog.counts(PAPERS)
    assert (counts.documents, counts.chunks, counts.embedded, store.vectors.count(PAPERS)) == (
        1,
        2,
        2,
        2,
    )
    assert not store.writer.original_path(sha256).exists()
    with pytest.raises(NotFound):
        store.catalog.text(PAPERS, draft.doc_id)
    with pytest.raises(NotFound):
        store.writer.delete(PAPERS, draft.doc_id)


def test_an_original_stays_while_another_document_has_the_same_bytes(store: IndexStore) -> None:
    sha256 = store.writer.store_original(b"same")
    first, second = (
        make_draft(key, "same words", has_original=True, sha256=sha256)
        for key in ("a.txt", "b.txt")
    )
    store.writer.write([first, second])
    assert store.writer.delete(PAPERS, first.doc_id).originals == 0
    assert store.catalog.original(PAPERS, second.doc_id).exists()
    assert store.writer.delete(PAPERS, second.doc_id).originals == 1


def test_an_original_stays_while_an_accepted_upload_waits_for_its_turn(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.catalog.uploads.AT_REST_S", 0)
    sha256 = store.writer.store_original(b"same")
    draft = make_draft("a.txt", "same words", has_original=True, sha256=sha256)
    store.writer.write([draft])
    job = store.jobs.create("ingest", {"files": [{"filename": "b.txt", "sha256": sha256}]})
    assert store.writer.delete(PAPERS, draft.doc_id).originals == 0
    assert [fault.code for fault in store.fsck.run(repair=True).faults] == []
    assert store.writer.original_path(sha256).exists()
    put_row(store.jobs, replace(job, state="cancelled"))
    assert [fault.code for fault in store.fsck.run(repair=True).faults] == ["original_orphan"]
    assert not store.writer.original_path(sha256).exists()


def accepted(store: IndexStore, *keys: str, library: Library = PAPERS) -> str:
    """The id of a waiting upload of these files."""
    files = [{"filename": key, "source_key": key, "sha256": "0" * 64} for key in keys]
    return store.jobs.create("ingest", {"library": library.value, "files": files}).id


def test_a_deletion_keeps_out_what_was_accepted_before_it(store: IndexStore) -> None:
    first = make_draft("a.txt", "walruses whistle")
    store.writer.write([first])
    before, elsewhere = accepted(store, "a.txt", "b.txt"), accepted(store, "c.txt")
    store.writer.delete(PAPERS, first.doc_id)
    later = accepted(store, "a.txt")
    again = replace(make_draft("a.txt", "walruses whistle again"), job_id=before)
    with pytest.raises(Superseded, match="deleted or replaced after"):
        store.writer.write([again])
    assert found(store, "walruses") == set()
    store.writer.write([replace(make_draft("b.txt", "penguins parade"), job_id=before)])
    store.writer.write([replace(make_draft("c.txt", "lions sleep"), job_id=elsewhere)])
    store.writer.write([replace(again, job_id=later)])
    assert store.catalog.counts(PAPERS).documents == 3


def test_an_upload_keeps_out_what_was_accepted_before_it_for_the_same_place(
    store: IndexStore,
) -> None:
    interrupted = accepted(store, "a.txt", "b.txt")
    later = accepted(store, "a.txt")
    store.writer.write([replace(make_draft("a.txt", "walruses whistle"), job_id=later)])
    with pytest.raises(Superseded, match="deleted or replaced after"):
        store.writer.write([replace(make_draft("a.txt", "walruses sing"), job_id=interrupted)])
    store.writer.write([replace(make_draft("b.txt", "penguins parade"), job_id=interrupted)])
    assert len(found(store, "whistle")) == len(found(store, "penguins")) == 1
    assert found(store, "sing") == set()


def test_reading_again_keeps_no_upload_out(store: IndexStore) -> None:
    live = make_draft("a.txt", "walruses whistle")
    store.writer.write([live])
    upload = accepted(store, "a.txt")
    reread = store.jobs.create("reread", {"library": PAPERS.value}).id
    read_again = replace(live, job_id=reread, reread=True, source_revision="a newer reader")
    assert store.writer.write([read_again])[0].status == "replaced"
    store.writer.write([replace(make_draft("a.txt", "walruses sing"), job_id=upload)])
    assert len(found(store, "sing")) == 1


def test_bytes_that_are_read_again_are_written_only_while_they_are_live(store: IndexStore) -> None:
    live = make_draft("a.txt", "walruses whistle")
    store.writer.write([live])
    upload = accepted(store, "a.txt")
    reread = store.jobs.create("reread", {"library": PAPERS.value}).id
    read_again = replace(live, job_id=reread, reread=True, source_revision="a newer reader")
    store.writer.write([replace(make_draft("a.txt", "walruses sing"), job_id=upload)])
    with pytest.raises(Superseded, match="deleted or replaced after"):
        store.writer.write([read_again])
    store.writer.delete(PAPERS, live.doc_id, grace_s=60)
    with pytest.raises(Superseded, match="deleted or replaced after"):
        store.writer.write(
            [replace(read_again, sha256=make_draft("a.txt", "walruses sing").sha256)]
        )
    assert store.catalog.counts(PAPERS).documents == 0


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("fetch", {"url": "https://example.org/feed", "library": "papers"}),
        ("arxiv", {"arxiv_id": "2401.00001v2"}),
        ("import", {"path": "/a.documind", "library": None}),
        ("bulk", {"library": "papers", "source": "/dump", "name": "dump"}),
        ("samples", {"purge": False}),
    ],
)
def test_a_deletion_keeps_out_what_any_kind_of_job_writes(
    store: IndexStore, kind: str, payload: dict[str, object]
) -> None:
    draft = make_draft("https://example.org/a", "walruses whistle")
    store.writer.write([draft])
    late = replace(draft, job_id=store.jobs.create(kind, payload).id)
    store.writer.delete(PAPERS, draft.doc_id)
    with pytest.raises(Superseded, match="deleted or replaced after"):
        store.writer.write([late])
    other = replace(make_draft("other", "penguins parade"), job_id=late.job_id)
    assert [one.doc_id for one in store.writer.store([late, other])] == [other.doc_id]
    store.writer.flush(PAPERS)
    assert (found(store, "walruses"), found(store, "penguins")) == (set(), {other.doc_id})
    store.writer.delete_all(PAPERS)
    with pytest.raises(Superseded):
        store.writer.store([replace(make_draft("third", "lions sleep"), job_id=late.job_id)])


def test_the_log_of_deletions_ends_with_the_jobs_that_it_keeps_out(store: IndexStore) -> None:
    def logged() -> list[str]:
        return [row.source_key for row in store.database.rows(select(deletions.c.source_key))]

    first, second = make_draft("a.txt", "walruses whistle"), make_draft("b.txt", "lions sleep")
    store.writer.write([first, second])
    job_id = accepted(store, "a.txt")
    store.writer.delete(PAPERS, first.doc_id)
    assert logged() == ["a.txt"]
    put_row(store.jobs, replace(store.jobs.get(job_id), state="done"))
    store.writer.delete(PAPERS, second.doc_id)
    assert logged() == []


def test_the_same_bytes_sent_again_keep_out_what_was_accepted_before(store: IndexStore) -> None:
    live = make_draft("a.txt", "walruses whistle")
    store.writer.write([live])
    older, later = accepted(store, "a.txt"), accepted(store, "a.txt")
    assert store.writer.accept_again(store.catalog.document(PAPERS, live.doc_id), later)
    with pytest.raises(Superseded):
        store.writer.write([replace(make_draft("a.txt", "walruses sing"), job_id=older)])
    before = store.catalog.document(PAPERS, live.doc_id)
    store.writer.delete(PAPERS, live.doc_id)
    assert not store.writer.accept_again(before, accepted(store, "a.txt"))


def test_clearing_a_library_keeps_out_all_that_was_accepted_for_it(store: IndexStore) -> None:
    new, public = accepted(store, "new.txt"), accepted(store, "p.txt", library=Library.PUBLIC)
    paper = store.jobs.create("arxiv", {"arxiv_id": "2401.00001v2"}).id
    store.writer.delete_all(PAPERS)
    for key, job_id in (("new.txt", new), ("2401.00001", paper)):
        with pytest.raises(Superseded):
            store.writer.write([replace(make_draft(key, "words"), job_id=job_id)])
    store.writer.write(
        [replace(make_draft("p.txt", "words", library=Library.PUBLIC), job_id=public)]
    )


def test_within_the_grace_a_deletion_can_be_undone(store: IndexStore) -> None:
    draft = make_draft("a.txt", "walruses whistle loudly", chunks=1)
    store.writer.write([draft])
    embed_all(store)
    result = store.writer.delete(PAPERS, draft.doc_id, grace_s=60)
    assert (result.purged, found(store, "walruses"), store.vectors.count(PAPERS)) == (
        False,
        set(),
        0,
    )
    assert store.catalog.counts(PAPERS).chunks == 0
    assert store.writer.purge_due() == 0
    assert store.writer.restore(PAPERS, draft.doc_id).state == "live"
    assert (found(store, "walruses"), store.vectors.count(PAPERS)) == ({draft.doc_id}, 1)
    assert store.catalog.counts(PAPERS).embedded == 1
    with pytest.raises(NotFound, match="no deleted document"):
        store.writer.restore(PAPERS, draft.doc_id)


def test_after_the_grace_it_is_purged(store: IndexStore, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = make_draft("a.txt", "walruses whistle loudly")
    store.writer.write([draft])
    store.writer.delete(PAPERS, draft.doc_id, grace_s=60)
    later = (
        (datetime.now(UTC) + timedelta(seconds=90))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
    monkeypatch.setattr(writer, "utc_now", lambda: later)
    assert store.writer.purge_due() == 1
    with pytest.raises(NotFound):
        store.writer.restore(PAPERS, draft.doc_id)


def test_ingesting_a_deleted_document_again_revives_it(store: IndexStore) -> None:
    draft = make_draft("a.txt", "walruses whistle loudly", chunks=1)
    store.writer.write([draft])
    store.writer.delete(PAPERS, draft.doc_id, grace_s=60)
    (result,) = store.writer.write([draft])
    assert (result.status, result.revision) == ("indexed", 2)
    assert found(store, "walruses") == {draft.doc_id}
    assert store.catalog.counts(PAPERS).documents == 1


def test_clear_empties_one_library(store: IndexStore) -> None:
    store.writer.write([make_draft(f"{i}.txt", f"walruses {i} whistle") for i in range(5)])
    store.writer.write([make_draft("p.txt", "walruses too", library=Library.PUBLIC, chunks=1)])
    embed_all(store)
    for library in Library:
        store.ledger.record(library, "wiki", [LedgerEntry("1", "7", "indexed")])
    removed = store.writer.delete_all(PAPERS)
    assert (removed.documents, removed.chunks) == (5, 10)
    assert store.catalog.counts(PAPERS).documents == 0
    assert store.catalog.counts(Library.PUBLIC).documents == 1
    assert (found(store, "walruses"), store.vectors.count(PAPERS)) == (set(), 0)
    known = [store.ledger.summary(library).articles for library in (PAPERS, Library.PUBLIC)]
    assert known == [0, 1]  # a source that is indexed again is read again


def test_quotes_in_stored_answers_and_conversations_are_blanked(store: IndexStore) -> None:
    secret, kept = (
        make_draft("a.txt", "walruses whistle loudly", chunks=1),
        make_draft("b.txt", "penguins parade", chunks=1),
    )
    store.writer.write([secret, kept])
    passages = list(store.catalog.passages(PAPERS, [1, 2]).values())
    evidence = tuple(Evidence(n, Hit(passage, 1.0)) for n, passage in enumerate(passages, 1))
    text = "Walruses whistle loudly [1]. Penguins parade [2]."
    answer = Answer(
        "a1", text, "answered", Question("who?", "papers"), "extractive", "e", evidence=evidence
    )
    record = {
        "answer_id": "a1",
        "at": "2026-01-01T00:00:00Z",
        "answer": text,
        "sources": [
            {
                "n": n,
                "doc_id": p.document.doc_id,
                "library": "papers",
                "preview": p.chunk.text,
                "title": p.document.title,
            }
            for n, p in enumerate(passages, 1)
        ],
        "sentences": [
            {
                "text": text[:27],
                "answer_start": 0,
                "answer_end": 28,
                "citations": [{"n": 1, "quote": "walruses whistle loudly"}],
            },
            {
                "text": text[29:],
                "answer_start": 29,
                "answer_end": 49,
                "citations": [{"n": 2, "quote": "penguins parade"}],
            },
        ],
    }
    store.answers.save(answer, record)
    talk = store.conversations.create("t")
    store.conversations.append(talk, [Message("user", "who?"), Message("assistant", text)], "a1")
    assert store.writer.delete(PAPERS, secret.doc_id).quotes_blanked == 1
    left = json.dumps([store.answers.get("a1"), store.conversations.get(talk)]).lower()
    assert "walrus" not in left
    assert "penguins parade" in left
    redacted = str(store.answers.get("a1")["answer"])
    assert redacted[29:] == text[29:]


def quoting(store: IndexStore, text: str) -> Answer:
    """An answer that draws on the first chunk of the store."""
    (passage,) = store.catalog.passages(PAPERS, [1]).values()
    evidence = (Evidence(1, Hit(passage, 1.0)),)
    return Answer(
        "a1", text, "answered", Question("who?", "papers"), "extractive", "e", evidence=evidence
    )


@pytest.mark.parametrize("stored", [True, False])
def test_quotes_leave_a_conversation_whose_stored_answer_is_forgotten(
    store: IndexStore, stored: bool
) -> None:
    secret = make_draft("a.txt", "walruses whistle loudly", chunks=1)
    store.writer.write([secret])
    answer = quoting(store, "Walruses whistle loudly [1].")
    if stored:
        store.answers.save(answer, {"answer_id": "a1", "at": "2026-01-01", "answer": answer.text})
        assert store.answers.delete() == 1
    talk = store.conversations.create("t")
    said = [Message("user", "who?"), Message("assistant", answer.text)]
    store.conversations.append(talk, said, "a1", answer.documents)
    store.conversations.set_summary(talk, "They spoke of walruses.", 2)
    assert store.writer.delete(PAPERS, secret.doc_id).quotes_blanked == 1
    assert "walrus" not in json.dumps(store.conversations.get(talk)).lower()


@pytest.mark.parametrize("again", [False, True])
def test_an_answer_under_way_does_not_keep_a_document_that_is_deleted(
    store: IndexStore, again: bool
) -> None:
    secret = make_draft("a.txt", "walruses whistle loudly", chunks=1)
    store.writer.write([secret])
    answer = quoting(store, "Walruses whistle loudly [1].")
    store.writer.delete(PAPERS, secret.doc_id)
    if again:
        store.writer.write([make_draft("a.txt", "penguins parade", chunks=1)])
    record = {
        "answer_id": "a1",
        "at": "2026-01-01",
        "answer": answer.text,
        "sources": [{"n": 1, "doc_id": secret.doc_id, "preview": "walruses whistle loudly"}],
    }
    store.answers.save(answer, record)
    talk = store.conversations.create("t")
    said = [Message("user", "who?"), Message("assistant", answer.text)]
    store.conversations.append(talk, said, "a1", answer.documents)
    left = json.dumps([store.answers.get("a1"), store.conversations.get(talk)]).lower()
    assert "walrus" not in left


def test_an_answer_keeps_a_document_that_is_replaced_meanwhile(store: IndexStore) -> None:
    store.writer.write([make_draft("a.txt", "walruses whistle loudly", chunks=1)])
    answer = quoting(store, "Walruses whistle loudly [1].")
    store.writer.write([make_draft("a.txt", "penguins parade", chunks=1)])
    talk = store.conversations.create("t")
    store.conversations.append(talk, [Message("assistant", answer.text)], "a1", answer.documents)
    assert answer.text in json.dumps(store.conversations.get(talk))


def test_what_cites_nothing_is_blanked_with_its_source() -> None:
    answer = "| Whale | 30 t |\n\nIt sings. Penguins parade [2]."
    record = {
        "answer": answer,
        "rewritten_query": "how heavy is the whale",
        "sources": [
            {
                "n": 1,
                "doc_id": "a",
                "library": "papers",
                "preview": "The whale weighs 30 t.",
                "title": "Whales",
            },
            {
                "n": 2,
                "doc_id": "b",
                "library": "papers",
                "preview": "penguins parade",
                "title": "Penguins",
            },
        ],
        "sentences": [
            {"text": "It sings.", "answer_start": 18, "answer_end": 27, "citations": []},
            {
                "text": "Penguins parade [2].",
                "answer_start": 28,
                "answer_end": 48,
                "citations": [{"n": 2, "quote": "penguins parade"}],
            },
        ],
    }
    redacted, blanked = redact_answer(record, "papers", "a")
    assert blanked == 0
    shown = str(redacted["answer"])
    assert len(shown) == len(answer)
    assert shown.endswith("Penguins parade [2].")
    assert set(shown[:28]) <= {BLANK, " ", "\n"}
    assert "hale" not in json.dumps(redacted)
    assert "sings" not in json.dumps(redacted)
    untouched, _ = redact_answer(record, "papers", "c")
    assert untouched == record


def test_a_purge_cut_short_is_finished_at_the_next_start(
    options: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = make_draft("a.txt", "walruses whistle loudly")
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([draft])

        def cut(*_: object) -> None:
            raise DiskFull("as if the process ended here")

        monkeypatch.setattr(store.writer, "_purge", cut)
        with pytest.raises(DiskFull):
            store.writer.delete(PAPERS, draft.doc_id)
    with IndexStore(options, vector_store="off") as store, store.database.read_raw() as cursor:
        assert cursor.execute("SELECT count(*) FROM documents").fetchone() == (0,)
        assert cursor.execute("SELECT count(*) FROM chunks").fetchone() == (0,)
        assert cursor.execute("SELECT count(*) FROM revisions").fetchone() == (0,)


def test_originals_are_stored_once_and_half_written_ones_removed(tmp_path: Path) -> None:
    originals = Originals(tmp_path / "o", Steps())
    upload = tmp_path / "upload"
    upload.write_bytes(b"content")
    sha256 = originals.store(b"content")
    assert originals.store(upload) == sha256
    assert not originals.damaged(sha256)
    other = originals.store(b"other")
    (tmp_path / "o" / ".half.part").write_bytes(b"x")
    (tmp_path / "o" / "notes.txt").write_bytes(b"not ours")
    assert originals.delete_parts() == 1
    assert originals.names() == {sha256, other}
    assert (tmp_path / "o" / "notes.txt").exists()
    originals.path(sha256).write_bytes(b"c0ntent")
    assert originals.damaged(sha256)


def test_text_without_original_says_so(store: IndexStore) -> None:
    draft = make_draft("a.txt", "alpha beta")
    store.writer.write([draft, replace(draft, source_key="b", doc_id="0" * 16)])
    with pytest.raises(NoOriginal, match="no original bytes"):
        store.catalog.original(PAPERS, draft.doc_id)


def test_a_deleted_document_that_is_written_again_leaves_no_vectors(store: IndexStore) -> None:
    draft = make_draft(
        "a.txt", "walruses whistle loudly", chunks=2
    )  # found by tests/crash/test_store_machine.py
    store.writer.write([draft])
    embed_all(store)
    store.writer.delete(PAPERS, draft.doc_id, grace_s=600)
    store.writer.write([make_draft("a.txt", "penguins parade past", chunks=2)])
    with store.database.read_raw() as cursor:
        assert cursor.execute("SELECT count(*) FROM vectors").fetchone() == (0,)
    embed_all(store)
    assert store.vectors.count(PAPERS) == 2
    assert store.fsck.run().faults == ()


def test_recognised_words_are_kept_as_long_as_their_original(store: IndexStore) -> None:
    page = PageWords(2, 595.5, 842, ((Word("Straße", 10, 20.5, 60, 30),),))
    sha256 = store.writer.store_original(b"a picture")
    store.writer.keep_words(sha256, [page])
    assert store.writer.page_words(sha256) == []  # no document has it
    drafts = [
        make_draft(key, "walruses whistle", sha256=sha256, has_original=True)
        for key in ("a.pdf", "b.pdf")
    ]
    store.writer.write(drafts)
    store.writer.keep_words(sha256, [PageWords(3, 595.5, 842)])
    store.writer.keep_words(sha256, [PageWords(2, 1, 1)])
    store.writer.keep_words(sha256, [page])
    assert store.writer.page_words(sha256) == [page, PageWords(3, 595.5, 842)]
    assert store.writer.page_words(sha256, [2, 9]) == [page]
    store.writer.delete(PAPERS, drafts[0].doc_id)
    assert len(store.writer.page_words(sha256)) == 2
    store.writer.delete(PAPERS, drafts[1].doc_id)
    assert store.writer.page_words(sha256) == []
