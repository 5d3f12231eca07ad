from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.core.types import Article, Library
from app.ingest.bulk import BulkIndexer, BulkTask, LinkCounts, MissingPolicy, RunNotes
from app.ingest.options import IngestOptions
from app.storage.options import IndexOptions
from app.storage.store import IndexStore


def wiki(key: str, source: str, redirect_to: str | None = None) -> Article:
    return Article(key, "1", f"Article {key}", "wikitext", source, redirect_to=redirect_to)


def test_links_are_counted_once_an_article_under_the_title_as_mediawiki_compares_it() -> None:
    counts = LinkCounts()
    counts.add(
        wiki(
            "1",
            "[[Penguin]] and [[penguin|those birds]], [[ Emperor_penguin#Diet|diet]],"
            " [[:Category:Birds]]",
        )
    )
    counts.add(
        wiki("2", "[[Penguin|a [[nested]] one]] [[File:P.jpg|thumb|the [[Emperor penguin]]]]")
    )
    assert counts.of("Penguin") == counts.of("penguin") == 2
    assert counts.of("Emperor penguin") == 2
    assert counts.of("Nested") == 1
    assert counts.of("Nobody links here") == 0
    assert counts.total == 7


def test_a_redirect_counts_as_one_link_to_its_target() -> None:
    counts = LinkCounts()
    counts.add(wiki("1", "#REDIRECT [[Penguin]] {{R from [[plural]]}}", redirect_to="Penguin"))
    assert (counts.of("Penguin"), counts.of("Plural")) == (1, 0)


def test_pages_that_are_no_articles_do_not_count() -> None:
    counts = LinkCounts()
    counts.add(Article("1", "1", "Talk:Penguin", "wikitext", "[[Penguin]]", namespace=1))
    assert (counts.of("Penguin"), counts.total) == (0, 0)


def test_pages_of_an_archive_link_by_relative_paths() -> None:
    page = """<p><a href="../A/Emperor_penguin#Diet">one</a> <a class="x" href='Caf%C3%A9'>two</a>
    <a href="https://example.org/Penguin">not ours</a> <a href="#top">nor this</a> <A HREF="./Adelie_penguin">three</A></p>"""
    counts = LinkCounts()
    counts.add(Article("1", "1", "Penguin", "html", page))
    assert [
        counts.of(title)
        for title in ("Emperor penguin", "Caf\u00e9", "Adelie penguin", "Penguin", "Top")
    ] == [1, 1, 1, 0, 0]


def test_clean_text_has_no_links() -> None:
    counts = LinkCounts()
    counts.add(Article("1", "1", "Notes", "text", "[[Penguin]] in double brackets"))
    assert counts.total == 0


# Redirects are other titles.


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexStore]:
    with IndexStore(IndexOptions(tmp_path, tmp_path / "chroma"), vector_store="off") as opened:
        yield opened


def index(
    store: IndexStore, articles: Sequence[Article], missing: MissingPolicy = "remove"
) -> None:
    task = BulkTask(Library.PUBLIC, "w", IngestOptions())
    BulkIndexer(store.writer, store.ledger).run(task, articles, missing=missing)


def found(store: IndexStore, words: str) -> set[str]:
    ids = [hit.chunk_id for hit in store.lexical.search(Library.PUBLIC, words, 9)]
    passages = store.catalog.passages(Library.PUBLIC, ids).values()
    return {passage.document.title for passage in passages}


def redirect(key: str, title: str, target: str) -> Article:
    return Article(key, f"to {target}", title, "wikitext", "", redirect_to=target)


TOWN = Article("2", "1", "Tarnmoss", "wikitext", "It lies on a lake. [[Hill]]")
HILL = Article("3", "1", "Hill", "wikitext", "A high place.")


def test_words_find_an_article_by_its_redirects_in_any_order_and_after_each_import(
    store: IndexStore,
) -> None:
    first, last = redirect("1", "Old Weir", "Tarnmoss"), redirect("4", "H2O", "Tarnmoss")
    index(store, [first, TOWN, HILL, last])
    assert found(store, "weir") == found(store, "h2o") == {"Tarnmoss"}
    newer = Article("2", "2", "Tarnmoss", "wikitext", "It lies on a wide lake.")
    index(store, [first, newer, HILL])
    assert (found(store, "weir"), found(store, "h2o")) == ({"Tarnmoss"}, set())
    assert found(store, "wide") == {"Tarnmoss"}
    index(store, [newer, HILL, redirect("1", "Old Weir", "Hill")])
    assert found(store, "weir") == {"Hill"}
    assert store.fsck.run().faults == ()


def test_a_part_of_a_dump_takes_no_title_away(store: IndexStore) -> None:
    index(store, [redirect("1", "Old Weir", "Tarnmoss"), TOWN, HILL])
    index(store, [redirect("5", "Aqua", "Tarnmoss"), TOWN], "keep")
    assert found(store, "weir") == found(store, "aqua") == {"Tarnmoss"}


def test_other_spellings_of_the_same_words_are_no_other_title(
    request: pytest.FixtureRequest,
) -> None:
    notes = RunNotes()
    request.addfinalizer(notes.close)
    for title in ("tarn-moss", "TARN MOSS", "The old Tarn", "Old tarn", "old Tarn", "\u6e6f"):
        notes.add(redirect(title, title, "tarn Moss"))
    notes.add(redirect("x" * 2_000, "x" * 2_000, "Tarn Moss"))
    assert notes.titles_of("Tarn Moss") == "\u6e6f\nOld tarn\nThe old Tarn"
    assert notes.titles_of("Unknown") == ""
