"""Recognise requests for a summary, and what they want summarised."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.answer import phrases
from app.answer.intent import any_of, folded, without_politeness
from app.core.types import Question
from app.generation.reading import content_tokens

_EXPLICIT = re.compile(rf"\W*{any_of(phrases.SUMMARIES)}")
_ABOUT = re.compile(rf"\W*(?:{'|'.join(phrases.ABOUTS)})\W*\Z")
_QUOTED = re.compile(r"[\"\u201c\u00ab](?P<title>[^\"\u201d\u00bb]{2,200})[\"\u201d\u00bb]")
_LEADING = re.compile(rf"\W*(?:{any_of(phrases.SUMMARY_LEADS)}\W*)+")
_TRAILING = re.compile(rf"\W*\b{any_of(phrases.SUMMARY_ENDINGS)}\W*\Z")


@dataclass(frozen=True, slots=True)
class SummaryWish:
    """A request for a summary."""

    about: str
    """The title or topic, as typed; empty where the request says "this paper"."""
    explicit: bool
    """Says "summarise". What asks what something is about may be a plain question."""

    @property
    def names_something(self) -> bool:
        """Return whether the request names a document or a topic."""
        return bool(content_tokens(self.about))


def summary_wish(question: str) -> SummaryWish | None:
    """Return what a question wants summarised; None if it asks for no summary."""
    text = without_politeness(question)
    plain = folded(text)
    if match := _EXPLICIT.match(plain):
        return SummaryWish(_named(text[match.end() :]), explicit=True)
    if match := _ABOUT.match(plain):
        group = "title" if match["title"] else "named"
        named = text[slice(*match.span(group))] if match[group] else ""
        return SummaryWish(_named(named), explicit=False)
    return None


def wish_of(question: Question) -> SummaryWish | None:
    """Return what a question wants summarised; None if it asks for something else.

    In the mode `summary` all of its words name the document.
    """
    if question.retrieve_only:
        return None
    if question.mode == "summary":
        return summary_wish(question.text) or SummaryWish(_named(question.text), explicit=True)
    return summary_wish(question.text) if question.mode == "general" else None


def _named(rest: str) -> str:
    """Return the title or topic in the rest of a request, without words around it."""
    if quoted := _QUOTED.search(rest):
        return quoted["title"].strip()
    plain = folded(rest)
    end = len(rest)
    while match := _TRAILING.search(plain, 0, end):
        end = match.start()
    leading = _LEADING.match(plain, 0, end)
    return rest[leading.end() if leading else 0 : end].strip(" \t\n.?!:,;\"'")
