"""Tell which of several statements of one thing is the newest that is valid.

Two statements are versions of one thing where they say the same with other figures: in two
documents, under two headings, or with their own years. When a version is valid from, the statement
itself says, or the heading above it, a label in the opening of its document ("Valid from 1 May
2024", the date of a mail), the document's title and file name, or its own metadata. Where nothing
does, the time of its file is the latest at which it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.core.dates import LAST_DAY, dates_in
from app.core.labels import FILE_DATE
from app.core.languages import LANGUAGES, words_like
from app.core.types import Document
from app.generation.language.claims import content_tokens
from app.generation.quote.candidates import Candidate
from app.generation.quote.choosing import years_in

_MOST = 4
"""Versions that an answer shows."""
_OPENING = 1_000
"""Characters of a document in which it says from when on it is valid."""
_BEHIND = 40
"""Characters behind a label in which its date stands."""
_FEWEST = 2
"""Words that versions share."""
_LABELS = "|".join(one.dated for one in LANGUAGES.values() if one.dated)
_DATED = re.compile(
    rf"(?:\A|[\n.;(])[ \t>*_#-]*(?:{_LABELS})"
    r"\b[ \t]*:?[ \t]*(?P<date>[^\n]*)",
    re.IGNORECASE,
)
_FILE_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?([0-2]\d|3[01])(?!\d)")
_ASKS_WHEN = words_like(one.past for one in LANGUAGES.values())
"""The past is asked for."""


@dataclass(frozen=True, slots=True)
class Version:
    """A statement, and from when on it is valid: YYYYMMDD, YYYY0000 where only a year is known."""

    said: Candidate
    since: int
    by_file: bool = False
    """Only the time of the file tells."""

    @property
    def shown(self) -> str:
        """The date as a document writes it: a year, or YYYY-MM-DD."""
        year, day = divmod(self.since, 10_000)
        return f"{year}-{day // 100:02}-{day % 100:02}" if day else str(year)


def same_with_other_figures(lead: Candidate, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the statement that leads and those that say the same with other figures."""
    words, figures = _words_and_figures(lead)
    found = [lead]
    if len(words) < _FEWEST or not figures:
        return found
    for other in ranked:
        own_words, own_figures = _words_and_figures(other)
        is_new = all(own_figures != _words_and_figures(one)[1] for one in found)
        apart = other.item.hit.passage.document != lead.item.hit.passage.document
        apart = apart or other.above != lead.above or bool(years_in(other.text))
        if own_words == words and own_figures and is_new and apart:
            found.append(other)
    return found[:_MOST]


def _words_and_figures(one: Candidate) -> tuple[frozenset[str], frozenset[str]]:
    years = years_in(one.text)
    tokens = {token for token in content_tokens(one.text) if token not in years}
    figures = frozenset(token for token in tokens if any(map(str.isdigit, token)))
    return frozenset(tokens - figures), figures


def versions(
    question: str, said: Sequence[Candidate], openings: Mapping[Document, str], today: int
) -> list[Version]:
    """Return versions, the newest that is valid first; none where that cannot be told.

    Args:
        question: One that asks for the past, or for a year, is not about the newest.
        said: What `same_with_other_figures` returned.
        openings: How the documents begin.
        today: YYYYMMDD; what is valid only later comes last.
    """
    if len(said) < 2 or years_in(question) or _ASKS_WHEN.search(question):
        return []
    found = [_version(one, openings.get(one.item.hit.passage.document, "")) for one in said]
    found.sort(key=lambda one: -one.since)
    if not found[-1].since or len({one.since for one in found}) < len(found):
        return []
    if any(new.by_file and not old.by_file for new, old in pairwise(found)):
        return []  # a copy of an old document has a new file
    return sorted(found, key=lambda one: one.since > today)


def _version(one: Candidate, opening: str) -> Version:
    """Return a statement with its date; 0 where nothing tells, not even its file."""
    if since := _since(one, opening):
        return Version(one, since)
    filed = one.item.hit.passage.document.metadata.get(FILE_DATE)
    return Version(one, _date_of(filed) if isinstance(filed, str) else 0, by_file=True)


def _since(one: Candidate, opening: str) -> int:
    """Return from when on a statement is valid; 0 where nothing tells."""
    document = one.item.hit.passage.document
    labelled = (match["date"][:_BEHIND] for match in _DATED.finditer(opening[:_OPENING]))
    said = (value for key, value in document.metadata.items() if key != FILE_DATE)
    own = [value for value in said if isinstance(value, str)]
    for text in (one.text, one.above, *labelled, document.title, document.filename, *own):
        if date := _date_of(text):
            return date
    return document.year * 10_000 if document.year else 0


def _date_of(text: str) -> int:
    """Return the latest date of a text, else its latest year; 0 without one."""
    spaced = _FILE_DATE.sub(r" \1-\2-\3 ", text)
    _, dates = dates_in(spaced)
    whole = [date for date in dates if date > LAST_DAY]
    years = [int(year) * 10_000 for year in years_in(spaced.replace("_", " ").replace("-", " "))]
    return max(whole, default=max(years, default=0))
