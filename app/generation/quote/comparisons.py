"""Read what a question compares: the things, and in what respect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from app.core.text import tokenise
from app.core.types import Evidence
from app.generation.language.claims import MAX_QUOTE_CHARS, content_tokens
from app.generation.quote.candidates import Candidate
from app.generation.quote.quoting import Quoting
from app.generation.quote.summaries import alike, alone

MOST_THINGS = 5
"""Rows of a comparison."""
_JOIN = r"(?:,? and|,? with|,? to|,? against|,? versus|,? vs\.?|,? or|,)"
_LIST = r"(?:,? and|,? versus|,? vs\.?|,? or|,)"
_RESPECT = (
    r"(?:in (?:terms|respect) of|with (?:respect|regard) to|regarding|concerning|when it comes to"
    r"|as to|based on|by|on|for|in|at)"
)
_SHAPES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:compare|contrast)(?: and (?:compare|contrast))?\s+(?P<things>.+?{_JOIN}\s.+)",
        r"\b(?:differences?|distinctions?|similarit(?:y|ies)|comparison|contrast)"
        r"(?: in (?P<on>.{2,60}?))? (?:between|of) (?P<things>.+? (?:and|vs\.?|versus) .+)",
        r"\bhow (?:do|does|did|is|are|was|were|can) (?P<a>.+?)"
        r" (?:differ(?:ent)?|distinguished|distinct) from (?P<b>.+)",
        r"\bwhat (?:distinguishes|separates|sets) (?P<a>.+?) (?:apart )?from (?P<b>.+)",
        r"\bhow (?:do|does|did) (?P<a>.+?) compare (?:to|with|against) (?P<b>.+)",
        r"\bhow (?:do|does|did|are|were) (?P<things>.+? and .+?)"
        r" (?:differ|compare|different)(?P<tail> (?:in|on|from|with) .+)?\Z",
        r"\b(?:which|what|who) (?:is|are|has|have|was|were|does|do) (?P<on>[^,:]{2,60}?)[,:]"
        r" (?P<things>.+? or .+)",
        r"\A(?!(?:how|what|why|who|when|where|which|did|do|does|is|are|was|were)\b)"
        r"(?P<things>.{2,60}? (?:vs\.?|versus) .{2,60})",
    )
)
_OF = re.compile(
    r"\A(?:the )?(?P<on>.{2,60}?) (?:of|in|for|between) (?P<thing>.+)\Z", re.IGNORECASE
)
_ON = re.compile(rf"\A(?P<thing>.+?)\s+{_RESPECT} (?P<on>.+)\Z", re.IGNORECASE)
_POINTS = re.compile(
    r"\A(?P<things>.+?)(?:\s*:|,?\s(?:in (?:terms|respect) of|with (?:respect|regard) to|regarding"
    r"|concerning|when it comes to|as to|based on))\s+(?P<on>.+)\Z",
    re.IGNORECASE,
)
"""Things, and behind a colon or a phrase for a respect what they are compared by."""
_ARTICLE = re.compile(r"\A(?:the|a|an|both|between)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedComparison:
    """What a question compares: at least two things, in a respect that may be empty."""

    things: tuple[str, ...]
    respect: str = ""
    """Of several points, all of them."""
    points: tuple[str, ...] = ()
    """Where it names several: each thing is looked up by each."""

    def by_point(self) -> Iterator[tuple[str, NamedComparison]]:
        """Yield what is looked up of every thing: the point's name and its comparison."""
        if not self.points:
            yield "", self
        for point in self.points:
            yield point, NamedComparison(self.things, point)

    def query(self, thing: str) -> str:
        """Return what to search for to find what is said of one thing."""
        return f"{self.respect} {thing}".strip()


def comparison_in(question: str) -> NamedComparison | None:
    """Return what a question compares; None if it names fewer than two things."""
    text = " ".join(question.split()).rstrip(" ?.!")
    for shape in _SHAPES:
        if match := shape.search(text):
            found = match.groupdict()
            named = found.get("things") or f"{found['a']} and {found['b']}"
            return _comparison(named, found.get("on") or "")
    return None


def _pieces(named: str, joined_by: str) -> list[str]:
    pieces = re.split(rf"{joined_by}\s+", named, flags=re.IGNORECASE)
    return [piece.strip() for piece in pieces if piece.strip()]


def _comparison(named: str, respect: str) -> NamedComparison | None:
    if (match := _POINTS.match(named)) and (found := _comparison(match["things"], "")):
        points = [_ARTICLE.sub("", one) for one in _pieces(match["on"], _LIST)]
        several = tuple(dict.fromkeys(points)) if len(points) > 1 else ()
        return NamedComparison(found.things, respect or _ARTICLE.sub("", match["on"]), several)
    pieces = _pieces(named, _LIST)
    if len(pieces) < 2:
        pieces = _pieces(named, _JOIN)  # "to" and "with" stand inside names too
    if len(pieces) < 2:
        return None
    if match := _ON.match(pieces[-1]):
        pieces[-1], respect = match["thing"], respect or match["on"]
    if not any(" of " in piece for piece in pieces[1:]) and (match := _OF.match(pieces[0])):
        pieces[0], respect = match["thing"], respect or match["on"]
    things = tuple(dict.fromkeys(_ARTICLE.sub("", piece).strip() for piece in pieces))
    if len(things) < 2 or not all(content_tokens(thing) for thing in things):
        return None
    return NamedComparison(things[:MOST_THINGS], _ARTICLE.sub("", respect).strip())


