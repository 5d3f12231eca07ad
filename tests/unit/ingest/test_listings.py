"""Feeds and sitemaps list addresses; a page that speaks of them does not."""

import pytest

from app.ingest.parsers.listings import MOST_ADDRESSES, addresses_in, may_list


def _listed(text: str) -> list[str]:
    content = text.encode()
    return (
        list(addresses_in(content, "https://example.org/feed").addresses)
        if may_list(content)
        else []
    )


def test_addresses_are_listed_once_in_order_and_made_whole() -> None:
    rdf = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns="http://purl.org/rss/1.0/"><channel><link>https://example.org/</link></channel>'
        "<item><link>/b</link></item><item><link> https://example.org/a </link></item>"
        "<item><link>/b</link></item><item><title>no link</title></item></rdf:RDF>"
    )
    assert _listed(rdf) == ["https://example.org/b", "https://example.org/a"]


@pytest.mark.parametrize(
    "text",
    [
        "<html><body>an &lt;rss&gt; feed<item><link>/a</link></item></body></html>",
        "<rss><channel><item><link>/a</link>",  # cut off
        '<!DOCTYPE rss [<!ENTITY a "b">]><rss><item><link>/&a;</link></item></rss>',
        "%PDF-1.7 <rss>",
    ],
)
def test_what_is_no_feed_lists_nothing(text: str) -> None:
    assert _listed(text) == []


def test_a_listing_without_end_is_cut() -> None:
    items = "".join(f"<item><link>/{n}</link></item>" for n in range(3 * MOST_ADDRESSES))
    assert len(_listed(f"<rss><channel>{items}</channel></rss>")) == MOST_ADDRESSES
