"""The questions that decide on a re-embedding, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from app.core.types import Hit, Library
from app.evaluation.cases import CaseBody
from app.evaluation.comparison import (
    RankingCase,
    automatic_set,
    from_answer_set,
    judge,
    reciprocal_rank,
)
from app.evaluation.metrics import permutation_p
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.unit.storage.drafts import make_draft

PAPERS = Library.PAPERS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> IndexStore:
    data = tmp_path_factory.mktemp("compare") / "data"
    options = IndexOptions(data, data / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)
    with IndexStore(options, vector_store="off") as opened:
        for n in range(30):
            text = (
                f"The {n}th river of the north carries ice in spring. People of town {n} mend"
                " their boats before the thaw begins."
            )
            opened.writer.write(
                [make_draft(f"river-{n}", text, title=f"River number {n} of the cold far north")]
            )
        opened.writer.write([make_draft("short", "Too short. Really.", chunks=1)])
    return opened


def hits_of(store: IndexStore, *chunk_ids: int) -> list[Hit]:
    found: list[Hit] = []
    for passage in store.catalog.passages(PAPERS, chunk_ids).values():
        found.append(Hit(passage, 1.0))
    return found


def test_questions_come_from_the_library_and_are_the_same_every_time(store: IndexStore) -> None:
    first = automatic_set(store.catalog, PAPERS, seed=1)
    assert first == automatic_set(store.catalog, PAPERS, seed=1)
    assert first != automatic_set(store.catalog, PAPERS, seed=2)
    assert len({doc_id for case in first for doc_id in case.doc_ids}) == 30
    taken = [case for case in first if case.not_chunk is not None]
    for case in taken:
        [chunk] = store.catalog.chunks_by_id(PAPERS, [case.not_chunk or 0])
        assert case.question in " ".join(chunk.text.split())
        assert case.doc_ids == {chunk.doc_id}
    assert any(case.question.startswith("River number") for case in first)
    assert automatic_set(store.catalog, Library.PUBLIC, seed=1) == []


def test_the_passage_a_question_was_taken_from_does_not_count(store: IndexStore) -> None:
    chunks = store.catalog.chunks(PAPERS, store.catalog.find(PAPERS, "river-3").doc_id)
    other = store.catalog.chunks(PAPERS, store.catalog.find(PAPERS, "river-4").doc_id)[0]
    case = RankingCase("?", frozenset({"river-3"}), not_chunk=chunks[0].chunk_id)
    assert (
        reciprocal_rank(
            case, hits_of(store, chunks[0].chunk_id, other.chunk_id, chunks[1].chunk_id)
        )
        == 0.5
    )
    assert reciprocal_rank(case, hits_of(store, chunks[0].chunk_id, other.chunk_id)) == 0.0
    by_text = RankingCase("?", substrings=("THE 4TH RIVER",))
    assert reciprocal_rank(by_text, hits_of(store, chunks[0].chunk_id, other.chunk_id)) == 0.5


def test_an_answer_set_gives_the_questions_that_say_where_their_answer_is() -> None:
    cases = [
        CaseBody("a", "papers", "question", expected_docs=("x.pdf",)),
        CaseBody("b", "all", "question", expected_substrings=("42",)),
        CaseBody("c", "public", "question", expected_docs=("x.pdf",)),
        CaseBody("hello", "papers", "chitchat", expected_docs=("x.pdf",)),
        CaseBody("d", "papers", "question", expected_docs=("x.pdf",), oos=True),
        CaseBody("e", "papers", "question"),
    ]
    assert [case.question for case in from_answer_set(cases, PAPERS)] == ["a", "b"]


def verdict(store: IndexStore, before: Sequence[int], after: Sequence[int]) -> tuple[bool, str]:
    """Judge rankings in which the right passage has these ranks; 0 is not at all."""
    right = store.catalog.chunks(PAPERS, store.catalog.find(PAPERS, "river-1").doc_id)[0].chunk_id
    wrong = [
        chunk.chunk_id
        for n in range(2, 12)
        for chunk in store.catalog.chunks(PAPERS, store.catalog.find(PAPERS, f"river-{n}").doc_id)
    ]

    def search(ranks: Sequence[int]) -> dict[str, Sequence[Hit]]:
        return {
            str(n): hits_of(store, *wrong[: rank - 1], right) if rank else hits_of(store, *wrong)
            for n, rank in enumerate(ranks)
        }

    old, new = search(before), search(after)
    cases = [RankingCase(str(n), frozenset({"river-1"})) for n in range(len(before))]
    found = judge(cases, old.__getitem__, new.__getitem__, seed=3)
    assert found.questions == len(before)
    return found.worse, found.reason


def test_worse_is_what_a_paired_test_shows(store: IndexStore) -> None:
    assert verdict(store, [1] * 20, [3] * 20)[0]
    assert "find less" in verdict(store, [1] * 20, [3] * 20)[1]
    worse, reason = verdict(store, [1, 2, 1, 2, 1, 2, 1, 2, 1, 2], [2, 1, 2, 1, 2, 1, 2, 1, 2, 2])
    assert (worse, "no difference can be shown" in reason) == (False, True)
    worse, reason = verdict(store, [3] * 20, [1] * 20)
    assert (worse, "find more" in reason) == (False, True)


def test_with_too_few_questions_for_a_test_any_loss_counts(store: IndexStore) -> None:
    assert verdict(store, [1, 1, 1], [1, 1, 2]) == (
        True,
        "the new vectors find less (too few questions for a test): mean reciprocal rank 1.000"
        " before, 0.833 after, 3 questions,"
        " p = 1.000",
    )
    assert not verdict(store, [1, 1, 2], [1, 1, 1])[0]


def test_nothing_to_ask_decides_nothing() -> None:
    found = judge([], lambda _: [], lambda _: [], seed=1)
    assert (found.worse, found.questions) == (False, 0)


@pytest.mark.parametrize("n", [2, 5, 8, 13, 40])
def test_the_permutation_test_agrees_with_scipy(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.3, 1.0, n).round(2)
    theirs = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=10_000,
        rng=np.random.default_rng(1),
    ).pvalue
    assert permutation_p(differences, seed=1) == pytest.approx(
        theirs, abs=0.02 if 2**n > 10_000 else 1e-12
    )
