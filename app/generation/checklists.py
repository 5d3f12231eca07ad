"""Go through a document for what a method, or repeating it, takes: a list with gaps.

Each point of a list has words that tell a sentence of its kind. The best sentence of the document
is quoted, and what no sentence says is "not found".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.core.text import word_count
from app.core.types import Evidence
from app.generation.candidates import Candidate, candidates
from app.generation.choice import quotable
from app.generation.key_sentences import alike
from app.generation.quoted import Quoting
from app.generation.reading import MAX_QUOTE_CHARS, content_tokens

ListedMode = Literal["methodology", "reproduce"]
"""Modes that are answered by a list."""
NOT_FOUND = "not found"
_UNREAD = frozenset({"references", "contents", "acknowledgements"})
_MIN_WORDS, _MAX_WORDS = 5, 60
_ELSEWHERE = re.compile(r"\W*(?:see|refer to|details (?:are|can be)|figure|table)\b", re.IGNORECASE)
_ELSEWHERE_COST = 2.0
"""Of a sentence that says where to read it, not what it is."""


@dataclass(frozen=True, slots=True)
class ListPoint:
    """One point of a list: what tells a sentence of its kind."""

    name: str
    told_by: re.Pattern[str]
    sections: frozenset[str]
    """Where such sentences stand, if the document says so."""
    most: int = 1
    """Sentences quoted at most."""


def _point(name: str, told_by: str, sections: str, most: int = 1) -> ListPoint:
    return ListPoint(name, re.compile(told_by, re.IGNORECASE), frozenset(sections.split()), most)


_DATA = _point(
    "Data",
    r"\b(?:data ?sets?|corpus|corpora|benchmarks?|collections? of|samples? of|participants|patients"
    r"|subjects|cohort|built (?:the|a) (?:\w+ )?set|collections?|specimens|questionnaires?"
    r"|surveyed|plots|(?:training|test|validation|question) (?:set|data)"
    r"|data (?:was|were|is|are|from)|collected|volunteers)\b",
    "methodology experiments appendix",
    2,
)
_MATERIALS = _point(
    "Materials",
    r"\b(?:materials?|reagents?|purchased|(?:obtained|bought) from|supplied by|instruments?"
    r"|apparatus"
    r"|antibod(?:y|ies)|primers?|cell lines?|equipment|sensors?|camera|microscope|ingredients?"
    r"|made (?:of|from))\b",
    "methodology experiments appendix",
)
_PARAMETERS = _point(
    "Parameters",
    r"(?=.*\d).*\b(?:learning rate|batch size|epochs?|hyper-?parameters?|thresholds?|weight decay"
    r"|dropout|optimi[sz]er|adamw|warm-?up|set to|iterations|temperature|window of|layers"
    r"|dimensions?"
    r"|characters|overlap of|tokens|degrees|concentration|dose|pressure|speed of|frequency|minutes"
    r"|millilit(?:re|er)s?|grams?)\b",
    "methodology experiments appendix",
    2,
)
_CODE = _point(
    "Code",
    r"\b(?:source code|our code|code (?:is|are|and|will|was|can)|github|gitlab|zenodo|repository"
    r"|open[- ]source[d]?|implement(?:ed|ation) (?:is|in|uses|with|was|of|based)|librar(?:y|ies)"
    r" (?:for"
    r"|to)|package|script|software)\b",
    "methodology experiments appendix conclusion",
)
_HARDWARE = _point(
    "Hardware",
    r"\b(?:gpus?|tpus?|cpus?|[avh]100s?|rtx|nvidia|graphics cards?|\w+ cores?|gigabytes|gb of"
    r"|laptop|workstation|computing cluster|processors?|raspberry|personal computer)\b",
    "methodology experiments appendix results",
)
_SEEDS = _point(
    "Seeds and repetitions",
    r"\b(?:random seeds?|seeds? (?:is|was|were|of|set|fixed)\b.*\d|(?:repeated|ran|run)"
    r" .{0,30}\btimes"
    r"|(?:averaged?|mean) (?:over|of|across) .{0,20}\b(?:runs|trials|seeds|repetitions)"
    r"|(?:three|four|five|ten|\d+) (?:independent |random )?(?:runs|seeds|replicates|repetitions)"
    r"|randomi[sz]ed|drawn at random|confidence intervals?|standard (?:deviation|error)s?)\b",
    "methodology experiments results appendix",
)
_MEASURES = _point(
    "Evaluation",
    r"\b(?:evaluat\w+|metrics?|accuracy|f1|recall|precision|bleu|rouge|ndcg\S*|measured (?:by|as"
    r"|with"
    r"|how)|baselines?|compared (?:with|to|against)|significan\w+|we report)\b",
    "methodology experiments results",
    2,
)
_APPROACH = _point(
    "Approach",
    r"\b(?:we (?:propose|introduce|present|use|develop|describe|design|train|apply|compare)d?"
    r"|our (?:method|approach|model|system|framework)|in this (?:paper|study|work)"
    r"|(?:method|approach|process|technique|system) (?:is|was|by|in which|that|consists))\b",
    "abstract introduction methodology",
    2,
)
_PROCEDURE = _point(
    "Procedure",
    r"\b(?:first|second|third|then|next|after(?:wards)?|finally|before|each|every|step|stages?"
    r"|process"
    r"|consists of|is made|are made|works by|by means of|is (?:cut|fed|passed|given|written|scaled)"
    r"|we (?:cut|split|fit|trained|sampled|counted|measured|removed|annotated|asked|varied))\b",
    "methodology",
    4,
)
POINTS: dict[ListedMode, tuple[ListPoint, ...]] = {
    "methodology": (_APPROACH, _PROCEDURE, _DATA, _MATERIALS, _PARAMETERS, _MEASURES),
    "reproduce": (_DATA, _MATERIALS, _PARAMETERS, _MEASURES, _CODE, _HARDWARE, _SEEDS),
}
"""The points of each list, in order."""


def write_checklist(
    quoting: Quoting, mode: ListedMode, question: str, evidence: Sequence[Evidence]
) -> int:
    """Write the list of one document, and return how many points were found.

    Args:
        quoting: Where it is written.
        mode: Which list.
        question: Its words make a sentence more likely.
        evidence: All passages of one document, in order.
    """
    found = _sentences(evidence)
    sections = {one.item.hit.passage.chunk.section for one in found}
    asked = frozenset(content_tokens(question))
    filled: dict[str, list[Candidate]] = {}
    for point in reversed(POINTS[mode]):  # the later ones are the narrower ones
        filled[point.name] = _best(point, found, sections, asked)
        found = [one for one in found if one not in filled[point.name]]
    for point in POINTS[mode]:
        best = filled[point.name]
        quoting.say(f"\n- [{'x' if best else ' '}] **{point.name}**: ")
        for at, one in enumerate(best):
            quoting.say(" " if at else "")
            quoting.quote(one)
        if not best:
            quoting.say(NOT_FOUND)
    return sum(map(bool, filled.values()))


def _sentences(evidence: Sequence[Evidence]) -> list[Candidate]:
    """Return the sentences that may fill a point, each once."""
    found: dict[tuple[int, str], Candidate] = {}
    for one in candidates(evidence):
        chunk = one.item.hit.passage.chunk
        if (
            chunk.section not in _UNREAD
            and one.whole
            and not (one.listed or one.announces or one.dangles)
            and _MIN_WORDS <= word_count(one.text) <= _MAX_WORDS
            and one.end - one.start <= MAX_QUOTE_CHARS
            and quotable(one)
        ):
            found.setdefault((chunk.start + one.start, one.text), one)
    return list(found.values())


def _best(
    point: ListPoint, found: Sequence[Candidate], sections: set[str], asked: frozenset[str]
) -> list[Candidate]:
    """Return the sentences of a point, in reading order.

    The sections of the point come first; others count where the document has none of them.
    """
    placed = bool(point.sections & sections)
    rows: list[tuple[float, int, Candidate]] = []
    for place, one in enumerate(found):
        kinds = {" ".join(match.lower().split()) for match in point.told_by.findall(one.text)}
        if not kinds:
            continue
        at_home = one.item.hit.passage.chunk.section in point.sections
        value = len(kinds) + (1.5 if at_home or not placed else 0.0) + 0.5 * len(asked & one.tokens)
        value -= _ELSEWHERE_COST * bool(_ELSEWHERE.match(one.text))
        rows.append((value, -place, one))
    rows.sort(key=lambda row: row[:2], reverse=True)
    best: list[Candidate] = []
    for _, _, one in rows:
        if len(best) < point.most and not any(alike(one, other) for other in best):
            best.append(one)
    return sorted(best, key=lambda one: one.key)
