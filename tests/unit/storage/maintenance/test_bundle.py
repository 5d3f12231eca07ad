"""A library travels as one file: nothing embedded on arrival, nothing different, nothing damaged accepted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import DiskFull, FingerprintMismatch, IndexDamaged, InvalidInput
from app.core.types import (
    Correction,
    DocumentDraft,
    Filters,
    Heading,
    Labels,
    Library,
    PassageCode,
    WriteResult,
)
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows
from tests.unit.storage.test_writer import embed_all

PAPERS, PUBLIC = Library.PAPERS, Library.PUBLIC
N = 250
CORRECTIONS = (
    Correction(0, "waIrus", "walrus", "", " 0 whistles", "ann", "2026-11-26T07:00:00Z"),
    Correction(40, "gone", "lost", "", "", "ann", "2026-11-26T07:00:00Z", placed=False),
)
"""Of the first document."""


@pytest.fixture
def source(store: IndexStore) -> IndexStore:
    """Documents over several blocks, one with an original, one deleted, the last not embedded."""
    sha256 = store.writer.store_original(b"original bytes")
    drafts = [
        make_draft(
            f"{i}.txt",
            f"walrus {i} whistles {i % 7} times in wind {i % 3} übrigens",
            year=1990 + i % 9,
            authors=("Ann Li",),
            labels=Labels((f"tag {i % 3}",), {"n": i, "day": "2026-02-01"}),
        )
        for i in range(N)
    ]
    headings = Heading(0, 6, 1, "walrus"), Heading(9, 17, 2, "whistles")
    first = replace(
        drafts[0],
        has_original=True,
        sha256=sha256,
        headings=headings,
        corrections=CORRECTIONS,
        flags=("unplaced:1",),
    )
    store.writer.write([first, *drafts[1:]])
    embed_all(store)
    store.writer.delete(PAPERS, drafts[5].doc_id)
    store.writer.write([make_draft("late.txt", "not embedded yet", source_revision="r7")])
    return store


@pytest.fixture
def target(tmp_path: Path) -> Iterator[IndexStore]:
    path = tmp_path / "target"
    with IndexStore(
        IndexOptions(path, path / "chroma", tantivy_threads=1), vector_store="off"
    ) as opened:
        yield opened


def named(store: IndexStore, ids: list[int]) -> list[tuple[str, int]]:
    """Chunks by what they are, as ids differ between stores."""
    return [(chunk.doc_id, chunk.ordinal) for chunk in store.catalog.chunks_by_id(PAPERS, ids)]


def test_codes_travel_with_their_chunks(
    source: IndexStore, target: IndexStore, tmp_path: Path
) -> None:
    """Those that are there: every second chunk, with one to three sentences and one to five tokens."""
    chunks = source.codes.pending_codes(PAPERS, 2 * N)[::2]
    made = {
        c.chunk_id: PassageCode(
            bytes([i % 100]) * 384 * (1 + i % 3), bytes([i % 200]) * 16 * (1 + i % 5)
        )
        for i, c in enumerate(chunks)
    }
    source.codes.write_codes(made)
    source.bundler.export(PAPERS, tmp_path / "papers.documind")
    target.bundler.load(tmp_path / "papers.documind")
    theirs = {
        (c.doc_id, c.ordinal): c.chunk_id
        for d, _ in [target.catalog.documents(PAPERS, limit=500)]
        for x in d
        for c in target.catalog.chunks(PAPERS, x.doc_id)
    }
    found = target.codes.codes(list(theirs.values()))
    assert {theirs[c.doc_id, c.ordinal]: made[c.chunk_id] for c in chunks} == found


def test_results_are_identical_after_the_journey(
    source: IndexStore, target: IndexStore, tmp_path: Path
) -> None:
    exported = source.bundler.export(PAPERS, tmp_path / "papers.documind")
    assert (exported.documents, exported.chunks, exported.vectors, exported.originals) == (
        N,
        2 * N,
        2 * (N - 1),
        1,
    )
    assert target.bundler.load(tmp_path / "papers.documind") == exported
    assert target.catalog.fingerprint(PAPERS) == FINGERPRINT
    assert target.catalog.counts(PAPERS) == source.catalog.counts(PAPERS)
    source.purger.run()  # until then tantivy's idf counts the deleted document
    for query in unit_rows(40, seed=3):
        ours, theirs = (store.vectors.search(PAPERS, query, 10) for store in (source, target))
        assert named(source, [hit.chunk_id for hit in ours]) == named(
            target, [hit.chunk_id for hit in theirs]
        )
        assert [hit.score for hit in ours] == pytest.approx(
            [hit.score for hit in theirs], abs=1e-6
        )  # sums in another order
    for text in ("walrus 3", "wind 2 times", "übrigens"):
        # All of them: where many score the same, which ten come first depends on how the segments
        # were merged.
        ours, theirs = (store.lexical.search(PAPERS, text, 4 * N) for store in (source, target))
        assert named(source, [hit.chunk_id for hit in ours]) == named(
            target, [hit.chunk_id for hit in theirs]
        )
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in theirs], rel=1e-5)
    first = make_draft("0.txt", "").doc_id
    assert target.catalog.original(PAPERS, first).read_bytes() == b"original bytes"
    arrived = target.catalog.document(PAPERS, first)
    assert (arrived.authors, arrived.tags) == (("Ann Li",), ("tag 0",))
    assert arrived.metadata == {"n": 0, "day": "2026-02-01"}
    tagged = Filters(tags=("TAG 1",))
    hits = target.lexical.search(PAPERS, "walrus", N, tagged)
    assert len(hits) == len(source.lexical.search(PAPERS, "walrus", N, tagged)) > 0
    headings = Heading(0, 6, 1, "walrus"), Heading(9, 17, 2, "whistles")
    assert target.catalog.outline(PAPERS, first) == headings
    assert target.catalog.corrections(PAPERS, first) == CORRECTIONS
    assert arrived.flags == ("unplaced:1",)
    assert target.fsck.run().faults == ()


def test_an_interrupted_import_goes_on(
    source: IndexStore, target: IndexStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.bundler.export(PAPERS, tmp_path / "b")
    whole, batches = target.writer.store, 0

    def cut(drafts: list[DocumentDraft]) -> list[WriteResult]:
        nonlocal batches
        batches += 1
        if batches == 2:
            raise DiskFull("no space")
        return whole(drafts)

    monkeypatch.setattr(target.writer, "store", cut)
    with pytest.raises(DiskFull):
        target.bundler.load(tmp_path / "b")
    monkeypatch.undo()
    stored = target.catalog.counts(PAPERS)
    assert 0 < stored.documents < N
    assert target.lexical.document_frequencies(PAPERS, [])[0] == stored.chunks, (
        "what was stored is found"
    )
    target.bundler.load(tmp_path / "b")
    target.bundler.load(tmp_path / "b")
    assert target.catalog.counts(PAPERS) == source.catalog.counts(PAPERS)
    assert target.fsck.run().faults == ()


@pytest.mark.parametrize("share", [0.001, 0.3, 0.6, 0.999])
def test_a_flipped_byte_is_refused_before_anything_is_written(
    source: IndexStore, target: IndexStore, tmp_path: Path, share: float
) -> None:
    source.bundler.export(PAPERS, tmp_path / "b")
    content = bytearray((tmp_path / "b").read_bytes())
    content[int(len(content) * share)] ^= 4
    (tmp_path / "b").write_bytes(content)
    with pytest.raises((IndexDamaged, InvalidInput)):
        target.bundler.load(tmp_path / "b")
    assert target.catalog.counts(PAPERS).documents == 0


def test_a_file_cut_short_is_refused(
    source: IndexStore, target: IndexStore, tmp_path: Path
) -> None:
    source.bundler.export(PAPERS, tmp_path / "b")
    content = (tmp_path / "b").read_bytes()
    for length in (len(content) - 1, len(content) - 300, len(content) // 2, 30):
        (tmp_path / "b").write_bytes(content[:length])
        with pytest.raises((IndexDamaged, InvalidInput)):
            target.bundler.load(tmp_path / "b")
    assert target.catalog.counts(PAPERS).documents == 0


def test_another_model_is_refused(source: IndexStore, target: IndexStore, tmp_path: Path) -> None:
    source.bundler.export(PAPERS, tmp_path / "b")
    target.writer.write([make_draft("x.txt", "one two", chunks=1)])
    target.writer.claim(PAPERS, replace(FINGERPRINT, embedding_model="other"))
    target.writer.write_vectors(PAPERS, [1], unit_rows(1))
    with pytest.raises(FingerprintMismatch, match="documind reembed"):
        target.bundler.load(tmp_path / "b")
    assert target.catalog.counts(PAPERS).documents == 1


def test_a_library_can_move_to_the_other(
    source: IndexStore, target: IndexStore, tmp_path: Path
) -> None:
    source.bundler.export(PAPERS, tmp_path / "b")
    assert target.bundler.load(tmp_path / "b", PUBLIC).library == "public"
    assert target.catalog.counts(PUBLIC).documents == N
    assert target.catalog.counts(PAPERS).documents == 0
