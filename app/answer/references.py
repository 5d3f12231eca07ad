"""Tie a draft's citations to its list of references, and that list to documents.

A reference is an entry below a heading such as "References". A citation is `[12]`, `[3, 5]`,
`[4-6]`, `(Baker, 2020)`, `Baker et al. (2020)`, or `[@key]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.core.languages import LANGUAGES
from app.core.text import words
from app.core.types import Document, Reference

_HEADINGS = "|".join(one.reference_lists for one in LANGUAGES.values() if one.reference_lists)
_LIST = re.compile(
    rf"^[ \t]*(?:#{{1,6}}[ \t]+|\*\*)?(?:\d+\.?[ \t]+)?(?:{_HEADINGS})[ \t]*(?:\*\*)?:?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERED = re.compile(r"[ \t]*(?:[-*][ \t]+)?(?:\[(\d{1,4})\]|(\d{1,4})[.)](?=[ \t]))[ \t]*")
_KEYED = re.compile(r"[ \t]*(?:[-*][ \t]+)?\[?@([\w:./-]*\w)\]?[ \t:]*")
_BULLET = re.compile(r"[ \t]*[-*\u2022][ \t]+")
_YEAR = re.compile(r"(?<![\d.-])((?:1[5-9]|20)\d\d)([a-z])?(?![\d-])")
_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>]+", re.IGNORECASE)
"""As Crossref recommends to find them."""
_ARXIV = re.compile(r"\b(?:arxiv[:.\s/]*(?:abs/|pdf/)?)(\d{4}\.\d{4,5})", re.IGNORECASE)
_LEAST_TITLE = 3
"""Words from which a title alone tells a document; a shorter one needs the year too."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A reference as the draft has it."""

    text: str
    start: int
    """Of its characters in the draft."""
    end: int
    label: str
    """Its number or key; empty: it is cited by name and year."""


def entries_of(text: str) -> tuple[Entry, ...]:
    """Return the entries of a draft's last list of references, in order; none without a list."""
    heads = list(_LIST.finditer(text))
    if not heads:
        return ()
    begin = heads[-1].end()
    lines = [(m.start() + begin, m.group()) for m in re.finditer(r"[^\n]*\n?", text[begin:])]
    labelled = any(_label(line) for _, line in lines)
    spaced = any(
        not line.strip() for _, line in lines[1:-1]
    )  # entries stand apart, lines of one do not
    found: list[tuple[int, int]] = []
    apart = True
    for start, line in lines:
        said = line.strip()
        if not said:
            apart = True
            continue
        if re.match(r"#{1,6}[ \t]", said):
            break
        opens = bool(_label(line)) if labelled else apart or not spaced or bool(_BULLET.match(line))
        if opens or not found:
            found.append((start, start + len(line.rstrip())))
        else:
            found[-1] = found[-1][0], start + len(line.rstrip())
        apart = False
    return tuple(_entry(text, start, end) for start, end in found)


def _label(line: str) -> str:
    if numbered := _NUMBERED.match(line):
        return numbered[1] or numbered[2]
    keyed = _KEYED.match(line)
    return keyed[1] if keyed else ""


def _entry(text: str, start: int, end: int) -> Entry:
    line = text[start:end]
    mark = _NUMBERED.match(line) or _KEYED.match(line) or _BULLET.match(line)
    said = " ".join(line[mark.end() if mark else 0 :].split())
    return Entry(said, start, end, _label(line))


# Which documents a sentence cites.

_MARKS = re.compile(r"\[(\d{1,4}(?:\s*(?:[,;]|-|\u2013)\s*\d{1,4})*)\]")
_RANGE = re.compile(r"(\d+)\s*[-\u2013]\s*(\d+)")
_KEYS = re.compile(r"@([\w:./-]*\w)")
_NAME = r"[^\W\d_a-z][\w'\u2019-]+"
_NARRATIVE = re.compile(
    rf"({_NAME})(?:,? (?:et al\.?|and {_NAME}|& {_NAME}|und {_NAME}|y {_NAME}|{_NAME}))*,? "
    r"\(?((?:1[5-9]|20)\d\d[a-z]?)\b"
)


