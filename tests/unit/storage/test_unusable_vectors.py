"""A stored vector that is not finite is a missing one: the store starts, serves without it and embeds it again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from app.core.types import Library
from app.storage.catalog.rows import pack_vector, usable
from app.storage.maintenance.start import catalog_path
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from evaluation.lib.vector_checks import held
from tests.unit.storage.drafts import DIMENSION, make_draft, unit_rows
from tests.unit.storage.test_writer import embed_all

pytestmark = pytest.mark.sqlite_file

PAPERS = Library.PAPERS
NAN = np.full(DIMENSION, np.nan, "<f2").tobytes()
INFINITE = np.array([*np.zeros(DIMENSION - 1), -np.inf], "<f2").tobytes()


@pytest.fixture
def poisoned(options: IndexOptions) -> IndexOptions:
    """Three documents of two chunks; vectors 1 and 4 are not finite, 5 is cut short."""
    with IndexStore(options, vector_store="off") as store:
        store.writer.write(
            [
                make_draft(f"{name}.txt", f"{name} whistles in the wind")
                for name in ("ant", "bee", "cat")
            ]
        )
        embed_all(store)
    poison(options.data_dir)
    return options


def poison(data: Path) -> None:
    with closing(sqlite3.connect(catalog_path(data))) as connection, connection:
        for chunk_id, blob in ((1, NAN), (4, INFINITE), (5, b"\0" * 6)):
            connection.execute(
                "UPDATE vectors SET vector = ? WHERE key = (1 << 40) | ?", (blob, chunk_id)
            )


@pytest.mark.parametrize(
    "small", [True, False]
)  # a large catalog is not read at a start: its loaders meet them, or fsck does
def test_a_store_that_holds_one_starts_and_repairs_itself(
    poisoned: IndexOptions, monkeypatch: pytest.MonkeyPatch, *, small: bool
) -> None:
    monkeypatch.setattr("app.storage.store.is_small", lambda database: small)
    with IndexStore(poisoned, vector_store="off") as store:
        assert store.vectors.count(PAPERS) == store.catalog.counts(PAPERS).embedded == 3
        assert {hit.chunk_id for hit in store.vectors.search(PAPERS, unit_rows(1)[0], 9)} == {
            2,
            3,
            6,
        }
        assert [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, 9)] == [1, 4, 5]
        embed_all(store)
        assert store.catalog.counts(PAPERS).embedded == 6
        assert store.fsck.run().faults == ()


def test_fsck_names_and_mends_them(poisoned: IndexOptions) -> None:
    with IndexStore(poisoned, vector_store="off", heal=False) as store:
        found = store.fsck.run()
        assert ("catalog_vectors", 3) in [(fault.code, fault.count) for fault in found.faults]
        assert store.fsck.run(repair=True).sound
    with IndexStore(poisoned, vector_store="off") as store:
        assert store.fsck.run().faults == ()
        assert store.catalog.counts(PAPERS).embedded == 3


def test_a_rebuild_leaves_them_out(poisoned: IndexOptions) -> None:
    with IndexStore(poisoned, vector_store="off", heal=False) as store:
        for dense in store.dense.values():
            dense.catch_up()
            dense.refill_cache()
        assert store.dense[PAPERS].compare_cache() == []
    with IndexStore(poisoned, vector_store="foreground") as store:
        store.rebuild()
        assert held(store, PAPERS) == {2, 3, 6}
        assert {fault.code for fault in store.fsck.run().faults} <= {"leftovers"}, (
            "of the store that was made anew"
        )


def test_which_blobs_are_usable() -> None:
    good = pack_vector(unit_rows(1)[0])
    assert usable([good, NAN, b"", INFINITE, good[:-2], good + good, good], DIMENSION) == [
        True,
        *[False] * 5,
        True,
    ]
    assert usable([], DIMENSION) == []
