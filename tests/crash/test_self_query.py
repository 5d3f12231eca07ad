"""What Chroma holds is compared by id; what it does not find is damage only where it is more than an approximation leaves out."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from app.core.ids import document_id
from app.core.types import Library
from app.index.dense.chroma.probe import probe
from app.index.dense.chroma.self_query import too_many
from app.index.maintenance.start_checks import catalog_path
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.unit.index.drafts import make_draft, unit_rows
from tests.unit.index.test_writer import embed_all

PAPERS = Library.PAPERS


def fill(store: IndexStore) -> None:
    store.writer.write([make_draft(name, f"walruses whistle for {name}") for name in ("ann", "bea", "cid")])
    embed_all(store)


def aside(options: IndexOptions) -> list[str]:
    return [path.name for path in options.data_dir.glob("chroma.broken.*")]


def test_a_document_in_its_grace_is_no_damage(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        fill(store)
        store.writer.delete(PAPERS, document_id(PAPERS, "bea"), grace_s=3600)
        assert store.fsck.run().faults == ()
    with IndexStore(options, vector_store="off", heal=False) as store:
        assert store.fsck.run().faults == ()
    with IndexStore(options, vector_store="foreground") as store:
        assert aside(options) == []
        store.writer.restore(PAPERS, document_id(PAPERS, "bea"))
        assert store.chroma.count(store.chroma.names()[0]) == 6


def test_what_is_beyond_the_cap_is_no_damage(options: IndexOptions) -> None:
    capped = replace(options, max_dense_vectors=4)
    with IndexStore(capped, vector_store="foreground") as store:
        fill(store)
        assert store.chroma.count(store.chroma.names()[0]) == 4
        assert store.fsck.run().faults == ()
    with IndexStore(capped, vector_store="off", heal=False) as store:
        assert store.fsck.run().faults == ()
    with IndexStore(capped, vector_store="foreground"):
        assert aside(options) == []


def test_what_is_written_while_the_store_is_looked_at_is_no_damage(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        fill(store)
    with IndexStore(options, vector_store="off") as store:
        expected = store.keeper.expected()
        assert [len(want.sample) for want in expected] == [6]
        store.writer.write([make_draft("dan", "walruses whistle for dan")])
        embed_all(store)
        late = store.keeper.expected()
        for wanted in (expected, late):
            assert probe(options.chroma_dir, catalog_path(options.data_dir), wanted).problems == ()
    lost = [replace(want, uncertain=(), count=8) for want in late]
    assert probe(options.chroma_dir, catalog_path(options.data_dir), lost).problems != ()


def test_what_a_killed_process_had_half_written_is_no_damage(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        fill(store)
    database = options.chroma_dir / "chroma.sqlite3"
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN")
    counted = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9000) SELECT i FROM n"
    writer.execute(f"CREATE TABLE half_written AS {counted}")
    killed = replace(options, data_dir=options.data_dir.parent / "killed", chroma_dir=options.data_dir.parent / "killed" / "chroma")
    shutil.copytree(options.data_dir, killed.data_dir)
    writer.close()
    assert (killed.chroma_dir / "chroma.sqlite3-journal").stat().st_size > 512
    with IndexStore(killed, vector_store="foreground") as store:
        assert aside(killed) == []
        assert store.chroma.count(store.chroma.names()[0]) == 6


def test_held_and_found(options: IndexOptions) -> None:
    with IndexStore(options, vector_store="foreground") as store:
        fill(store)
        name = store.chroma.names()[0]
        rows = store.vectors.fetch(PAPERS, [1, 2, 3, 4, 5, 6])
        assert store.chroma.differing(name, rows) == store.chroma.unfound(name, rows) == []
        store.chroma.delete(name, [2])
        store.chroma.upsert(name, [3], unit_rows(1, seed=9), [("x", "body")], "m")
        assert store.chroma.differing(name, rows) == [2, 3]
        store.chroma.upsert(name, [3, 7], np.stack([rows[3], rows[2]]), [("x", "body")] * 2, "m")
        assert store.chroma.unfound(name, rows) == []  # an equal vector is there
        store.chroma.delete(name, [7])
        assert store.chroma.unfound(name, rows) == [2]


@pytest.mark.parametrize(
    ("missed", "asked", "damaged"),
    [(0, 32, False), (2, 32, False), (3, 32, True), (50, 1000, False), (51, 1000, True), (1, 1, True)],
)
def test_how_many_may_stay_unfound(missed: int, asked: int, damaged: bool) -> None:
    assert too_many(missed, asked) is damaged
