"""Writes: what is acknowledged is there, found, counted, and survives."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import select

from app.core.errors import (
    Conflict,
    DiskFull,
    FingerprintMismatch,
    InOtherLibrary,
    InvalidInput,
    NotFound,
)
from app.core.types import Fingerprint, Heading, Library, Metadata
from app.storage.catalog.revisions import RevisionBatch
from app.storage.catalog.rows import Build
from app.storage.catalog.schema import BUILD_SHIFT, vectors
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.job_queue import put_row
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows

PAPERS, PUBLIC = Library.PAPERS, Library.PUBLIC


def found(store: IndexStore, query: str, library: Library = PAPERS) -> set[str]:
    """Documents that a lexical search shows."""
    hits = store.lexical.search(library, query, 50)
    return {
        p.document.doc_id
        for p in store.catalog.passages(library, [hit.chunk_id for hit in hits]).values()
    }


def embed_all(store: IndexStore, library: Library = PAPERS, seed: int = 0) -> int:
    """Give every pending chunk a vector and apply."""
    store.writer.claim(library, FINGERPRINT)
    pending = store.writer.pending_vectors(library, 1000)
    store.writer.write_vectors(
        library, [chunk.chunk_id for chunk in pending], unit_rows(len(pending), seed)
    )
    store.writer.apply(library)
    return len(pending)


def test_each_revision_keeps_its_headings(store: IndexStore) -> None:
    first = Heading(0, 5, 1, "Birds"), Heading(8, 21, 2, "Penguins of")
    text = "Birds\n\n\nPenguins \n of\n\nThey parade."
    draft = make_draft("a.md", text, headings=first)
    plain = make_draft("plain.txt", "nothing stands above this")
    store.writer.write([draft, plain])
    second = make_draft("a.md", "Whales", headings=(Heading(0, 6, 3, "Whales"),))
    store.writer.write([second])
    kept = store.catalog.outline(PAPERS, draft.doc_id, 1)
    assert kept == first
    assert store.catalog.outline(PAPERS, draft.doc_id) == second.headings
    assert store.catalog.outline(PAPERS, plain.doc_id) == ()
    with pytest.raises(NotFound):
        store.catalog.outline(PAPERS, draft.doc_id, 3)
    asked = [(draft.doc_id, 1), (draft.doc_id, 3), (plain.doc_id, 1), ("unknown", 1)]
    assert store.catalog.outlines(PAPERS, asked) == {(draft.doc_id, 1): kept}
    assert store.catalog.outlines(PUBLIC, asked) == store.catalog.outlines(PAPERS, []) == {}


def test_acknowledged_is_found_with_exact_text(store: IndexStore) -> None:
    draft = make_draft("a.txt", "Zebras graze at dawn. Lions sleep at noon.", chunks=3)
    (result,) = store.writer.write([draft])
    assert (result.status, result.revision, result.duplicate_of) == ("indexed", 1, None)
    assert found(store, "zebra") == {draft.doc_id}
    chunks = store.catalog.chunks(PAPERS, draft.doc_id)
    assert [chunk.text for chunk in chunks] == [
        draft.text[span.start : span.end] for span in draft.chunks
    ]
    assert store.catalog.text(PAPERS, draft.doc_id, 0, 6).text == "Zebras"


def test_same_bytes_under_same_key_are_unchanged(store: IndexStore) -> None:
    draft = make_draft("a.txt", "one two three")
    store.writer.write([draft])
    assert store.writer.write([draft])[0].status == "unchanged"
    assert store.writer.write([replace(draft, source_revision="7")])[0].status == "replaced"
    assert store.catalog.counts(PAPERS).documents == 1


def test_replacing_shows_the_new_revision_and_keeps_the_old_text(store: IndexStore) -> None:
    store.writer.write([make_draft("a.txt", "walruses whistle")])
    embed_all(store)
    draft = make_draft("a.txt", "penguins parade along the shore", chunks=3)
    assert store.writer.write([draft])[0].status == "replaced"
    assert found(store, "walrus") == set()
    assert found(store, "penguin") == {draft.doc_id}
    assert store.catalog.text(PAPERS, draft.doc_id, revision=1).text == "walruses whistle"
    assert [c.text for c in store.catalog.chunks(PAPERS, draft.doc_id, revision=1)] == [
        "walruses",
        " whistle",
    ]
    counts = store.catalog.counts(PAPERS)
    assert (counts.documents, counts.chunks, counts.embedded) == (1, 3, 0)
    store.writer.apply(PAPERS)
    assert store.vectors.count(PAPERS) == 0


def test_a_search_in_flight_still_joins_the_revision_it_found(store: IndexStore) -> None:
    store.writer.write([make_draft("a.txt", "walruses whistle")])
    in_flight = [hit.chunk_id for hit in store.lexical.search(PAPERS, "walrus", 5)]
    store.writer.write([make_draft("a.txt", "penguins parade")])
    assert [p.chunk.text for p in store.catalog.passages(PAPERS, in_flight).values()] == [
        "walruses"
    ]


def test_same_bytes_under_another_key_are_a_duplicate_until_the_first_goes(
    store: IndexStore,
) -> None:
    first, second, third = (
        make_draft(key, "same words here") for key in ("a.txt", "b.txt", "c.txt")
    )
    results = store.writer.write([first, second, third])
    assert [r.duplicate_of for r in results] == [None, first.doc_id, first.doc_id]
    store.writer.delete(PAPERS, first.doc_id)
    assert store.catalog.document(PAPERS, second.doc_id).duplicate_of is None
    assert store.catalog.document(PAPERS, third.doc_id).duplicate_of == second.doc_id


def test_replacing_the_first_frees_its_duplicates(store: IndexStore) -> None:
    first, second = make_draft("a.txt", "same words here"), make_draft("b.txt", "same words here")
    store.writer.write([first, second])
    store.writer.write([make_draft("a.txt", "now different")])
    assert store.catalog.document(PAPERS, second.doc_id).duplicate_of is None


def test_a_document_twice_in_one_batch_ends_as_the_last(store: IndexStore) -> None:
    results = store.writer.write(
        [
            make_draft("a.txt", "alpha alpha"),
            make_draft("b.txt", "beta"),
            make_draft("a.txt", "gamma gamma"),
        ]
    )
    assert [r.revision for r in results] == [1, 1, 2]
    assert found(store, "alpha") == set()
    assert found(store, "gamma") == {results[2].doc_id}
    assert store.catalog.counts(PAPERS).documents == 2


def test_a_source_key_cannot_change_its_document(store: IndexStore) -> None:
    store.writer.write([make_draft("a.txt", "alpha")])
    with pytest.raises(Conflict, match="belongs to document"):
        store.writer.write([replace(make_draft("a.txt", "beta"), doc_id="sample_a")])


def test_spans_outside_the_text_are_refused(store: IndexStore) -> None:
    draft = make_draft("a.txt", "alpha beta", chunks=1)
    with pytest.raises(InvalidInput, match="outside"):
        store.writer.write([replace(draft, text="alpha")])


def test_libraries_do_not_see_each_other(store: IndexStore) -> None:
    paper = make_draft("a.txt", "walrus one", chunks=1)
    store.writer.write([paper, make_draft("a.txt", "walrus two", library=PUBLIC, chunks=1)])
    assert found(store, "walrus") == {paper.doc_id}
    with pytest.raises(InOtherLibrary, match="list its documents first") as told:
        store.catalog.document(PUBLIC, paper.doc_id)
    assert "library 'papers' has it" in told.value.elsewhere


def test_words_that_could_not_be_brought_follow_with_the_next_write(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.writer.write([make_draft("a.txt", "alpha")])

    def full(*_: object, **__: object) -> None:
        raise DiskFull("no space")

    monkeypatch.setattr(store.projector.words[PAPERS], "_put", full)
    with pytest.raises(DiskFull):
        store.writer.write([make_draft("b.txt", "beta", chunks=1)])
    monkeypatch.undo()
    assert store.catalog.counts(PAPERS).documents == 2
    assert found(store, "beta") == set()
    store.writer.write([make_draft("c.txt", "gamma", chunks=1)])
    assert (len(found(store, "beta")), len(found(store, "gamma"))) == (1, 1)


def test_words_queued_before_their_rows_failed_are_dropped(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise DiskFull("no space")

    monkeypatch.setattr(RevisionBatch, "_insert", full)
    with pytest.raises(DiskFull):
        store.writer.write([make_draft("b.txt", "beta", chunks=1)])
    monkeypatch.undo()
    store.writer.write([make_draft("c.txt", "gamma", chunks=1)])
    assert found(store, "beta") == set()
    assert store.lexical.document_frequencies(PAPERS, ["beta", "gamma"]) == (
        1,
        {"beta": 0, "gamma": 1},
    )


def test_an_unacknowledged_commit_is_searchable_after_the_next_write(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFull("no space")

    monkeypatch.setattr(store.projector.words[PAPERS], "_commit", full)
    with pytest.raises(DiskFull):
        store.writer.write([make_draft("b.txt", "beta", chunks=1)])
    monkeypatch.undo()
    assert store.writer.write([make_draft("b.txt", "beta", chunks=1)])[0].status == "unchanged"
    assert found(store, "beta") != set()


def test_vectors_wait_in_catalog_order_and_count(store: IndexStore) -> None:
    store.writer.write(
        [
            make_draft("short.txt", "tiny text"),
            make_draft("long.txt", "a much longer text than the other one"),
        ]
    )
    ordered = [chunk.doc_id for chunk in store.writer.pending_vectors(PAPERS, 10)]
    longest = [chunk.doc_id for chunk in store.writer.pending_vectors(PAPERS, 10, "longest")]
    assert ordered == list(reversed(longest))
    assert len(store.writer.pending_vectors(PAPERS, 3)) == 3
    assert embed_all(store) == 4
    assert store.writer.pending_vectors(PAPERS, 10) == []
    assert store.catalog.counts(PAPERS).embedded == 4
    assert store.catalog.document(PAPERS, ordered[0]).embedded == 2
    assert store.vectors.count(PAPERS) == 4


def _no_titles(_: str, before: str) -> str:
    return before


def test_the_most_linked_wait_first_and_a_part_of_a_dump_takes_no_links_away(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["wiki:1", "wiki:2", "wiki:3", "wikidata:4", "other:5"]
    store.writer.write([make_draft(name, f"text of {name}", chunks=1) for name in names])
    keys = {
        name: document.doc_id for name in names if (document := store.writer.current(PAPERS, name))
    }
    monkeypatch.setattr("app.storage.writer._LINKS_PAGE", 2)
    asked: list[str] = []

    def ask(whole: dict[str, int], name: str) -> int:
        asked.append(name)
        return whole[name]

    def count(whole: dict[str, int]) -> None:
        after: str | None = ""
        while after is not None:
            after = store.writer.write_links(
                PAPERS, "wiki:", lambda name: ask(whole, name), _no_titles, after
            )

    count({"wiki:1": 1, "wiki:2": 7, "wiki:3": 3})
    assert asked == ["wiki:1", "wiki:2", "wiki:3"]
    linked = [chunk.doc_id for chunk in store.writer.pending_vectors(PAPERS, 9, "linked")]
    assert linked == [
        keys[name] for name in ("wiki:2", "wiki:3", "wiki:1", "wikidata:4", "other:5")
    ]
    count({"wiki:1": 4, "wiki:2": 0, "wiki:3": 3})
    linked = [chunk.doc_id for chunk in store.writer.pending_vectors(PAPERS, 9, "linked")]
    assert linked == [
        keys[name] for name in ("wiki:2", "wiki:1", "wiki:3", "wikidata:4", "other:5")
    ]


def test_every_vector_finds_its_own_chunk(store: IndexStore) -> None:
    store.writer.write([make_draft(f"{i}.txt", f"text number {i} of many") for i in range(10)])
    embed_all(store)
    rows = unit_rows(20)
    for i in range(20):
        (best,) = store.vectors.search(PAPERS, rows[i], 1)
        fetched = store.vectors.fetch(PAPERS, [best.chunk_id])[best.chunk_id]
        assert best.score < 1e-3
        np.testing.assert_allclose(fetched, rows[i], atol=2e-3)


def test_vectors_written_while_rows_catch_up_do_not_make_all_of_them_anew(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store.writer.write(
        [make_draft(name, f"{name} walruses whistle", chunks=1) for name in ("ann", "bea", "cid")]
    )
    store.writer.claim(PAPERS, FINGERPRINT)
    rows = unit_rows(3)
    embedded = store.loader.embedded

    def others_write(build: Build) -> int:
        counted = embedded(build)
        if pending := store.writer.pending_vectors(PAPERS, 1):
            store.writer.write_vectors(PAPERS, [pending[0].chunk_id], rows[counted : counted + 1])
        return counted

    store.writer.write_vectors(PAPERS, [1], rows[:1])
    monkeypatch.setattr(store.loader, "embedded", others_write)
    store.writer.apply(PAPERS)
    assert store.vectors.count(PAPERS) == 3
    assert [store.vectors.search(PAPERS, row, 1)[0].chunk_id for row in rows] == [1, 2, 3]
    assert "making them again" not in caplog.text


def test_writing_a_vector_again_counts_once(store: IndexStore) -> None:
    store.writer.write([make_draft("a.txt", "alpha beta", chunks=1)])
    embed_all(store)
    (chunk,) = store.catalog.chunks(PAPERS, make_draft("a.txt", "").doc_id)
    store.writer.write_vectors(PAPERS, [chunk.chunk_id], unit_rows(1, seed=5))
    store.writer.apply(PAPERS)
    assert (store.catalog.counts(PAPERS).embedded, store.vectors.count(PAPERS)) == (1, 1)


def test_foreign_vectors_are_refused_with_the_cure(store: IndexStore) -> None:
    store.writer.write([make_draft("a.txt", "alpha beta", chunks=1)])
    with pytest.raises(FingerprintMismatch, match="claim"):
        store.writer.write_vectors(PAPERS, [1], unit_rows(1))
    embed_all(store)
    with pytest.raises(FingerprintMismatch, match="documind reembed"):
        store.writer.claim(PAPERS, replace(FINGERPRINT, embedding_model="other"))
    with pytest.raises(FingerprintMismatch, match="documind reembed"):
        store.writer.write_vectors(PAPERS, [1], unit_rows(1, dimension=8))
    with pytest.raises(InvalidInput, match="norm 1"):
        store.writer.write_vectors(PAPERS, [1], unit_rows(1) * 3)


def test_an_empty_library_takes_another_fingerprint(store: IndexStore) -> None:
    store.writer.claim(PAPERS, FINGERPRINT)
    other = Fingerprint("other", "d", 8, "", "", "c", "a")
    store.writer.claim(PAPERS, other)
    assert store.catalog.fingerprint(PAPERS) == other


def test_correction_is_found_and_outlives_a_new_revision(store: IndexStore) -> None:
    draft = make_draft("a.txt", "alpha beta", title="Wrong")
    store.writer.write([draft])
    corrected = store.writer.correct(
        PAPERS, draft.doc_id, Metadata("Hippopotamus facts", ("Ann Li",), 1999)
    )
    assert (corrected.title, corrected.authors, corrected.year) == (
        "Hippopotamus facts",
        ("Ann Li",),
        1999,
    )
    assert found(store, "hippopotamus") == {draft.doc_id}
    store.writer.write([make_draft("a.txt", "gamma delta", title="Wrong again")])
    assert store.catalog.document(PAPERS, draft.doc_id).title == "Hippopotamus facts"
    assert found(store, "hippopotamus") == {draft.doc_id}


def test_everything_is_there_after_reopening(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft("a.txt", "alpha beta"), make_draft("b.txt", "gamma delta")])
        embed_all(store)
        before = store.vectors.search(PAPERS, unit_rows(1)[0], 4)
    with IndexStore(options, vector_store="off") as store:
        assert found(store, "alpha") == {make_draft("a.txt", "").doc_id}
        assert store.vectors.search(PAPERS, unit_rows(1)[0], 4) == before
        assert store.catalog.counts(PAPERS).chunks == 4


def test_writers_and_readers_at_once(store: IndexStore) -> None:
    errors: list[BaseException] = []
    missing: list[str] = []
    store.writer.write([make_draft("a.txt", "walrus revision zero", chunks=1)])
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                if not found(store, "walrus"):
                    missing.append("walrus")
        except BaseException as exc:
            errors.append(exc)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(8):
        store.writer.write(
            [make_draft("a.txt", f"walrus revision {i}", chunks=1), make_draft(f"{i}.txt", "other")]
        )
    done.set()
    for reader in readers:
        reader.join()
    assert (errors, missing) == ([], [])


def test_what_is_pending_can_be_asked_for_some_documents(store: IndexStore) -> None:
    drafts = [
        make_draft(name, f"{name} text of some length") for name in ("a.txt", "b.txt", "c.txt")
    ]
    store.writer.write(drafts)
    wanted = [drafts[2].doc_id, drafts[0].doc_id, "not-there"]
    assert {
        chunk.doc_id for chunk in store.writer.pending_vectors(PAPERS, 100, doc_ids=wanted)
    } == set(wanted[:2])
    assert store.writer.pending_vectors(PAPERS, 100, doc_ids=[]) == []
    embed_all(store)
    assert store.writer.pending_vectors(PAPERS, 100, doc_ids=wanted) == []


def test_originals_of_waiting_jobs_outlive_a_restart_and_orphans_do_not(
    options: IndexOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.storage.catalog.uploads.AT_REST_S", 0)
    with IndexStore(options, vector_store="off") as store:
        wanted, orphan = (
            store.writer.store_original(b"accepted"),
            store.writer.store_original(b"forgotten"),
        )
        job = store.jobs.create(
            "ingest", {"library": "papers", "files": [{"filename": "a", "sha256": wanted}]}
        )
        store.jobs.create("backfill", {"library": "papers"})
        store.jobs.create("bulk", {"files": ["a path"]})
    with IndexStore(options, vector_store="off") as store:
        assert store.writer.original_path(wanted).read_bytes() == b"accepted"
        assert not store.writer.original_path(orphan).exists()
        put_row(store.jobs, replace(job, state="failed"))
    with IndexStore(options, vector_store="off") as store:
        assert not store.writer.original_path(wanted).exists()


def test_another_chunker_is_refused_with_what_differs_and_the_cure(store: IndexStore) -> None:
    store.writer.write([make_draft("a.txt", "walruses whistle")])
    embed_all(store)
    with pytest.raises(
        FingerprintMismatch,
        match=r"made with chunker .*, now it is '9:1:0'.* documind reembed --library papers",
    ):
        store.writer.claim(PAPERS, replace(FINGERPRINT, chunker="9:1:0"))


def stored_rows(store: IndexStore, doc_id: str) -> dict[str, bytes]:
    """The vectors of a document's live revision by the text of chunks."""
    held = dict(store.database.rows(select(vectors.c.key, vectors.c.vector)))
    by_chunk = {key & ((1 << BUILD_SHIFT) - 1): vector for key, vector in held.items()}
    return {
        chunk.text: by_chunk[chunk.chunk_id]
        for chunk in store.catalog.chunks(PAPERS, doc_id)
        if chunk.chunk_id in by_chunk
    }


