"""The steps together, over a store."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import pytest
from sqlalchemy import update

from app.core.errors import IndexDamaged, InvalidInput, ProviderUnreachable
from app.core.trace import Trace
from app.core.types import EmbedderIdentity, Filters, FloatArray, Fusion, Library, Stance
from app.ingest.embedding import CodeBackfill
from app.models.reader import MiniLmReader
from app.retrieval.pipeline import Retriever
from app.retrieval.request import Retrieval, SearchRequest
from app.retrieval.reranking import LateInteraction
from app.storage.catalog.schema import documents
from tests.fakes.embedders import HashEmbedder
from tests.fakes.encoders import HashEncoder
from tests.stores import passage
from tests.unit.retrieval.conftest import Shelve, StockedLibrary

NORMANS = [
    passage("Rollo was the leader of the Norse who settled in Normandy.", key="rollo"),
    passage("The dukes of Normandy conquered England in 1066 at Hastings.", key="hastings"),
    passage("Wheat and barley are cereals grown in temperate climates.", key="cereals"),
    passage("A sonata is a piece of music for one or two instruments.", key="sonata"),
]


def _ask(
    retriever: Retriever, text: str, *, trace: Trace | None = None, **fields: object
) -> Retrieval:
    request = SearchRequest(text, Library.PAPERS, **fields)  # type: ignore[arg-type]
    return retriever.retrieve(request, trace or Trace())


def _keys(found: Retrieval) -> list[str]:
    return [hit.passage.document.source_key for hit in found.hits]


def test_the_passage_that_answers_comes_first(stock: Shelve) -> None:
    found = _ask(stock(NORMANS).retriever(), "Who was the leader of the Norse?")
    assert _keys(found)[0] == "rollo"
    signals = found.hits[0].signals
    assert signals.dense is not None
    assert signals.dense < 0.65
    assert signals.bm25
    assert signals.overlap == pytest.approx(1.0)
    assert not found.fallback
    assert found.notices == ()
    assert 0 < found.confidence <= 1


@pytest.mark.parametrize("fusion", ["relative_score", "rrf", "dense", "lexical"])
def test_every_fusion_ranks_and_scores_fall(stock: Shelve, fusion: Fusion) -> None:
    found = _ask(
        stock(NORMANS).retriever(), "conquered England", fusion=fusion, top_k=4, keep_weak=True
    )
    assert _keys(found)[0] == "hastings"
    assert len(found.hits) == 4
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


def test_weak_hits_are_dropped_unless_kept(stock: Shelve) -> None:
    retriever = stock(NORMANS).retriever()
    assert _keys(_ask(retriever, "sonata music instruments")) == ["sonata"]
    kept = _ask(retriever, "sonata music instruments", keep_weak=True, top_k=3)
    assert len(kept.hits) == 3
    assert [hit.band for hit in kept.hits[1:]] == ["weak", "weak"]
    assert not any(hit.fallback for hit in kept.hits)


def test_the_fallback_is_marked(stock: Shelve) -> None:
    stocked = stock(NORMANS)
    found = _ask(stocked.retriever(enable_fallback=True), "quantum chromodynamics")
    assert found.fallback
    assert 0 < len(found.hits) <= 3
    assert all(hit.fallback and hit.band == "weak" for hit in found.hits)
    assert [notice.code for notice in found.notices] == ["fallback_used"]
    off = _ask(stocked.retriever(), "quantum chromodynamics")
    assert off.hits == ()
    assert not off.fallback


def test_an_empty_library_and_a_filter_without_matches_are_told_apart(stock: Shelve) -> None:
    assert [n.code for n in _ask(stock([]).retriever(), "anything").notices] == ["library_empty"]
    found = _ask(stock(NORMANS).retriever(), "Normandy", filters=Filters(sections=("results",)))
    assert [n.code for n in found.notices] == ["filter_matched_nothing"]
    assert found.hits == ()


def test_filters_reach_both_legs(stock: Shelve) -> None:
    only = NORMANS[2].document.doc_id
    found = _ask(
        stock(NORMANS).retriever(),
        "Who led the Norse?",
        filters=Filters(doc_ids=(only,)),
        keep_weak=True,
    )
    assert _keys(found) == ["cereals"]


def test_without_an_embedder_words_alone_answer(stock: Shelve) -> None:
    stocked = stock(NORMANS)
    stocked.embedder = None
    found = _ask(stocked.retriever(), "Who was the leader of the Norse?")
    assert _keys(found) == ["rollo"]
    assert found.hits[0].signals.dense is None
    assert found.hits[0].band == "partial"
    assert [n.code for n in found.notices] == ["embedder_unavailable"]


def test_a_failing_embedder_is_a_notice(stock: Shelve) -> None:
    class Down(HashEmbedder):
        def embed_query(self, text: str) -> FloatArray:
            raise ProviderUnreachable("no embedder at 'http://127.0.0.1:9'; start it")

    stocked = stock(NORMANS)
    stocked.embedder = Down()
    found = _ask(stocked.retriever(), "leader of the Norse")
    assert _keys(found) == ["rollo"]
    assert [n.code for n in found.notices] == ["embedder_unavailable"]


def test_a_host_is_not_asked_for_a_library_without_vectors(stock: Shelve) -> None:
    class Unasked(HashEmbedder):
        @property
        def identity(self) -> EmbedderIdentity:
            raise AssertionError("the host was asked")

    stocked = stock([], bare=NORMANS)
    stocked.embedder = Unasked()
    found = _ask(stocked.retriever(asks_host=True), "leader of the Norse")
    assert _keys(found) == ["rollo"]
    assert [n.code for n in found.notices] == ["vectors_missing"]


def test_a_damaged_dense_index_leaves_the_words(
    stock: Shelve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> NoReturn:
        raise IndexDamaged("the vectors are being rebuilt")

    stocked = stock(NORMANS)
    monkeypatch.setattr(stocked.vectors, "search", damaged)
    found = _ask(stocked.retriever(), "leader of the Norse")
    assert _keys(found) == ["rollo"]
    assert [n.code for n in found.notices] == ["index_rebuilding"]


def test_a_candidate_without_a_vector_is_embedded_and_kept(stock: Shelve) -> None:
    stocked = stock(NORMANS[1:], bare=NORMANS[:1], own=True)
    (chunk,) = stocked.store.writer.pending_vectors(Library.PAPERS, 9)
    retriever = stocked.retriever(writer=stocked.store.writer, embed_on_query_budget_ms=10_000)
    found = _ask(retriever, "leader of the Norse")
    assert found.hits[0].signals.dense is not None
    assert found.hits[0].passage.chunk == chunk
    assert found.notices == ()
    assert list(stocked.vectors.fetch(Library.PAPERS, [chunk.chunk_id])) == [chunk.chunk_id]


def test_a_question_does_not_wait_for_others_that_write(stock: Shelve) -> None:
    stocked = stock(NORMANS[1:], bare=NORMANS[:1], own=True)
    retriever = stocked.retriever(writer=stocked.store.writer, embed_on_query_budget_ms=10_000)
    with ThreadPoolExecutor(1) as asking, stocked.store.projector.writing():
        found = asking.submit(_ask, retriever, "leader of the Norse").result(30)
    assert found.hits[0].signals.dense is not None
    assert len(stocked.store.writer.pending_vectors(Library.PAPERS, 9)) == 1


def test_without_budget_missing_vectors_are_said(stock: Shelve) -> None:
    stocked = stock([], bare=NORMANS)
    found = _ask(stocked.retriever(embed_on_query_budget_ms=0), "Who was the leader of the Norse?")
    assert _keys(found) == ["rollo"]
    assert [n.code for n in found.notices] == ["vectors_missing"]
    assert isinstance(stocked.embedder, HashEmbedder)
    assert stocked.embedder.embedded == []


def test_a_given_vector_searches_without_embedding(stock: Shelve) -> None:
    stocked = stock(NORMANS)
    vector = HashEmbedder(256).embed_query("cereals grown in temperate climates")
    stocked.embedder = None
    found = _ask(stocked.retriever(), "something else", vector=vector, keep_weak=True)
    assert _keys(found)[0] == "cereals"
    assert found.hits[0].signals.dense is not None


def test_superseded_chunks_are_not_shown(stock: Shelve) -> None:
    stocked = stock(NORMANS, own=True)
    with stocked.store.database.write("test") as sql:  # no index hears of it
        sql.execute(update(documents).where(documents.c.source_key == "rollo").values(state="gone"))
    assert "rollo" not in _keys(_ask(stocked.retriever(), "leader of the Norse", keep_weak=True))


def test_deeper_candidates_fill_up_after_copies(stock: Shelve) -> None:
    copies = [
        passage(f"Rollo was the leader of the Norse in Normandy {'x' * i}", key=f"copy{i}")
        for i in range(30)
    ]
    found = _ask(
        stock([*copies, *NORMANS[1:]]).retriever(),
        "leader of the Norse in Normandy",
        keep_weak=True,
        top_k=4,
    )
    assert len(found.hits) == 4
    assert sum(key.startswith("copy") for key in _keys(found)) == 1


@pytest.mark.parametrize("option", [{"rerank": "mmr"}, {"keyword_fusion_weight": 0.3}])
def test_arms_keep_the_answer_first(stock: Shelve, option: dict[str, Any]) -> None:
    found = _ask(
        stock(NORMANS).retriever(**option),
        "Who was the leader of the Norse?",
        keep_weak=True,
        top_k=3,
    )
    assert _keys(found)[0] == "rollo"


def test_the_reader_orders_by_its_logits_where_it_is_asked_to(stock: Shelve) -> None:
    class Contrary:
        name = "contrary"

        def answers(self, question: str, units: Sequence[str]) -> list[float]:
            return [5.0 if "Wheat" in text else -1.0 for text in units]

        def stances(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
            raise AssertionError(pairs)  # a search reads no claim

    retriever = stock(NORMANS).retriever(reader=Contrary())
    found = _ask(retriever, "leader of the Norse", keep_weak=True, top_k=2, rerank="cross_encoder")
    assert _keys(found) == ["cereals", "rollo"]
    assert found.hits[0].score == found.hits[0].signals.rerank == 5.0
    for rerank in ("none", None):  # by itself nothing reads passages
        plain = _ask(retriever, "leader of the Norse", keep_weak=True, top_k=2, rerank=rerank)
        assert (_keys(plain)[0], plain.hits[0].signals.rerank) == ("rollo", None)


def test_the_built_in_reader_puts_the_passage_that_answers_first(stock: Shelve) -> None:
    retriever = stock(NORMANS).retriever(reader=MiniLmReader(threads=1))
    found = _ask(retriever, "Who led the Norse?", keep_weak=True, top_k=2, rerank="cross_encoder")
    assert _keys(found)[0] == "rollo"
    assert found.hits[0].signals.rerank == found.hits[0].score


def test_a_search_may_ask_for_its_own_order(stock: Shelve) -> None:
    same = [
        passage(f"Rollo led the Norse to Normandy in the year {900 + i}", key="rollo", ordinal=i)
        for i in range(3)
    ]
    stocked = stock([*same, *NORMANS[1:]])
    question = "Who led the Norse to Normandy?"
    by_mmr = Trace(full=True)
    _ask(stocked.retriever(), question, trace=by_mmr, keep_weak=True, top_k=2, rerank="mmr")
    passed_over = [item.reason for item in by_mmr.report().stages[-1].items or ()]
    assert "says nearly the same" not in " ".join(passed_over)


def _with_codes(stocked: StockedLibrary, *, coded: int) -> Retriever:
    codes, encoder = stocked.store.codes, HashEncoder(HashEmbedder(384))
    CodeBackfill(codes, encoder, stocked.catalog, coded).run(Library.PAPERS)
    return stocked.retriever(late=LateInteraction(codes, encoder))


def test_codes_order_the_head_and_a_library_without_them_is_searched_as_before(
    stock: Shelve,
) -> None:
    stocked = stock(NORMANS, own=True)
    question = "Who was the leader of the Norse?"
    plain = _ask(stocked.retriever(), question, keep_weak=True)
    bare, late, none = (
        _ask(_with_codes(stocked, coded=coded), question, keep_weak=True, rerank=asked)
        for coded, asked in ((0, "late"), (100, None), (100, "none"))
    )
    assert late.hits[0].signals.sentence is not None
    assert late.hits[0].score > plain.hits[0].score
    assert (
        [hit.score for hit in bare.hits]
        == [hit.score for hit in none.hits]
        == [hit.score for hit in plain.hits]
    )


def test_late_interaction_where_it_is_not_possible_is_refused(stock: Shelve) -> None:
    stocked = stock(NORMANS, own=True)
    with pytest.raises(InvalidInput, match="LATE_INTERACTION_MAX_CHUNKS"):
        _ask(stocked.retriever(), "the Norse", rerank="late")
    with pytest.raises(InvalidInput, match="relative_score"):
        _ask(_with_codes(stocked, coded=100), "the Norse", rerank="late", fusion="dense")
    assert (
        _ask(_with_codes(stocked, coded=100), "the Norse", fusion="dense").hits[0].signals.sentence
        is None
    )


def test_a_reader_that_is_left_out_is_refused(stock: Shelve) -> None:
    with pytest.raises(InvalidInput, match="READER=false"):
        _ask(stock(NORMANS).retriever(), "the Norse", rerank="cross_encoder")


def test_modes_bound_the_slots(stock: Shelve) -> None:
    many = [
        passage(f"Normandy fact {i} about {chr(97 + i % 26) * 3}{i}", key=f"fact{i}")
        for i in range(40)
    ]
    stocked = stock(many)
    assert len(_ask(stocked.retriever(), "Normandy fact", mode="general").hits) == 24
    assert len(_ask(stocked.retriever(), "Normandy fact", mode="methodology", top_k=40).hits) == 16
    assert len(_ask(stocked.retriever(), "Normandy fact", top_k=40, keep_weak=True).hits) == 40


def test_the_trace_names_every_step(stock: Shelve) -> None:
    trace = Trace(full=True)
    _ask(stock(NORMANS).retriever(), "leader of the Norse", trace=trace, keep_weak=True)
    stages = trace.report().stages
    assert [stage.name for stage in stages][:7] == [
        "embed",
        "search",
        "complete",
        "fusion",
        "read",
        "rerank",
        "cutoff",
    ]
    fusion = next(stage for stage in stages if stage.name == "fusion")
    assert [item.rank for item in fusion.items or ()] == list(range(1, fusion.n_out + 1))


def test_public_and_papers_do_not_mix(stock: Shelve) -> None:
    public = passage("Rollo in the encyclopedia", key="wiki", library=Library.PUBLIC)
    found = _ask(stock([*NORMANS, public]).retriever(), "Rollo", keep_weak=True)
    assert "wiki" not in _keys(found)


def test_a_passage_longer_than_the_embedder_reads_is_found_by_its_words(stock: Shelve) -> None:
    stocked = stock(NORMANS[1:], bare=[passage("heron " * 300, key="long")])
    retriever = stocked.retriever(embed_on_query_budget_ms=10_000.0)

    found = _ask(retriever, "heron", keep_weak=True, top_k=1)

    assert _keys(found) == ["long"]
    assert [notice.code for notice in found.notices] == ["vectors_missing"]


def test_no_passage_stands_above_one_that_has_the_code_of_the_question(stock: Shelve) -> None:
    notes = [
        passage(f"{code}: the {part} was checked and needs hours of work, hours of work", key=code)
        for code, part in (
            ("WO-24-0346", "mast"), ("WO-24-0347", "sail"), ("10.0.28.5", "keel"), ("10.0.0.1", "oar"),
        )
    ]  # fmt: skip
    retriever = stock(notes).retriever()
    for code in ("WO-24-0347", "10.0.0.1"):
        found = _ask(retriever, f"How many hours of work does {code} need?", keep_weak=True)
        assert _keys(found)[0] == code
        scores = [hit.score for hit in found.hits]
        assert scores == sorted(scores, reverse=True)


def test_a_date_of_the_question_is_found_in_another_form(stock: Shelve) -> None:
    notes = [
        passage(f"The board met on {day} in the {place}.", key=place)
        for day, place in (("3 May 2024", "tower"), ("2024-03-05", "mill"), ("5.3.2023", "hall"))
    ]
    found = _ask(stock(notes).retriever(), "meeting on 5 March 2024", keep_weak=True)
    assert _keys(found)[0] == "mill"
