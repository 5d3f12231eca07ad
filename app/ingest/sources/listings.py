"""Read the addresses that a feed (RSS, Atom) or a sitemap lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from app.core.types import RawDocument

_ROOT = re.compile(rb"<(?:\w+:)?(?:rss|feed|RDF|urlset|sitemapindex)\b")
_HEAD = 4096


def addresses_in(document: RawDocument) -> tuple[list[str], bool]:
    """Return the addresses in order, each once, and whether these are sitemaps; none of a page.

    References:
        RSS 2.0 and 1.0 (`item/link`), RFC 4287 (`entry/link`, `alternate`), sitemaps.org 0.9.
    """
    content = document.content
    if not isinstance(content, bytes) or not _ROOT.search(content[:_HEAD]):
        return [], False
    try:
        root: Element = fromstring(content)
    except (ParseError, DefusedXmlException, ValueError):
        return [], False
    base = document.source_url or document.source_key
    found = dict.fromkeys(urljoin(base, one.strip()) for one in _links(root) if one.strip())
    return list(found), _name(root) == "sitemapindex"


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