def test_chunks_with_the_text_of_the_revision_before_keep_its_vectors(store: IndexStore) -> None:
    first = make_draft("a.txt", "Zebras graze at dawn. Lions rest at noon. Owls hunt.", chunks=3)
    store.writer.write([first, make_draft("b.txt", "Zebras graze at dawn.", chunks=1)])
    assert embed_all(store) == 4
    before = stored_rows(store, first.doc_id)
    moved = [span._replace(section="Birds") for span in first.chunks]
    text = f"{first.text} By night."
    last = first.chunks[2]._replace(end=len(text))
    again = replace(first, text=text, sha256="another", chunks=(*moved[:2], last))
    (result,) = store.writer.write([again])
    assert (result.status, result.revision) == ("replaced", 2)
    (pending,) = store.writer.pending_vectors(PAPERS, 10)
    assert pending.text.endswith("By night.")
    counts = store.catalog.counts(PAPERS)
    assert (counts.chunks, counts.embedded, store.vectors.count(PAPERS)) == (4, 3, 3)
    assert store.catalog.document(PAPERS, first.doc_id).embedded == 2
    now = stored_rows(store, first.doc_id)
    assert len(now) == 2
    assert now == {text: before[text] for text in now}
    assert embed_all(store) == 1
    assert store.catalog.counts(PAPERS).embedded == store.vectors.count(PAPERS) == 4
