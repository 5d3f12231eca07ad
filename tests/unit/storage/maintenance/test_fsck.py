"""Injected faults are found, and what can be mended is mended."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.core.types import Library
from app.storage.catalog.rows import LexicalDocument
from app.storage.files.durable import Steps
from app.storage.maintenance.start import CATALOG_NAME
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words.tantivy import TantivyIndex
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows
from tests.unit.storage.test_writer import embed_all

PAPERS = Library.PAPERS

Inject = Callable[[IndexOptions], object]


def build(options: IndexOptions, *, chroma: bool) -> None:
    """Three documents, one with an original and one its duplicate, embedded."""
    with IndexStore(options, vector_store="foreground" if chroma else "off") as store:
        sha256 = store.writer.store_original(b"original bytes")
        store.writer.write(
            [
                make_draft(
                    "a.txt", "walruses whistle in the wind", has_original=True, sha256=sha256
                ),
                make_draft("b.txt", "penguins parade past the pier"),
                make_draft("c.txt", "penguins parade past the pier"),
            ]
        )
        embed_all(store)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "data"
    build(options_at(path), chroma=False)
    return path


def options_at(path: Path) -> IndexOptions:
    return IndexOptions(path, path / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)


def sql(*statements: str) -> Inject:
    def inject(options: IndexOptions) -> None:
        with (
            IndexStore(options, vector_store="off", heal=False) as store,
            store.database.write("test") as connection,
        ):
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            for statement in statements:
                connection.exec_driver_sql(statement)

    return inject


def watermark_ahead(options: IndexOptions) -> None:
    with (
        closing(sqlite3.connect(options.data_dir / CATALOG_NAME)) as connection,
        connection,
    ):  # a store would write its own again
        connection.execute("UPDATE watermarks SET seq = 999 WHERE projection = 'lexical'")


def lexical(change: Callable[[TantivyIndex], None]) -> Inject:
    def inject(options: IndexOptions) -> None:
        index = TantivyIndex(options.data_dir / "tantivy" / "papers", options, Steps())
        change(index)
        index.commit()
        index.close()

    return inject


def add_phantom(index: TantivyIndex) -> None:
    index.add(
        LexicalDocument(99, "x", "phantom", (), None, "text", [(999, "body", "phantom words")])
    )


def garble(index: TantivyIndex) -> None:
    index.delete(1, [1, 2])
    index.add(
        LexicalDocument(1, "x", "", (), None, "text", [(1, "body", "zzz"), (2, "body", "zzz")])
    )


def original(change: Callable[[Path], object]) -> Inject:
    def inject(options: IndexOptions) -> None:
        change(next((options.data_dir / "originals").glob("*.bin")))

    return inject


def deleted_original(options: IndexOptions) -> None:
    """As a crash leaves it between the deletion of its last document and the unlinking."""
    name = "0" * 64
    (options.data_dir / "originals" / f"{name}.bin").write_bytes(b"x")
    sql(f"INSERT INTO unlinks VALUES ('{name}', '2026-01-01T00:00:00.000Z')")(options)


FAULTS: dict[str, tuple[str, Inject]] = {
    "library counter": ("catalog_counters", sql("UPDATE libraries SET chunks = chunks + 5")),
    "type counter": ("catalog_counters", sql("UPDATE type_counts SET documents = 77")),
    "document counter": (
        "catalog_document_counts",
        sql("UPDATE documents SET embedded = 0 WHERE doc = 1"),
    ),
    "duplicate": ("catalog_duplicates", sql("UPDATE documents SET duplicate_of = NULL")),
    "orphan vector": (
        "catalog_orphan_vectors",
        sql("INSERT INTO vectors VALUES ((1 << 40) | 999, zeroblob(32))"),
    ),
    "misshapen vector": (
        "catalog_vectors",
        sql("UPDATE vectors SET vector = zeroblob(30) WHERE key = (1 << 40) | 1"),
    ),
    "older catalog": (
        "catalog_older",
        lambda options: (options.data_dir / "last_change").write_text("999"),
    ),
    "watermark ahead": ("catalog_watermarks", watermark_ahead),
    "lexical lost a document": ("lexical_missing", lexical(lambda index: index.delete(1, [1, 2]))),
    "lexical phantom": ("lexical_phantom", lexical(add_phantom)),
    "lexical content": ("lexical_content", lexical(garble)),
    "original missing": ("original_missing", original(Path.unlink)),
    "original damaged": (
        "original_damaged",
        original(lambda path: path.write_bytes(b"0riginal bytes")),
    ),
    "deleted original": ("original_orphan", deleted_original),
}


@pytest.mark.parametrize("name", FAULTS)
def test_found_and_mended(sound: Path, tmp_path: Path, name: str) -> None:
    options = options_at(Path(shutil.copytree(sound, tmp_path / "data")))
    code, inject = FAULTS[name]
    inject(options)
    with IndexStore(options, vector_store="off", heal=False) as store:
        seen = store.fsck.run()
        assert code in {fault.code for fault in seen.faults}
        assert seen.exit_code == (0 if name == "deleted original" else 7)
        assert seen.sound is (name == "deleted original")
        mended = store.fsck.run(repair=True)
        assert (mended.sound, mended.exit_code) == (True, 0)
        assert json.loads(json.dumps(mended.record()))["faults"][0]["repaired"] is True
    with IndexStore(options, vector_store="off") as store:
        assert store.fsck.run().faults == ()
        assert store.lexical.search(PAPERS, "walruses", 5) != []
        if "misshapen" not in name:
            assert store.vectors.search(PAPERS, unit_rows(6)[0], 1)[0].chunk_id == 1


def test_what_a_start_repairs_is_named_and_is_no_fault(sound: Path, tmp_path: Path) -> None:
    """A kill after the catalog's commit leaves the words behind."""
    before = options_at(Path(shutil.copytree(sound, tmp_path / "before")))
    with IndexStore(before, vector_store="off") as store:
        store.writer.write([make_draft("a.txt", "herons wade"), make_draft("d.txt", "owls hoot")])
        killed = Path(shutil.copytree(before.data_dir, tmp_path / "killed"))
    shutil.rmtree(killed / "tantivy")
    shutil.copytree(sound / "tantivy", killed / "tantivy")
    options = options_at(killed)
    with IndexStore(options, vector_store="off", heal=False) as store:
        seen = store.fsck.run()
        assert {(fault.code, fault.at_start) for fault in seen.faults} >= {
            ("lexical_missing", True),
            ("lexical_phantom", True),
        }
        assert (seen.sound, seen.exit_code) == (True, 0)
    with IndexStore(options, vector_store="off") as store:
        assert store.fsck.run().faults == ()


