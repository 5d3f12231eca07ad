"""Read what a question compares: the things, and in what respect."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.generation.reading import content_tokens

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
_ARTICLE = re.compile(r"\A(?:the|a|an|both|between)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedComparison:
    """What a question compares: at least two things, in a respect that may be empty."""

    things: tuple[str, ...]
    respect: str = ""

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
