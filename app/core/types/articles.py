"""Articles of bulk sources, and the account of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.core.types.vocabulary import Library


@dataclass(frozen=True, slots=True)
class Article:
    """One page of an encyclopedia dump, before its markup is parsed."""

    key: str
    """The page's own id in the source; stable across dumps."""
    revision: str
    """The source's revision id or a content hash; changes whenever the text does."""
    title: str
    markup: Literal["wikitext", "html", "text"]
    source: str
    url: str | None = None
    licence: str | None = None
    redirect_to: str | None = None
    """Target title of a redirect; its source holds no prose."""
    namespace: int = 0
    """MediaWiki namespace number; 0 holds articles."""


ArticleState = Literal["indexed", "redirect", "skipped"]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The outcome of one article of a bulk source."""

    article: str
    revision: str
    state: ArticleState
    reason: str = ""
    """Why it was skipped; empty otherwise."""


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """Entries of one source, to be recorded together."""

    library: Library
    source: str
    entries: Sequence[LedgerEntry]


@dataclass(frozen=True, slots=True)
class LedgerSummary:
    """A source's account: `articles` is always the sum of the others."""

    indexed: int
    redirects: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Counts by reason."""

    @property
    def articles(self) -> int:
        """Pages of the source that were seen."""
        return self.indexed + self.redirects + sum(self.skipped.values())
