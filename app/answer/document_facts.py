"""Answer what is asked of documents themselves: who wrote one, when, its version, which there are.

The answer is a sentence of its opening, where that stands; who wrote it and when are known from
the record of the document. Which documents there are is known from the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from app.answer.intent import folded, without_politeness
from app.answer.steps import CERTAIN, AnswerSteps, Found, Written, closed
from app.answer.targets import Targets, with_headings
from app.answer.writing import Outcome
from app.core.types import Document, Evidence, SourcesEvent, TokenEvent
from app.generation.language.claims import content_tokens
from app.generation.quote.candidates import Candidate, candidates, quotable
from app.generation.quote.quoting import QuotedText, Quoting

Fact = Literal["author", "date", "version", "recipient"]

_MAIL = r"(?P<named>(?:the|this|that|my) (?:e-?mail|mail|message|letter|reply)\b.*?)"
_ASKS: tuple[tuple[Fact, re.Pattern[str]], ...] = (
    (
        "author",
        re.compile(
            r"(?:who (?:wrote|has written|authored|edited|compiled)(?! to )|by whom (?:was|is)"
            r"|who (?:is|are|was|were) the (?:authors?|editors?|writers?) of|authors? of)"
            r" (?P<named>.+?)(?: written)?\W*\Z"
        ),
    ),
    (
        "date",
        re.compile(
            r"(?:when|in (?:which|what) year) (?:was|were|did) (?P<named>.+?)"
            r" (?:written|published|released|issued|printed|appear|come out)\W*\Z"
        ),
    ),
    (
        "date",
        re.compile(
            rf"(?:when|on (?:which|what) (?:day|date)) (?:was|did) {_MAIL}"
            r" (?:sent|come|arrive)\W*\Z"
        ),
    ),
    (
        "recipient",
        re.compile(
            rf"(?:to )?whom? (?:is|was|did) {_MAIL}"
            r" (?:addressed|sent|written|go|meant)(?: to)?\W*\Z"
        ),
    ),
    (
        "recipient",
        re.compile(
            rf"who (?:got|gets|received|receives|(?:is|are) the recipients? of) {_MAIL}\W*\Z"
        ),
    ),
    (
        "version",
        re.compile(
            r"(?:which|what) (?:version|release|edition|revision)"
            r" (?:(?:is|of) )?(?P<named>.+?)(?: is (?:this|it))?\W*\Z"
        ),
    ),
)
_THIS = re.compile(r"(?:the|this|these|an?|my|our)\s+")
_SAYS: Mapping[Fact, re.Pattern[str]] = MappingProxyType(
    {
        "author": re.compile(r"\b(?:written|edited|compiled|prepared) by\b|\bauthors?:"),
        "date": re.compile(
            r"\Adate: |\b(?:published|released|issued|printed|dated|version|as of)\b"
        ),
        "recipient": re.compile(r"\A(?:to|an|para|\u00e0): \S"),
        "version": re.compile(r"\b(?:version|release|edition|revision)\b.{0,40}\d"),
    }
)
_OPENING = 4
"""Passages."""
_DOCUMENTS = r"(?:documents?|files?|papers?|texts?|articles?|books?)"
_MY = r"(?:the|my|this|your|our)"
_WITHIN = rf"(?: in {_MY} (?:library|collection))?"
_ASKS_WHICH = re.compile(
    rf"(?:(?:which|what|how many) {_DOCUMENTS}"
    rf" (?:(?:are|is) (?:there|here)|do (?:you|i|we) have|have (?:i|we) (?:uploaded|added|got)"
    rf"|can you (?:read|see)|are(?= in ))"
    rf"|(?:list|show|name)(?: me)?(?: all)?(?: of)?(?: {_MY})? {_DOCUMENTS}"
    rf"|what (?:have (?:i|we) (?:uploaded|added)|is(?= in {_MY} library)))"
    rf"{_WITHIN}(?: do you have| are there)?\W*\Z"
)
_ASKS_ABOUT = re.compile(
    rf"(?:which|what) (?:of {_MY} )?{_DOCUMENTS}"
    r" (?:(?:are|is) about|deals? with|mentions?|covers?"
    r"|(?:talks?|speaks?|tells?|writes?) (?:about|of)) (?P<about>.+?)\W*\Z"
)


class FactWish(NamedTuple):
    """What is asked of a document, and the words that name it."""

    fact: Fact
    named: str


def fact_wish(question: str) -> FactWish | None:
    """Return what a question asks of a document itself; None if it asks for something else."""
    text = without_politeness(question)
    plain = folded(text)
    for fact, pattern in _ASKS:
        if found := pattern.match(plain):
            named = text[slice(*found.span("named"))]
            return FactWish(fact, named[lead.end() :] if (lead := _THIS.match(named)) else named)
    return None


def which_documents(question: str) -> str | None:
    """Return what the documents asked for are about; empty: all are; None: none are asked for."""
    text = without_politeness(question)
    plain = folded(text)
    if asked := _ASKS_ABOUT.match(plain):
        return text[slice(*asked.span("about"))]
    return "" if _ASKS_WHICH.match(plain) else None


def list_of(
    found: Found, openings: Mapping[Document, Sequence[Evidence]], said: str, writer: str
) -> AnswerSteps:
    """Return the steps of a list of documents, each with a sentence of its passage.

    It is the one that holds most of the question. `said` stands in front; `writer` is named as the
    one who quoted.
    """
    quoting, asked = Quoting(), set(content_tokens(found.asked.text))
    quoting.say(f"{said}\n")
    for document, opening in openings.items():
        title = " ".join(document.title.split())
        file = f" ({document.filename})" if document.filename not in ("", document.title) else ""
        quoting.say(f"\n- {title}{file}")
        usable = [one for one in candidates(opening) if quotable(one) and one.text != title]
        if usable:
            quoting.say(": ")
            quoting.quote(max(usable, key=lambda one: len(asked.intersection(one.read))))
    return _steps(found, quoting.done(), writer)


def opening_of(targets: Targets, document: Document) -> Sequence[Evidence]:
    """Return the passages where a document speaks of itself."""
    return with_headings(targets.catalog, targets.evidence([document])[:_OPENING])


def fact_of(
    found: Found, targets: Targets, document: Document, fact: Fact, writer: str
) -> AnswerSteps | None:
    """Return the steps of an answer from a document's opening, else its record; None without one.

    `writer` is named as the one who quoted it.
    """
    opening = opening_of(targets, document)
    told = _telling(candidates(opening), document, fact)
    known = {"author": ", ".join(document.authors), "date": str(document.year or "")}.get(fact)
    if told is None and not known:
        return None
    quoting = Quoting([replace(one, n=1) for one in opening[:1]])
    if told is None:
        quoting.say(f"{' '.join(document.title.split())}: {known}.")
    else:
        evidence: Evidence = replace(told.item, n=1)
        quoting = Quoting([evidence])
        quoting.quote(replace(told, item=evidence))
    return _steps(found, quoting.done(), writer)


def _telling(found: Sequence[Candidate], document: Document, fact: Fact) -> Candidate | None:
    """Return the first sentence that says it in so many words, else that holds what is known."""
    names = [author.split()[-1].lower() for author in document.authors if author.split()]
    known = {"author": names, "date": [str(document.year)] if document.year else []}.get(fact, [])
    usable = [(one, one.text.lower()) for one in found if quotable(one)]
    saying = [one for one, text in usable if _SAYS[fact].search(text)]
    holding = [one for one, text in usable if any(part in text for part in known)]
    told = [one for one in saying if one in holding] or (saying if fact != "date" else holding)
    return next(iter(told or holding), None)


def _steps(found: Found, quoted: QuotedText, writer: str) -> AnswerSteps:
    found = replace(found, evidence=quoted.evidence)
    yield SourcesEvent(found.evidence)
    yield TokenEvent(quoted.text)
    found.asked.cancel.raise_if_cancelled()
    return closed(Written(found, Outcome(quoted.text, quoted.sentences), writer, CERTAIN))
