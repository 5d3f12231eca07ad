"""Another model's vectors beside the old ones: filled, swapped, taken back, with writes and deletions in between."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from sqlalchemy import event

from app.core.errors import Conflict, FingerprintMismatch
from app.core.types import Fingerprint, Library
from app.ingest.embedding import VectorBackfill
from app.ingest.options import IngestOptions
from app.storage.catalog import vectors
from app.storage.catalog.schema import BUILD_SHIFT
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.unit.storage.drafts import FINGERPRINT, make_draft

PAPERS = Library.PAPERS
OLD, NEW = HashEmbedder(16, model="old"), HashEmbedder(24, model="new")
OPTIONS = IngestOptions(embed_batch=4)
NEVER = threading.Event()


def made_by(embedder: HashEmbedder) -> Fingerprint:
    identity = embedder.identity
    return replace(
        FINGERPRINT,
        embedding_model=identity.model,
        model_digest=identity.digest,
        dimension=identity.dimension,
    )


def add(store: IndexStore, *names: str) -> None:
    store.writer.write(
        [
            make_draft(name, f"{name} is one thing here. Another of {name} stands there.")
            for name in names
        ]
    )


def embed_live(store: IndexStore, embedder: HashEmbedder = OLD) -> None:
    store.writer.claim(PAPERS, made_by(embedder))
    VectorBackfill(store.writer, embedder, OPTIONS).run(PAPERS)


def fill(
    store: IndexStore, number: int, embedder: HashEmbedder = NEW, limit: int | None = None
) -> int:
    return (
        VectorBackfill(store.writer, embedder, OPTIONS, build=number)
        .run(PAPERS, limit=limit)
        .embedded
    )


def swapped(store: IndexStore, embedder: HashEmbedder = NEW) -> int:
    staged = store.reembedding.begin(PAPERS, made_by(embedder))
    fill(store, staged.number, embedder)
    with store.reembedding.beside(PAPERS, staged.number, NEVER) as complete:
        assert complete
        store.reembedding.swap(PAPERS, staged.number)
    return staged.number


def vectors_by_build(store: IndexStore) -> dict[int, int]:
    with store.database.read_raw() as cursor:
        rows = cursor.execute(
            f"SELECT key >> {BUILD_SHIFT}, count(*) FROM vectors GROUP BY 1"
        ).fetchall()
    return dict(rows)


def own_rank_one(store: IndexStore, embedder: HashEmbedder) -> None:
    """Every live chunk is the nearest to its own text in the live build."""
    documents, _ = store.catalog.documents(PAPERS, limit=100)
    chunks = [
        chunk for document in documents for chunk in store.catalog.chunks(PAPERS, document.doc_id)
    ]
    assert chunks
    for chunk in chunks:
        hits = store.vectors.search(PAPERS, embedder.embed_query(chunk.text), 3)
        best = [hit.chunk_id for hit in hits if hit.score <= hits[0].score + 1e-5]
        assert chunk.chunk_id in best, chunk.text
    assert store.vectors.count(PAPERS) == len(chunks) == store.catalog.counts(PAPERS).embedded


def test_the_old_build_serves_until_the_swap_and_both_are_kept(store: IndexStore) -> None:
    add(store, "walrus", "heron", "otter")
    embed_live(store)
    staged = store.reembedding.begin(PAPERS, made_by(NEW))
    assert fill(store, staged.number) == 6
    with store.reembedding.beside(PAPERS, staged.number, NEVER):
        own_rank_one(store, OLD)
        beside = store.reembedding.view(staged.number)
        text = store.catalog.chunks_by_id(PAPERS, [1])[0].text
        assert beside.search(PAPERS, NEW.embed_query(text), 1)[0].chunk_id == 1
        store.reembedding.swap(PAPERS, staged.number)
        own_rank_one(store, NEW)
    assert set(vectors_by_build(store).values()) == {6}
    assert store.catalog.fingerprint(PAPERS) == made_by(NEW)
    assert store.fsck.run().faults == ()


def test_writes_deletions_and_replacements_meanwhile_reach_both_builds(store: IndexStore) -> None:
    add(store, "walrus", "heron", "otter", "lynx")
    embed_live(store)
    staged = store.reembedding.begin(PAPERS, made_by(NEW))
    assert fill(store, staged.number, limit=3) == 3
    add(store, "early")
    embed_live(store)
    fill(store, staged.number)
    with store.reembedding.beside(PAPERS, staged.number, NEVER):
        add(store, "late")
        store.writer.write(
            [make_draft("heron", "heron has other words now. They stand in two parts.")]
        )
        store.writer.delete(PAPERS, store.catalog.find(PAPERS, "otter").doc_id)
        embed_live(store)
        assert fill(store, staged.number) == 4
        own_rank_one(store, OLD)
        store.reembedding.swap(PAPERS, staged.number)
    own_rank_one(store, NEW)
    assert vectors_by_build(store) == {1: 10, staged.number: 10}
    assert store.fsck.run().faults == ()


def test_it_goes_on_after_a_restart_and_embeds_nothing_twice(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        add(store, "walrus", "heron", "otter")
        embed_live(store)
        begun = store.reembedding.begin(PAPERS, made_by(NEW))
        fill(store, begun.number, limit=4)
    with IndexStore(options, vector_store="off") as store:
        own_rank_one(store, OLD)
        staged = store.reembedding.begin(PAPERS, made_by(NEW))
        assert (staged.number, store.reembedding.missing(PAPERS, staged.number)) == (
            begun.number,
            2,
        )
        assert fill(store, staged.number) == 2
        with store.reembedding.beside(PAPERS, staged.number, NEVER):
            store.reembedding.swap(PAPERS, staged.number)
    with IndexStore(options, vector_store="off") as store:
        own_rank_one(store, NEW)


def test_one_step_back_and_forth_embeds_nothing(store: IndexStore) -> None:
    add(store, "walrus", "heron")
    embed_live(store)
    swapped(store)
    add(store, "late")
    live, previous = store.reembedding.revert(PAPERS, NEVER)
    assert (live.fingerprint, previous.fingerprint) == (made_by(NEW), made_by(OLD))
    counts = store.catalog.counts(PAPERS)
    assert (counts.chunks, counts.embedded, store.vectors.count(PAPERS)) == (6, 4, 4)
    assert store.lexical.search(PAPERS, "late", 3)
    embed_live(store)
    own_rank_one(store, OLD)
    store.reembedding.revert(PAPERS, NEVER)
    assert store.catalog.fingerprint(PAPERS) == made_by(NEW)
    assert store.fsck.run().faults == ()


def test_what_was_embedded_for_one_build_is_refused_by_the_other(store: IndexStore) -> None:
    add(store, "walrus")
    embed_live(store)
    twin = HashEmbedder(
        16, model="twin"
    )  # of the same dimension: nothing but the build tells them apart
    old = store.reembedding.view(1)
    number = swapped(store, twin)
    with pytest.raises(FingerprintMismatch, match="re-embedded"):
        old.search(PAPERS, OLD.embed_query("walrus"), 1)
    with pytest.raises(FingerprintMismatch, match="re-embedded"):
        store.writer.write_vectors(PAPERS, [1], OLD.embed_passages(["walrus"]), 1)
    with pytest.raises(FingerprintMismatch, match="not being filled"):
        store.writer.pending_vectors(PAPERS, 1, build=1)
    with pytest.raises(FingerprintMismatch, match="24 dimensions"):
        store.vectors.search(PAPERS, NEW.embed_query("walrus"), 1)
    assert set(old.fetch(PAPERS, [1])) == {1}  # a search in flight still completes its distances
    assert store.reembedding.view(number).count(PAPERS) == 2


def test_a_build_that_was_just_claimed_is_empty_not_gone(store: IndexStore) -> None:
    add(store, "walrus")
    store.writer.claim(PAPERS, made_by(OLD))
    assert store.reembedding.view(1).search(PAPERS, OLD.embed_query("walrus"), 1) == []


def test_the_same_again_is_refused_and_a_third_removes_the_first(store: IndexStore) -> None:
    add(store, "walrus", "heron")
    embed_live(store)
    with pytest.raises(Conflict, match="already"):
        store.reembedding.begin(PAPERS, made_by(OLD))
    number = swapped(store)
    third = store.reembedding.begin(PAPERS, made_by(HashEmbedder(32, model="third")))
    assert vectors_by_build(store) == {number: 4}
    fill(store, third.number, HashEmbedder(32, model="third"), limit=2)
    again = store.reembedding.begin(PAPERS, made_by(HashEmbedder(8, model="fourth")))
    assert vectors_by_build(store) == {number: 4}
    assert store.reembedding.missing(PAPERS, again.number) == 4
    with pytest.raises(Conflict, match="no previous"):
        store.reembedding.revert(PAPERS, NEVER)


def test_previous_vectors_of_the_wanted_kind_are_used_again(store: IndexStore) -> None:
    add(store, "walrus")
    embed_live(store)
    swapped(store)
    add(store, "late")
    back = store.reembedding.begin(PAPERS, made_by(OLD))
    assert (back.number, store.reembedding.missing(PAPERS, back.number)) == (1, 2)


def test_another_chunker_copies_the_vectors(store: IndexStore) -> None:
    add(store, "walrus", "heron")
    embed_live(store)
    staged = store.reembedding.begin(PAPERS, replace(made_by(OLD), chunker="chunker-2"))
    assert store.reembedding.missing(PAPERS, staged.number) == 0


def test_discarding_removes_what_does_not_serve(store: IndexStore) -> None:
    add(store, "walrus", "heron")
    embed_live(store)
    number = swapped(store)
    assert store.reembedding.delete_others(PAPERS) == 4
    assert vectors_by_build(store) == {number: 4}
    own_rank_one(store, NEW)
    staged = store.reembedding.begin(PAPERS, made_by(OLD))
    fill(store, staged.number, OLD, limit=2)
    assert store.reembedding.delete_others(PAPERS) == 2
    assert store.builds.of(PAPERS, "staged") is None


def test_a_document_restored_behind_the_frontier_is_found_pending(store: IndexStore) -> None:
    add(store, "walrus", "heron", "otter")
    embed_live(store)
    gone = store.catalog.find(PAPERS, "walrus").doc_id
    store.writer.delete(PAPERS, gone, grace_s=3600)
    staged = store.reembedding.begin(PAPERS, made_by(NEW))
    assert fill(store, staged.number, limit=3) == 3
    store.writer.restore(PAPERS, gone)
    assert fill(store, staged.number) == 3
    assert store.reembedding.missing(PAPERS, staged.number) == 0


def test_a_swap_that_fails_leaves_the_old_build(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, "walrus")
    embed_live(store)
    staged = store.reembedding.begin(PAPERS, made_by(NEW))
    fill(store, staged.number)
    marks = store.projector.watermarks()

    def full(*_: object) -> None:
        raise OSError("no space")

    with store.reembedding.beside(PAPERS, staged.number, NEVER):
        with monkeypatch.context() as patched:
            patched.setattr("app.storage.maintenance.reembedding.make_live", full)
            with pytest.raises(OSError, match="no space"):
                store.reembedding.swap(PAPERS, staged.number)
        own_rank_one(store, OLD)
        assert store.projector.watermarks() == marks
    with store.reembedding.beside(PAPERS, staged.number, NEVER):
        store.reembedding.swap(PAPERS, staged.number)
    own_rank_one(store, NEW)


def test_a_swap_writes_the_documents_whose_count_differs_and_no_others(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of any size is switched by a short transaction."""
    add(store, "walrus", "heron", "otter", "bear", "seal", "orca")
    embed_live(store)
    staged = store.reembedding.begin(PAPERS, made_by(NEW))
    fill(store, staged.number)
    monkeypatch.setattr(vectors, "COUNTED", 2)
    found, written = store.builds.differing, list[int]()

    def count(_: object, cursor: object, statement: str, *__: object) -> None:
        if statement.startswith("UPDATE documents SET embedded"):
            written.append(cursor.rowcount)  # type: ignore[attr-defined]

    def meanwhile(library: Library, number: int) -> set[int]:
        """Let others write, delete and embed after the counts were compared."""
        differing = found(library, number)
        assert differing == set()
        add(store, "newt", "walrus")
        store.writer.delete(PAPERS, store.catalog.find(PAPERS, "heron").doc_id)
        fill(store, number)
        add(store, "eel")
        event.listen(store.database._writer, "after_cursor_execute", count)
        return differing

    monkeypatch.setattr(store.builds, "differing", meanwhile)
    with store.reembedding.beside(PAPERS, staged.number, NEVER):
        store.reembedding.swap(PAPERS, staged.number)
    assert 0 < sum(written) <= 3
    counts = store.catalog.counts(PAPERS)
    assert (counts.documents, counts.embedded) == (7, counts.chunks - 2)
    assert store.fsck.run().sound


def test_a_purge_meanwhile_leaves_no_rows_of_deleted_documents(store: IndexStore) -> None:
    add(store, "walrus", "heron")
    embed_live(store)
    number = swapped(store)
    store.writer.delete(PAPERS, store.catalog.find(PAPERS, "walrus").doc_id)
    store.purger.run()
    assert vectors_by_build(store) == {1: 2, number: 2}
    own_rank_one(store, NEW)
