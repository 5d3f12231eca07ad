"""Two libraries in one list."""

from __future__ import annotations

from app.core.types import Hit, Library, Notice
from app.retrieval.request import Retrieval
from app.retrieval.retrievers import merge
from tests.stores import passage


def _found(
    library: Library,
    closenesses: list[float],
    *,
    fallback: bool = False,
    notices: tuple[Notice, ...] = (),
) -> Retrieval:
    hits = tuple(
        Hit(
            passage(f"text {i}", key=f"{library.value}{i}", library=library),
            1.0 - i / 100,
            fallback=fallback,
            closeness=value,
        )
        for i, value in enumerate(closenesses)
    )
    return Retrieval(hits, notices, closenesses[0] if closenesses else 0.0, fallback)


def _libraries(found: Retrieval) -> list[str]:
    return [hit.passage.document.source_key for hit in found.hits]


def test_millions_of_chunks_do_not_drown_a_few_papers() -> None:
    merged = merge(
        {
            Library.PAPERS: _found(Library.PAPERS, [0.4, 0.3]),
            Library.PUBLIC: _found(Library.PUBLIC, [0.9] * 20),
        },
        4,
    )
    assert _libraries(merged) == ["public0", "public1", "papers0", "papers1"]


def test_unused_places_go_to_the_other_library() -> None:
    merged = merge(
        {
            Library.PAPERS: _found(Library.PAPERS, [0.8]),
            Library.PUBLIC: _found(Library.PUBLIC, [0.7] * 9),
        },
        5,
    )
    assert _libraries(merged) == ["papers0", "public0", "public1", "public2", "public3"]
    assert [hit.score for hit in merged.hits] == sorted(
        (hit.score for hit in merged.hits), reverse=True
    )


def test_an_odd_place_goes_to_the_closer_hit() -> None:
    merged = merge(
        {
            Library.PAPERS: _found(Library.PAPERS, [0.9, 0.8, 0.7]),
            Library.PUBLIC: _found(Library.PUBLIC, [0.6] * 3),
        },
        3,
    )
    assert _libraries(merged) == ["papers0", "papers1", "public0"]


def test_fallback_hits_only_where_nothing_better_is() -> None:
    used = Notice("fallback_used", "nothing passed")
    merged = merge(
        {
            Library.PAPERS: _found(Library.PAPERS, [0.2], fallback=True, notices=(used,)),
            Library.PUBLIC: _found(Library.PUBLIC, [0.7, 0.6]),
        },
        5,
    )
    assert _libraries(merged) == ["public0", "public1"]
    assert merged.notices == ()
    assert not merged.fallback
    both = merge({Library.PAPERS: _found(Library.PAPERS, [0.2], fallback=True, notices=(used,))}, 5)
    assert both.fallback
    assert [notice.code for notice in both.notices] == ["fallback_used"]


def test_one_empty_shelf_is_no_news() -> None:
    empty = Retrieval((), (Notice("library_empty", "the library 'papers' is empty"),))
    merged = merge({Library.PAPERS: empty, Library.PUBLIC: _found(Library.PUBLIC, [0.7])}, 3)
    assert merged.notices == ()
    nothing = merge(
        {
            Library.PAPERS: empty,
            Library.PUBLIC: Retrieval((), (Notice("library_empty", "so is 'public'"),)),
        },
        3,
    )
    assert [notice.code for notice in nothing.notices] == ["library_empty", "library_empty"]
    assert nothing.hits == ()
