"""Deleted means gone: every file is read as an attacker would, with and without the purge."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tantivy
import zstandard

from app.core.text import tokenise
from app.core.types import Library
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows

PAPERS = Library.PAPERS
CANARY = "xylophagous quokkas"
SECRET = f"The {CANARY} were never to be found again, as nobody wrote down where they live."
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def everything_in(data: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file's bytes, and every zstd frame that can be carved out of them."""
    for path in sorted(data.rglob("*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        yield path, content
        at = content.find(ZSTD_MAGIC)
        while at >= 0:
            with suppress(
                zstandard.ZstdError
            ):  # not a frame, or one that continues on another page
                yield path, zstandard.ZstdDecompressor().decompressobj().decompress(content[at:])
            at = content.find(ZSTD_MAGIC, at + 1)


def traces(data: Path, vector: bytes) -> set[str]:
    """Which files still hold the canary's words, its terms, or its vector."""
    needles = [CANARY.encode(), *(token.encode() for token in tokenise(CANARY)), vector]
    found = {
        path.relative_to(data).parts[0]
        for path, content in everything_in(data)
        if any(needle in content for needle in needles)
    }
    # A term dictionary is an automaton: its words are no runs of bytes, but tantivy lists them,
    # deleted documents' too.
    terms = tantivy.Index.open(str(data / "tantivy" / "papers")).searcher()
    if any(terms.terms_with_prefix("body", token) for token in tokenise(CANARY)):
        found.add("tantivy")
    return found


@pytest.mark.parametrize("purge", [False, True], ids=["control", "purged"])
def test_deleted_means_gone(options: IndexOptions, purge: bool) -> None:
    rows = unit_rows(4, seed=11)
    with IndexStore(options, vector_store="off") as store:
        sha256 = store.writer.store_original(SECRET.encode())
        secret = make_draft("s.txt", SECRET, chunks=2, has_original=True, sha256=sha256)
        store.writer.write([secret, make_draft("kept.txt", "penguins parade past the pier")])
        store.writer.claim(PAPERS, FINGERPRINT)
        ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 10)]
        store.writer.write_vectors(PAPERS, ids, rows)
        store.writer.apply(PAPERS)
        stored = store.vectors.fetch(PAPERS, [ids[0]])[ids[0]]
        store.writer.write(
            [make_draft("s.txt", SECRET + " Not even then.", chunks=2)]
        )  # an old revision goes too
        broken = options.data_dir / "tantivy.broken.20260101T000000Z"
        broken.mkdir()
        (broken / "segment").write_bytes(SECRET.encode())
        store.writer.delete(PAPERS, secret.doc_id)
        if purge:
            report = store.purger.run()
            assert (report.rebuilt, report.broken_removed) == (("papers",), 1)
            assert any("backup" in line for line in report.out_of_reach)
            assert store.purger.run().rebuilt == ()
        assert store.lexical.search(PAPERS, "penguins", 5) != []
        assert store.lexical.search(PAPERS, CANARY, 5) == []
    left = traces(options.data_dir, np.asarray(stored, "<f4").tobytes())
    assert left == (set() if purge else {"tantivy", "tantivy.broken.20260101T000000Z"}), left


@pytest.mark.sqlite_file
def test_the_file_has_no_free_pages_after_a_purge(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="off") as store:
        store.writer.write([make_draft(f"{i}.txt", f"words {i} " * 500) for i in range(20)])
        store.writer.delete_all(PAPERS)
        report = store.purger.run()
        assert report.bytes_after < report.bytes_before
        path = store.options.data_dir / "catalog.sqlite3"
        assert path.with_name(path.name + "-wal").stat().st_size == 0
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    connection.close()
