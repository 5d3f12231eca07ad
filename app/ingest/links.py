"""How many articles of a source link to a title, counted while the source is read, in constant memory.

A count-min sketch (Cormode & Muthukrishnan 2005): never less than the truth, and more only where a title shares both its counters
with others. Of English Wikipedia's seven million articles about one in seventy of the hundred thousand most linked ones would be
there by such an accident, which does no harm to an order in which documents are embedded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from app.core.types import Article

_SLOTS = 1 << 23
_ROWS = 2
"""32 MB a row; pages of it that are never counted in take no memory."""
_WIKI_LINK = re.compile(r"\[\[\s*:?([^\[\]|#<>{}\n]+)")
_HTML_LINK = re.compile(r"""<a\s[^>]*?href=["']([^"'#?:]+)["'#?]""", re.IGNORECASE)
"""Targets without a scheme: in an archive those are its own articles."""


class LinkCounts:
    """Counts links by their target's title; titles compare as MediaWiki's do (underscores are spaces, the first letter is capital).

    A redirect counts as one link to its target; links to a redirect are not passed on.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self._counts: npt.NDArray[np.uint32] = np.zeros((_ROWS, _SLOTS), dtype=np.uint32)
        self.total = 0
        """Links counted so far."""

    def add(self, article: Article) -> None:
        """Count an article's links, each target once."""
        targets = {_title(target) for target in _targets(article)}
        if targets:
            self.total += len(targets)
            for row, slots in enumerate(zip(*map(_slots, targets), strict=True)):
                self._counts[row, list(slots)] += 1

    def of(self, title: str) -> int:
        """Return how many articles link to a title, at least."""
        return int(min(self._counts[row, slot] for row, slot in enumerate(_slots(_title(title)))))


def _targets(article: Article) -> Iterator[str]:
    if article.redirect_to is not None:
        yield article.redirect_to
    elif article.markup == "wikitext":
        yield from _WIKI_LINK.findall(article.source)
    elif article.markup == "html":
        yield from (unquote(target).rpartition("/")[2] for target in _HTML_LINK.findall(article.source))


def _title(target: str) -> str:
    title = target.replace("_", " ").strip()
    return title[:1].upper() + title[1:]


def _slots(title: str) -> tuple[int, ...]:
    number = hash(title)  # of this process: counts never leave it
    return tuple((number >> (32 * row)) % _SLOTS for row in range(_ROWS))
