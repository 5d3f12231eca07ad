"""Find figures and dates that differ between a paper and the encyclopedia.

Two sentences are compared when they share enough words about their subject; they disagree when each
gives figures of the same unit and none of one is near any of the other, or some are not where the
sentences are otherwise nearly the same. Years and dates are compared exactly. It is a pointer for
a reader, not a verdict: the trace says
where both sentences stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.core.dates import LAST_DAY, dates_in
from app.core.sentences import sentence_spans
from app.core.text import tokenise
from app.core.types import Disagreement, Evidence, Figures, Library, Notice
from app.generation.reading import content_tokens

MAX_FLAGGED = 5
"""Pairs shown for one question, closest subjects first."""
_MIN_SHARED = 3
_MIN_SHARE = 0.5
"""Of the subject words of the shorter sentence."""
_NEARLY_SAME = 0.8
"""Of the subject words: the sentences say the same thing, so that each of their figures can be
compared."""
_TOLERANCE = 0.01
"""Relative difference under which two figures are the same one, rounded differently."""

_EXACT = frozenset(("year", "date", "day"))
"""Units whose values are the same only when they are equal."""

_FIGURE = re.compile(
    r"(?<![\w.,/-])(?P<sign>[-\u2212])?(?P<number>\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?"
    r"|\d+(?:\.\d+)?)"
    r"(?:\s?(?P<scale>thousand|million|billion|trillion))?(?:\s?(?P<unit>%|\u00b0\s?[CF]"
    r"|[A-Za-z\u00b5\u03bc\u03a9]{1,12}))?"
)
_SCALES: Mapping[str, float] = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_UNITS: Mapping[str, str] = {
    "percent": "%",
    "metre": "m",
    "metres": "m",
    "meter": "m",
    "meters": "m",
    "kilometre": "km",
    "kilometres": "km",
    "kilometer": "km",
    "kilometers": "km",
    "kilogram": "kg",
    "kilograms": "kg",
    "second": "s",
    "seconds": "s",
    "hour": "h",
    "hours": "h",
}
_NOT_UNITS = frozenset(
    "a after an and are as at before but by during for from had has have he his in into is it its"
    " of on or per she since than that"
    " the their they this through to under until was were when where which while who with".split()
)
_NO_FIGURES = re.compile(
    r"\[[\d,;\s\u2013-]+\]|\(\d{1,3}\)|\b\d+s\b"
    r"|\b(?:articles?|chapters?|sections?|figures?|figs?\.|tables?|equations?|parts?|steps?"
    r"|stages?|phases?|types?|versions?|volumes?"
    r"|pages?|numbers?|nos?\.|grades?|levels?|class|rule|paragraphs?) \d[\w().]*(?:(?:, | and | to"
    r" |-)\d[\w().]*)*",
    re.IGNORECASE,
)
"""Numbers that name rather than count: citations, decades, articles of a law, figures of a
paper."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A sentence of a passage with its figures by unit and the words of its subject."""

    evidence: Evidence
    start: int
    """Of the sentence in its document, like `end`."""
    end: int
    subject: frozenset[str]
    figures: Mapping[str, frozenset[float]]


def disagreements(evidence: Sequence[Evidence]) -> tuple[Disagreement, ...]:
    """Return pairs of sentences, papers and public, with different figures.

    For the same thing.

    Args:
        evidence: The passages of one question over both libraries; of a single library the result
            is empty.
    """
    papers = [
        claim
        for item in evidence
        if item.hit.passage.chunk.library is Library.PAPERS
        for claim in _claims(item)
    ]
    public = [
        claim
        for item in evidence
        if item.hit.passage.chunk.library is Library.PUBLIC
        for claim in _claims(item)
    ]
    found: list[tuple[float, Disagreement]] = []
    for paper in papers:
        # only with the sentence nearest to it: what the encyclopedia says of the same thing, not of
        # a neighbouring one
        nearest = max(public, key=lambda article: _shared_subject(paper, article), default=None)
        share = _shared_subject(paper, nearest) if nearest else 0.0
        pair = _contradiction(paper, nearest, share) if nearest and share else None
        if pair is not None:
            found.append((share, pair))
    found.sort(key=lambda pair: -pair[0])
    return tuple(disagreement for _, disagreement in found[:MAX_FLAGGED])


