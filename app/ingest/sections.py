"""Sections: spans between headings under the names that filters and prompts know."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.core.types import Heading, ParsedDocument

BODY = "body"
CONTENTS = "contents"

# First match wins; titles are lower-case without their number.
_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(rf"(?:{pattern})"))
    for name, pattern in (
        ("abstract", r"abstract\b|summary\Z"),
        (CONTENTS, r"(?:table of )?contents\Z"),
        ("introduction", r"introduction\b|motivation\Z"),
        (
            "related work",
            r"related works?\b|background\b|prior work\b|literature review\b|preliminar",
        ),
        ("references", r"references\b|bibliography\b|works cited\b|literature cited\b"),
        ("acknowledgements", r"acknowledge?ments?\b|funding\Z|author contributions\b"),
        ("appendix", r"appendi(?:x|ces)\b|supplementa"),
        ("conclusion", r"(?:.* and )?(?:conclusions?|future work)\b|concluding\b"),
        ("limitations", r"limitations?\b|threats to validity\b"),
        ("discussion", r"discussions?\b"),
        (
            "results",
            r"(?:(?:main|experimental|empirical|our|key) )?(?:results?|findings)\b|.*\bresults(?:"
            r" and \w+)?\Z",
        ),
        (
            "experiments",
            r"experiment|evaluation\b|empirical\b|ablation|baselines?\b|.*\b(?:experiments?"
            r"|evaluation|ablations?)\Z",
        ),
        (
            "methodology",
            r"methods?\b|methodolog|materials and methods|approach|(?:the )?proposed\b|model\Z"
            r"|model architecture\b",
        ),
        ("methodology", r"our (?:method|approach|model)\b|.*\b(?:methods?|methodology|approach)\Z"),
    )
)
_NUMBER = re.compile(
    r"\A(?:\d{1,2}(?:\.\d{1,2})*|[A-H](?:\.\d{1,2})*|[IVX]{1,5}(?:\.[A-H](?:\.\d{1,2})?)?"
    r"|(?i:chapter|kapitel|chapitre) \d{1,2})"
    r"[.):]?\s+"
)
_LETTER = re.compile(r"\A[A-H](?:\.\d{1,2})*[.)]?\s+\S")
_AFTER_METHOD = frozenset(
    {"experiments", "results", "discussion", "conclusion", "references", "limitations", "appendix"}
)
_PAPER_MARKS = frozenset({"abstract", "introduction", "conclusion", "references"})


@dataclass(frozen=True, slots=True)
class SectionSpan:
    """Characters `[start, end)` of section `name`.

    A heading stands at the start of its own span.
    """

    start: int
    end: int
    name: str


def section_name(title: str) -> str | None:
    """Return the normalised name of a heading, None when it is none of the known ones."""
    plain = _NUMBER.sub("", title).lower().strip(" :.\u2014-")
    return next((name for name, pattern in _NAMES if pattern.match(plain)), None)


def sections(parsed: ParsedDocument) -> tuple[SectionSpan, ...]:
    """Return consecutive spans that cover the text, one per heading, with names.

    A heading directly followed by another one is no span of its own but opens the span of the next.
    A heading without a known name belongs to the section it stands in. In a paper (at least two of
    abstract, introduction, conclusion, references), an unknown main heading between the
    introduction and the experiments is the method, which papers call by its own name, and lettered
    ones behind the references are the appendix. Everything else is `body`.
    """
    names = _name_headings(parsed.headings)
    spans: list[SectionSpan] = []
    position, body, name = 0, 0, BODY
    for heading, own in zip(parsed.headings, names, strict=True):
        if heading.start > position and not _blank(parsed.text, body, heading.start):
            spans.append(SectionSpan(position, heading.start, name))
            position = heading.start
        name, body = own, heading.end
    if position < len(parsed.text):
        spans.append(SectionSpan(position, len(parsed.text), name))
    return tuple(spans)


def _blank(text: str, start: int, end: int) -> bool:
    return start >= end or text[start:end].isspace()


def _name_headings(headings: tuple[Heading, ...]) -> list[str]:
    known = [section_name(heading.title) for heading in headings]
    is_paper = len(_PAPER_MARKS.intersection(name for name in known if name)) >= 2
    names: list[str] = []
    path: list[tuple[int, str]] = []
    seen: set[str] = set()
    for heading, found in zip(headings, known, strict=True):
        while path and path[-1][0] >= heading.level:
            path.pop()
        lettered = "references" in seen and _LETTER.match(heading.title)
        if found is not None and not lettered:
            name = found
        elif path:
            name = path[-1][1]
        else:
            name = _unknown_name(heading, seen) if is_paper else BODY
        if name != CONTENTS:  # nothing stands below it
            path.append((heading.level, name))
        names.append(name)
        seen.add(name)
    return names


def _unknown_name(heading: Heading, seen: set[str]) -> str:
    if "references" in seen:
        return "appendix" if _LETTER.match(heading.title) or "appendix" in seen else BODY
    return "methodology" if "introduction" in seen and not seen & _AFTER_METHOD else BODY
