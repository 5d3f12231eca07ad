"""Count how many articles link to a title, in constant memory.

A count-min sketch (Cormode & Muthukrishnan 2005): never less than the truth, and more only where a
title shares both its counters with others. Of eleven million titles (100,000 / 2^23)^2 times as
many, 1,600, would be among the hundred thousand most linked by such an accident, which does no harm
to an order in which documents are embedded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from app.core.types import Article
from app.ingest.bulk_work import ARTICLE_NAMESPACE

_SLOTS = 1 << 23
_ROWS = 2
"""32 MB a row; pages of it that are never counted in take no memory."""
_WIKI_LINK = re.compile(r"\[\[\s*:?([^\[\]|#<>{}\n]+)")
_HTML_LINK = re.compile(r"""<a\s[^>]*?href=["']([^"'#?:]+)["'#?]""", re.IGNORECASE)
"""Targets without a scheme: in an archive those are its own articles."""


class LinkCounts:
    """Counts links by target title, compared as MediaWiki does.

    Underscores are spaces; the first letter is a capital. A redirect counts as one link to its
    target; links to a redirect are not passed on.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self._counts: npt.NDArray[np.uint32] = np.zeros((_ROWS, _SLOTS), dtype=np.uint32)
        self.total = 0
        """Links counted so far."""

    def add(self, article: Article) -> None:
        """Count an article's links, each target once; other namespaces do not count."""
        if article.namespace != ARTICLE_NAMESPACE:
            return
        targets = {_title(target) for target in _targets(article)}
        if targets:
            self.total += len(targets)
            for row, slots in zip(self._counts, _slots(targets), strict=True):
                row[slots] += 1

    def of(self, title: str) -> int:
        """Return how many articles link to a title, rarely more."""
        return int(
            min(
                row[slots][0]
                for row, slots in zip(self._counts, _slots([_title(title)]), strict=True)
            )
        )


def _targets(article: Article) -> Iterator[str]:
    if article.redirect_to is not None:
        yield article.redirect_to
    elif article.markup == "wikitext":
        yield from _WIKI_LINK.findall(article.source)
    elif article.markup == "html":
        yield from (
            unquote(target).rpartition("/")[2] for target in _HTML_LINK.findall(article.source)
        )


def _title(target: str) -> str:
    title = target.replace("_", " ").strip()
    return title[:1].upper() + title[1:]


def _slots(titles: Collection[str]) -> list[npt.NDArray[np.int64]]:
    """Return the slots of titles in each row, `[titles]`."""
    numbers = np.fromiter(
        map(hash, titles), np.int64, len(titles)
    )  # of this process: counts never leave it
    return [(numbers >> (32 * row)) & (_SLOTS - 1) for row in range(_ROWS)]
