"""Read the addresses that a feed (RSS, Atom) or a sitemap lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import urljoin
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from app.core.normalisation import clean_name
from app.core.types import Listing

_ROOT = re.compile(rb"<(?:\w+:)?(?:rss|feed|RDF|urlset|sitemapindex)\b")
_HEAD = 4096


MOST_ADDRESSES = 1_000
"""Of one feed or sitemap that are told; far more than are fetched."""


def may_list(content: bytes | Path) -> bool:
    """Return whether this begins like a feed or a sitemap."""
    return isinstance(content, bytes) and _ROOT.search(content[:_HEAD]) is not None


def addresses_in(content: bytes, base: str) -> Listing:
    """Return the addresses in order, each once; none where this is no feed and no sitemap.

    References:
        RSS 2.0 and 1.0 (`item/link`), RFC 4287 (`entry/link`, `alternate`), sitemaps.org 0.9.
    """
    try:
        root: Element = fromstring(content)
    except (ParseError, DefusedXmlException, ValueError):
        return Listing()
    links = (clean_name(one) for one in _links(root))
    whole = (urljoin(base, one) for one in links if one)
    found = dict.fromkeys(islice(whole, MOST_ADDRESSES))
    return Listing(tuple(found), of_sitemaps=_name(root) == "sitemapindex")


def _links(root: Element) -> Iterator[str]:
    for entry in root.iter():
        kind = _name(entry)
        if kind not in ("item", "entry", "url", "sitemap"):
            continue
        for child in entry:
            if _name(child) == "loc" or (_name(child) == "link" and kind == "item"):
                yield child.text or ""
            elif _name(child) == "link" and child.get("rel", "alternate") == "alternate":
                yield child.get("href", "")


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