def disagreement_notice(found: Sequence[Disagreement]) -> tuple[Notice, ...]:
    """Return the notice that names the sources to compare; none without a pair."""
    if not found:
        return ()
    pairs = dict.fromkeys(f"[{pair.paper.n}] with [{pair.article.n}]" for pair in found)
    what = "your papers and the encyclopedia give different figures or dates for the same thing"
    return (Notice("libraries_disagree", f"{what}; compare {', '.join(pairs)}"),)


def _claims(item: Evidence) -> list[_Claim]:
    chunk = item.hit.passage.chunk
    claims = []
    for start, end in sentence_spans(chunk.text):
        sentence = chunk.text[start:end]
        figures = figures_by_unit(sentence)
        if figures:
            subject = frozenset(
                token for token in content_tokens(sentence) if not token[0].isdigit()
            )
            claims.append(_Claim(item, chunk.start + start, chunk.start + end, subject, figures))
    return claims


def figures_by_unit(sentence: str) -> dict[str, frozenset[float]]:
    """Return a sentence's figures by unit, or by the next word's stem.

    Years are under `year`, dates as YYYYMMDD under `date`, or MMDD under `day` without a year.
    """
    rest, dates = dates_in(sentence)
    found: dict[str, set[float]] = {}
    for date in dates:
        found.setdefault("date" if date > LAST_DAY else "day", set()).add(float(date))
    for match in _FIGURE.finditer(_NO_FIGURES.sub(" ", rest)):
        number, word = match["number"], (match["unit"] or "").lower()
        value = float(re.sub(r"[,\u00a0\u202f]", "", number)) * _SCALES.get(
            match["scale"] or "", 1.0
        )
        if match["sign"]:
            value = -value
        is_year = (
            len(number) == 4
            and 1000 <= value <= 2100
            and not match["scale"]
            and (not word or word in _NOT_UNITS)
        )
        unit = "year" if is_year else _unit(word)
        found.setdefault(unit, set()).add(value)
    return {unit: frozenset(values) for unit, values in found.items()}


def _unit(word: str) -> str:
    if not word or word in _NOT_UNITS:
        return ""
    known = _UNITS.get(word)
    stems = tokenise(word)
    return known or (stems[0] if len(word) > 2 and stems else word)


def _shared_subject(one: _Claim, other: _Claim) -> float:
    """Return the common share of the shorter subject; 0 if too small to match."""
    shared = len(one.subject & other.subject)
    share = shared / max(1, min(len(one.subject), len(other.subject)))
    return share if shared >= _MIN_SHARED and share >= _MIN_SHARE else 0.0


def _contradiction(one: _Claim, other: _Claim, share: float) -> Disagreement | None:
    """Return the figures of one unit that differ.

    All of them, or some on both sides if the sentences are nearly equal.
    """
    for unit, values in one.figures.items():
        others = other.figures.get(unit, frozenset())
        lone = {a for a in values if not any(_same(a, b, unit) for b in others)}
        lone_others = {b for b in others if not any(_same(a, b, unit) for a in values)}
        agreed = len(lone) < len(values)
        if lone and lone_others and (not agreed or share >= _NEARLY_SAME):
            return Disagreement(_figures(one, lone), _figures(other, lone_others))
    return None


def _same(a: float, b: float, unit: str) -> bool:
    return a == b if unit in _EXACT else abs(a - b) <= _TOLERANCE * max(abs(a), abs(b))


def _figures(claim: _Claim, values: Iterable[float]) -> Figures:
    return Figures(claim.evidence.n, claim.start, claim.end, tuple(sorted(values)))
