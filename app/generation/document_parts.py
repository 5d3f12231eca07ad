"""Cut a document's passages into the parts that a summary or a checklist goes through."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.core.text import word_count
from app.core.types import Evidence

LEFT_OUT = frozenset({"references", "contents", "acknowledgements", "appendix"})
"""Sections that say nothing of their own, or repeat in detail what stands in front."""
BODY = "body"
_MOST_HEADING_WORDS = 10
_HEADING = re.compile(r"\s*(?:#{1,6}\s+)?(?P<title>[^\n]{2,90})\n")
_MAIN = re.compile(r"\s*\d{1,2}\.?\s+[A-Z]")
_NUMBER = re.compile(r"\A(?:\d{1,2}(?:\.\d{1,2})*|[A-H]|[IVX]{1,5})[.):]?\s+")
_FIGURES = re.compile(r"\d\D+\d")
_ENDS = (".", "!", "?", ",", ";", ":")


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """Consecutive passages of one document under one heading."""

    name: str
    """As a reader sees it; empty where the document has no headings."""
    section: str
    """The normalised section of its first passage."""
    evidence: tuple[Evidence, ...]

    @property
    def characters(self) -> int:
        """Length of the text; overlaps of passages count twice."""
        return sum(len(item.hit.passage.chunk.text) for item in self.evidence)


def document_parts(evidence: Sequence[Evidence]) -> tuple[DocumentPart, ...]:
    """Return a document's parts in order, those that say nothing left out.

    A part ends where the section changes or, in text without known sections, where a passage
    begins with a heading. The front matter of a paper, before its abstract, is no part.

    Args:
        evidence: All passages of one document, in order.
    """
    groups: list[list[Evidence]] = []
    for item in evidence:
        if not groups or _begins(groups[-1][-1], item):
            groups.append([])
        groups[-1].append(item)
    sections = {item.hit.passage.chunk.section for item in evidence}
    parts = [_part(group) for group in groups if group[0].hit.passage.chunk.section not in LEFT_OUT]
    if len(parts) > 1 and "abstract" in sections and parts[0].section == BODY:
        parts = parts[1:]
    return tuple(parts)


def joined_parts(parts: Sequence[DocumentPart], most: int) -> tuple[DocumentPart, ...]:
    """Return at most so many parts: the two shortest neighbours are joined, repeatedly."""
    found = list(parts)
    while len(found) > most:
        lengths = [one.characters + other.characters for one, other in pairwise(found)]
        at = lengths.index(min(lengths))
        one, other = found[at : at + 2]
        longer = one if one.characters >= other.characters else other
        found[at : at + 2] = [
            DocumentPart(longer.name, longer.section, one.evidence + other.evidence)
        ]
    return tuple(found)


def _begins(before: Evidence, item: Evidence) -> bool:
    """Return whether a passage begins another part than the one before it.

    Within a known section only a main heading does: "3 Data", not "3.1 Sources".
    """
    section = item.hit.passage.chunk.section
    if before.hit.passage.chunk.section != section:
        return True
    headed = heading_of(item) is not None
    return headed and (section == BODY or _MAIN.match(item.hit.passage.chunk.text) is not None)


def _part(group: Sequence[Evidence]) -> DocumentPart:
    section = group[0].hit.passage.chunk.section
    title = heading_of(group[0])
    if title is None or title == group[0].hit.passage.document.title:
        title = "" if section == BODY else section.capitalize()
    return DocumentPart(title.capitalize() if title.isupper() else title, section, tuple(group))


def text_below_heading(item: Evidence) -> str:
    """Return a passage's text without the heading that it begins with."""
    text = item.hit.passage.chunk.text
    match = _HEADING.match(text)
    return text[match.end() :] if match is not None and heading_of(item) is not None else text


def heading_of(item: Evidence) -> str | None:
    """Return the heading that a passage begins with, without its number; None if none."""
    match = _HEADING.match(item.hit.passage.chunk.text)
    if match is None:
        return None
    title = _NUMBER.sub("", match["title"].strip())
    if not title or title.endswith(_ENDS) or not title[0].isupper() or "|" in title:
        return None
    if _FIGURES.search(title):  # a row of a table that a page break left alone
        return None
    return title if word_count(title) <= _MOST_HEADING_WORDS else None