def cited_in(sentence: str, entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the places of the references that a sentence names, in their order."""
    if not entries:
        return ()
    labels = set(_KEYS.findall(sentence))
    for mark in _MARKS.findall(sentence):
        labels |= set(re.findall(r"\d+", mark))
        for first, last in _RANGE.findall(mark):
            labels |= {str(n) for n in range(int(first), min(int(last), int(first) + 50) + 1)}
    named = {(name.casefold(), year) for name, year in _NARRATIVE.findall(sentence)}
    return tuple(
        at
        for at, one in enumerate(entries)
        if one.label in labels - {""}
        or any(year in one.text and name in words(one.text)[:12] for name, year in named)
    )


_IN_BRACKETS = re.compile(
    r"[ \t]*(?:\[[^\[\]]*@[^\[\]]*\]|\([^()]*\b(?:1[5-9]|20)\d\d[a-z]?\b[^()]*\))"
)


def without_citations(sentence: str, entries: Sequence[Entry]) -> str:
    """Return a sentence without the brackets that cite an entry: they claim nothing."""
    if not cited_in(sentence, entries):
        return sentence
    return _IN_BRACKETS.sub("", sentence)


# What the library has of a list of references.


def look_up(entries: Sequence[Entry], documents: Iterable[Document]) -> tuple[Reference, ...]:
    """Return each reference with the document that it means, and in what the two differ.

    A document is meant where its arXiv id or DOI stands in the entry, or its title, word for word.
    """
    readings = [_Reading(one) for one in entries]
    best: list[tuple[int, Document] | None] = [None] * len(entries)
    for document in documents:
        title = words(document.title)
        for at, reading in enumerate(readings):
            how_sure = reading.means(document, title)
            kept = best[at]
            if how_sure and (kept is None or how_sure > kept[0]):
                best[at] = how_sure, document
    return tuple(
        _looked_up(reading, kept[1] if kept else None)
        for reading, kept in zip(readings, best, strict=True)
    )


class _Reading:
    """An entry with what it is compared by."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.words = words(entry.text)
        self.line = f" {' '.join(self.words)} "
        self.years = [year for year, _ in _YEAR.findall(entry.text)]
        self.codes = {code.rstrip(".,;)").casefold() for code in _DOI.findall(entry.text)}
        self.arxiv = set(_ARXIV.findall(entry.text))

    def means(self, document: Document, title: Sequence[str]) -> int:
        """Return 0 if the document is another one; the more, the surer."""
        own = {
            value.casefold() for value in document.metadata.values() if isinstance(value, str)
        } | {code.casefold() for code in _DOI.findall(document.source_url or "")}
        if self.codes & own:
            return 1000
        if document.arxiv_id and document.arxiv_id.split("v")[0] in self.arxiv:
            return 999
        same_year = document.year is not None and str(document.year) in self.years
        if not title or f" {' '.join(title)} " not in self.line:
            return 0
        return len(title) if len(title) >= _LEAST_TITLE or same_year else 0


def _looked_up(reading: _Reading, document: Document | None) -> Reference:
    entry = reading.entry
    told = Reference(entry.text, entry.start, entry.end, entry.label, "not_there", None, None, ())
    if document is None:
        return told
    differs = []
    if document.year is not None and reading.years and str(document.year) not in reading.years:
        differs.append(f"year {document.year}")
    missing = [name for name in document.authors[:1] if not _family(name) & set(reading.words)]
    differs += [f"author {name}" for name in missing]
    if f" {' '.join(words(document.title))} " not in reading.line:
        differs.append(f"title {document.title}")
    return replace(
        told,
        state="differs" if differs else "found",
        doc_id=document.doc_id,
        title=document.title,
        differs=tuple(differs),
    )


def _family(name: str) -> set[str]:
    """Return what a name may be called by: `Baker, Ann` and `Ann Baker` by Baker."""
    first, comma, _ = name.partition(",")
    said = words(first if comma else name)
    return set(said if comma else said[-1:])
