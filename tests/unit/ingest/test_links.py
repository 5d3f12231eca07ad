from __future__ import annotations

from app.core.types import Article
from app.ingest.bulk import LinkCounts


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