def test_a_sound_store_has_no_fault(sound: Path, tmp_path: Path) -> None:
    options = options_at(Path(shutil.copytree(sound, tmp_path / "data")))
    with IndexStore(options, vector_store="off", heal=False) as store:
        report = store.fsck.run()
    assert (report.faults, report.exit_code) == ((), 0)
    assert report.checked == {"texts": 3, "chunks": 6, "vectors": 6, "originals": 1, "lexical": 6}


@pytest.mark.parametrize(
    ("code", "statement"),
    [
        ("catalog_text", "UPDATE revisions SET text = zeroblob(40) WHERE doc = 1"),
        ("catalog_spans", 'UPDATE chunks SET "end" = 9999 WHERE chunk_id = 1'),
    ],
)
def test_faults_of_the_truth_are_named_with_the_cure(
    sound: Path, tmp_path: Path, code: str, statement: str
) -> None:
    options = options_at(Path(shutil.copytree(sound, tmp_path / "data")))
    sql(statement)(options)
    with IndexStore(options, vector_store="off", heal=False) as store:
        report = store.fsck.run()
    assert report.faults[0].code == code
    assert "restore a backup" in report.faults[0].detail
    assert report.exit_code == 8


def test_a_vector_store_that_was_never_needed_is_not_missed(store: IndexStore) -> None:
    draft = make_draft("ant", "a word", chunks=1)  # found by tests/crash/test_store_machine.py
    store.writer.write([draft])
    store.writer.delete_all(PAPERS)
    store.writer.claim(PAPERS, FINGERPRINT)
    store.writer.apply(PAPERS)
    assert store.fsck.run().faults == ()
