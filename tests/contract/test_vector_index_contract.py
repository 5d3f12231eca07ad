"""What a search for vectors does, by the cache, by each store, and by the catalog while there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from app.core.types import Condition, EmbeddedStore, Filters, FloatArray, Labels, Library, Passage
from app.core.vectors import cosine_distances
from app.storage.options import IndexOptions
from app.storage.store import IndexStore, VectorStoreUse
from app.storage.vectors.library import DenseVectorIndex
from tests.contract.oracles import matches
from tests.unit.storage.drafts import FINGERPRINT, make_draft, unit_rows

PAPERS = Library.PAPERS
DOCUMENTS, CHUNKS = 30, 4
N = DOCUMENTS * CHUNKS

FILTERS = [
    Filters(sections=("methods",)),
    Filters(sections=("no such section",)),
    Filters(exclude_doc_ids=tuple(make_draft(f"{n}", "").doc_id for n in range(0, 30, 2))),
    Filters(year_from=1995, year_to=1996),
    Filters(author="ann"),
    Filters(types=("pdf",), sections=("body",)),
    Filters(tags=("Third",)),
    Filters(tags=("third",), metadata=(Condition.between("n", 3, 12),), sections=("body",)),
    Filters(tags=("none",)),
]


@dataclass(frozen=True)
class Subject:
    """An index, its rows by chunk id, and what filters see."""

    index: DenseVectorIndex
    rows: dict[int, FloatArray]
    passages: dict[int, Passage]


def build(
    options: IndexOptions, use: VectorStoreUse
) -> tuple[IndexStore, dict[int, FloatArray], dict[int, Passage]]:
    store = IndexStore(options, vector_store=use)
    store.writer.write(
        [
            make_draft(
                f"{i}", f"text {i} words", chunks=CHUNKS, year=1990 + i % 10, sections=("body", "methods"),
                authors=("Ann Li",) if i % 3 else (), kind="pdf" if i % 2 else "text",
                labels=Labels(("third",) if i % 3 == 0 else ("other",), {"n": i}),
            )
            for i in range(DOCUMENTS)
        ]
    )  # fmt: skip
    store.writer.claim(PAPERS, FINGERPRINT)
    ids = [chunk.chunk_id for chunk in store.writer.pending_vectors(PAPERS, N)]
    store.writer.write_vectors(PAPERS, ids, unit_rows(N))
    store.writer.apply(PAPERS)
    return store, dict(zip(ids, unit_rows(N), strict=True)), store.catalog.passages(PAPERS, ids)


@pytest.fixture(scope="module", params=["cache", "chroma", "faiss", "catalog"])
def subject(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Subject]:
    path = tmp_path_factory.mktemp("data")
    stores: dict[str, EmbeddedStore] = {"chroma": "chroma", "faiss": "faiss"}
    kind = stores.get(request.param)
    options = IndexOptions(
        path,
        path / "chroma",
        papers_store=kind or "chroma",
        tantivy_threads=1,
        vector_cache_vectors=0 if kind or request.param == "catalog" else 1000,
    )
    store, rows, passages = build(options, "foreground" if kind else "off")
    yield Subject(store.vectors, rows, passages)
    store.close()


def nearest(subject: Subject, query: FloatArray, k: int, keep: Callable[[int], bool]) -> list[int]:
    ids = [chunk_id for chunk_id in subject.rows if keep(chunk_id)]
    if not ids:
        return []
    distances = cosine_distances(query, np.stack([subject.rows[chunk_id] for chunk_id in ids]))
    return [ids[at] for at in np.argsort(distances, kind="stable")[:k]]


def test_neighbours_are_the_nearest_in_ascending_order(subject: Subject) -> None:
    for query in unit_rows(5, seed=9):
        hits = subject.index.search(PAPERS, query, 10)
        assert [hit.chunk_id for hit in hits] == nearest(subject, query, 10, lambda _: True)
        assert [hit.score for hit in hits] == sorted(hit.score for hit in hits)
        expected = cosine_distances(query, np.stack([subject.rows[hit.chunk_id] for hit in hits]))
        np.testing.assert_allclose([hit.score for hit in hits], expected, atol=2e-3)


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_keep_exactly_the_nearest_that_match(subject: Subject, filters: Filters) -> None:
    query = unit_rows(1, seed=4)[0]
    hits = subject.index.search(PAPERS, query, 8, filters)
    assert [hit.chunk_id for hit in hits] == nearest(
        subject, query, 8, lambda i: matches(subject.passages[i], filters)
    )


def test_stored_rows_come_back(subject: Subject) -> None:
    some = list(subject.rows)[:5]
    found = subject.index.fetch(PAPERS, [*some, 99_999])
    assert list(found) == some
    for chunk_id in some:
        np.testing.assert_allclose(found[chunk_id], subject.rows[chunk_id], atol=2e-3)


def test_counts_and_limits(subject: Subject) -> None:
    query = unit_rows(1)[0]
    assert subject.index.count(PAPERS) == N
    assert subject.index.count(Library.PUBLIC) == 0
    assert len(subject.index.search(PAPERS, query, 10 * N)) == N
    assert subject.index.search(PAPERS, query, 0) == []
    assert subject.index.search(Library.PUBLIC, query, 5) == []
