"""The full trace: every candidate at every step, and why it stayed or fell."""

from __future__ import annotations

from app.core.trace import Trace
from app.core.types import Library, StageTrace
from app.retrieval.request import SearchRequest
from tests.stores import passage
from tests.unit.retrieval.conftest import Shelve

TEXT = "the copper kettle boils on the iron stove while the baker kneads the morning bread"
PASSAGES = [
    passage(f"{TEXT} today", key="a"),
    passage(f"{TEXT} again", key="b"),
    passage("a kettle of copper stood in the hall of the old house by the sea", key="c"),
    passage("the copper roof turned green in the rain of many winters", key="a", ordinal=1),
    *(
        passage(f"an unrelated line number {i} about ships and harbours", key=f"x{i}")
        for i in range(5)
    ),
]


def _stages(stock: Shelve, *, top_k: int, keep_weak: bool = False) -> dict[str, StageTrace]:
    trace = Trace(full=True)
    request = SearchRequest(
        "copper kettle on the iron stove", Library.PAPERS, top_k=top_k, keep_weak=keep_weak
    )
    stock(PASSAGES).retriever().retrieve(request, trace)
    return {stage.name: stage for stage in trace.report().stages}


def test_counts_of_items_agree_with_the_stage(stock: Shelve) -> None:
    for keep_weak in (False, True):
        stages = _stages(stock, top_k=2, keep_weak=keep_weak)
        for name in ("rerank", "cutoff", "diversity"):
            items = stages[name].items or ()
            assert len(items) == stages[name].n_in, name
            assert sum(item.kept for item in items) == stages[name].n_out, name
            assert [item.rank for item in items] == list(range(1, len(items) + 1)), name
        assert len(stages["fusion"].items or ()) == stages["fusion"].n_out


def test_the_cutoff_names_the_figure_and_the_limit(stock: Shelve) -> None:
    items = _stages(stock, top_k=5)["cutoff"].items or ()
    fallen = [item for item in items if not item.kept]
    assert fallen
    for item in items:
        figure, limit = (float(part.split()[1]) for part in item.reason.split(", "))
        assert (figure >= limit) == item.kept or abs(figure - limit) < 0.01, item.reason


def test_a_near_duplicate_says_whose(stock: Shelve) -> None:
    items = _stages(stock, top_k=3)["diversity"].items or ()
    reasons = [item.reason for item in items if not item.kept]
    assert any(reason.startswith("says nearly the same as number 1") for reason in reasons), reasons


def test_what_is_kept_as_weak_says_so(stock: Shelve) -> None:
    items = _stages(stock, top_k=5, keep_weak=True)["cutoff"].items or ()
    assert all(item.kept for item in items)
    assert any(item.reason.endswith("kept as weak") for item in items)


def test_no_items_without_a_full_trace(stock: Shelve) -> None:
    trace = Trace()
    stock(PASSAGES).retriever().retrieve(SearchRequest("copper", Library.PAPERS), trace)
    assert all(stage.items == () for stage in trace.report().stages)