# Go through a document for what a method, or repeating it, takes: a list with gaps.

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
    read = [item for item in evidence if item.hit.passage.chunk.section not in _UNREAD]
    found = alone(read, _MIN_WORDS, _MAX_WORDS)
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


# Write a comparison as a table of quotes: one row per thing, with its document.

_DEFINES = re.compile(
    r"\A(?:[\w'\u2019-]+ ){1,6}?(?:\([^)]*\) )?(?:is|are|was|were|refers? to|means?|denotes?"
    r"|consists?"
    r" of)\b",
    re.IGNORECASE,
)
_CAPTION = re.compile(r"(?:figure|fig\.|table)\s", re.IGNORECASE)
_OPENING_TOKENS = 4
"""Tokens of a sentence in which its subject stands."""
_LONGER, _TITLES_WORDS, _TITLES_SHARE = 4, 20, 0.85
"""Letters of a longer word; how many make a run of titles, and the share that is capitalised.
German prose, which capitalises nouns, has half."""
_RANK_COST = 0.04
"""What a place further down among the ranked sentences costs."""


def sentence_of(
    thing: str, named: NamedComparison, ranked: Sequence[Candidate]
) -> Candidate | None:
    """Return the best sentence about a thing; None if none names it.

    The thing stands in the sentence or is its document's title. Next to another thing it may lack
    its last word: that of "robusta and arabica coffee" belongs to both. A sentence that speaks of
    the respect, begins with the thing, or defines it where no respect is given, goes first.

    Args:
        thing: One of the things compared.
        named: The comparison.
        ranked: Sentences, best first.
    """
    wanted, respect = frozenset(content_tokens(thing)), frozenset(content_tokens(named.respect))
    others = [frozenset(content_tokens(one)) for one in named.things if one != thing]
    headless = frozenset(content_tokens(thing.rpartition(" ")[0]))
    rows: list[tuple[float, Candidate]] = []
    for place, one in enumerate(_fitting(ranked)):
        beside = headless and headless <= one.tokens and any(two <= one.tokens for two in others)
        title = frozenset(tokenise(one.item.hit.passage.document.title))
        if not (wanted <= one.tokens or wanted <= title or beside) or one.dangles:
            continue
        opening = frozenset(tokenise(one.text)[:_OPENING_TOKENS])
        begins = frozenset(content_tokens(one.text)[: len(wanted)]) == wanted
        value = 2.0 * _share(respect, one.tokens) + (wanted <= opening) + (wanted == title)
        value += 0.5 * (wanted <= one.tokens) + 0.5 * begins
        value += 0.5 * (not respect and _DEFINES.match(one.text) is not None)
        rows.append((value - _RANK_COST * place, one))
    return max(rows, key=lambda row: row[0])[1] if rows else None


def sentence_of_all(named: NamedComparison, ranked: Sequence[Candidate]) -> Candidate | None:
    """Return the best sentence that names all things: it says how they differ."""
    wanted = frozenset(token for thing in named.things for token in content_tokens(thing))
    respect = frozenset(content_tokens(named.respect))
    fitting = [one for one in _fitting(ranked) if wanted <= one.tokens and not one.dangles]
    return max(fitting, key=lambda one: _share(respect, one.tokens), default=None)


def write_comparison(
    quoting: Quoting, rows: Mapping[str, Candidate | None], both: Candidate | None
) -> None:
    """Write the sentence about all things, then the table of single ones.

    Args:
        quoting: Where it is written.
        rows: The sentence of each thing; None where nothing was found.
        both: A sentence about all of them.
    """
    if both is not None and both not in rows.values():
        quoting.start_block()
        quoting.quote(both)
    quoting.start_block("| | What the documents say | Document |\n|---|---|---|")
    for thing, sentence in rows.items():
        quoting.say(f"\n| {_cell(thing)} | ")
        if sentence is None:
            quoting.say(f"{NOT_FOUND} | |")
            continue
        quoting.quote(sentence, in_table=True)
        quoting.say(f" | {_cell(sentence.item.hit.passage.document.title)} |")


def _fitting(ranked: Sequence[Candidate]) -> list[Candidate]:
    return [
        one
        for one in ranked
        if one.whole
        and not _CAPTION.match(one.text)
        and not (one.listed or one.entry or _is_titles(one.text))
        and one.end - one.start <= MAX_QUOTE_CHARS
    ]


def _is_titles(line: str) -> bool:
    """Return whether a line is a run of titles: long, and most longer words are capitalised."""
    words = [word for word in line.split() if len(word) >= _LONGER]
    capital = sum(word[0].isupper() and not word.isupper() for word in words)
    return len(words) >= _TITLES_WORDS and capital >= _TITLES_SHARE * len(words)


def _share(wanted: AbstractSet[str], found: AbstractSet[str]) -> float:
    """Return the share of wanted tokens that were found; 0 if none is wanted."""
    return len(wanted & found) / len(wanted) if wanted else 0.0


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
