"""Find which kind of answer a question asks for, and whether a sentence brings one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from app.core.text import tokenise
from app.generation.reading import specifics

_KINDS = {
    "time": re.compile(
        r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade|period|era|time)\b|\bhow"
        r" (?:long|recent)",
        re.IGNORECASE,
    ),
    "number": re.compile(
        r"\bhow (?:many|much|often|old|far|large|big|tall|high|deep|fast|wide)\b"
        r"|\b(?:what|which) (?:percentage|percent|number|amount|fraction|proportion|share)\b",
        re.IGNORECASE,
    ),
    "name": re.compile(
        r"\bwho(?:m|se)?\b|\bwhere\b|\bname of\b"
        r"|\b(?:what|which)"
        r" (?:person|king|queen|president|author|leader|scientist|country|city|state|place|region"
        r"|continent|county)\b",
        re.IGNORECASE,
    ),
    "reason": re.compile(
        r"\bwhy\b|\bwhat (?:causes?|caused|led|made)\b|\breasons?\b", re.IGNORECASE
    ),
}
KINDS = ("time", "number", "name", "reason")
"""In the order of their columns among the features of a sentence."""
TIME = re.compile(
    r"\b(?:(?:in|by|until|since|from|around|circa) \d{3,4}|1\d{3}s?|20\d{2}s?|\d+ ?(?:bc|ad|bce"
    r"|ce)|\d{1,2}(?:st|nd|rd|th)"
    r"|centur(?:y|ies)|decades?|january|february|march|april|june|july|august|september|october"
    r"|november|december"
    r"|years?|months?|days?|weeks?|hours?)\b",
    re.IGNORECASE,
)
FIGURE = re.compile(
    r"\d[\d,.]*|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozens?|hundreds?|thousands?"
    r"|millions?|billions?|half|percent)\b",
    re.IGNORECASE,
)
CAUSE = re.compile(
    r"\b(?:because|due to|since|so that|in order to|as a result|caus(?:e|es|ed)|reasons?|therefore"
    r"|thus|owing|led to)\b",
    re.IGNORECASE,
)


def question_kinds(question: str) -> frozenset[str]:
    """Return a question's answer kinds: some of time, number, name, reason."""
    return frozenset(kind for kind, pattern in _KINDS.items() if pattern.search(question))


_DATE = re.compile(
    r"\b(?:1\d{3}|20\d{2}|\d{1,4} ?(?:bc|ad|bce|ce)|(?:january|february|march|april|may|june|july"
    r"|august|september|october|november|december) \d|\d{1,2}(?:st|nd|rd|th) centur(?:y|ies))\b",
    re.IGNORECASE,
)
_LASTED = re.compile(r"(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?)\b", re.IGNORECASE)
_PLACED = re.compile(
    r"\b(?:in|at|near|from|to|on|of|outside|around|between) (?:the )?(?=[^\W\d_a-z])[\w'-]+"
)
_ASKS_PLACE = re.compile(
    r"\bwhere\b|\b(?:what|which) (?:country|city|state|place|region|continent|county|town|river)\b",
    re.IGNORECASE,
)
_UNITS = {
    r"\bhow (?:tall|high|deep|far|wide|large|big|long)\b": (
        r"(?:k?m|cm|mm|(?:kilo|centi|milli)?met(?:er|re)s?|feet|foot|ft|miles?|inch(?:es)?|yards?"
        r"|hectares?|acres?|square|sq|light-years?)\b"
    ),
    r"\bhow old\b": r"years?\b",
    r"\bhow fast\b": r"(?:km/h|mph|m/s|knots?|\w+ (?:an?|per) (?:hour|second))\b",
    r"\b(?:percent(?:age)?|proportion|share)\b": r"(?:%|per ?cent|percent)",
    r"\bhow long (?:did|does|do|was|were|is|are|has|have|had|will|would)\b": _LASTED.pattern,
}
"""What a question asks, and the unit that then stands behind the figure."""
_HOW_MANY = re.compile(r"\bhow (?:many|much) ((?:[\w'-]+ ?){1,4})", re.IGNORECASE)
_VERB = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might|must)\Z",
    re.IGNORECASE,
)
_BEHIND = 40
"""Characters behind a figure in which its noun stands."""


def brings_of(question: str, sentences: Sequence[str], kind: str) -> list[bool]:
    """Return of each sentence whether it brings what a kind of question asks for.

    A number counts with its noun or unit, a time as a date or a span, a name as a place where one
    is asked. Where no sentence has it so, any number, time or name that the question does not
    have counts.

    Args:
        question: It asks for this kind.
        sentences: The candidates.
        kind: `time`, `number`, `name` or `reason`.
    """
    if kind == "reason":
        return [CAUSE.search(sentence) is not None for sentence in sentences]
    exact = [_EXACT[kind](question, sentence) for sentence in sentences]
    if any(exact):
        return exact
    if kind == "name":
        known = set(tokenise(question))
        return [bool(specifics(sentence).names - known) for sentence in sentences]
    pattern = TIME if kind == "time" else FIGURE
    return [brings(pattern, sentence, question) for sentence in sentences]


def brings(pattern: re.Pattern[str], sentence: str, question: str) -> bool:
    """Return whether a sentence has a match that the question does not name."""
    named = question.lower()
    return any(match.group().lower() not in named for match in pattern.finditer(sentence))


def _dated(question: str, sentence: str) -> bool:
    if re.search(r"\bhow long\b", question, re.IGNORECASE):
        return _counts(question, sentence)
    return brings(_DATE, sentence, question)


def _placed(question: str, sentence: str) -> bool:
    return bool(_ASKS_PLACE.search(question)) and brings(_PLACED, sentence, question)


def _counts(question: str, sentence: str) -> bool:
    """Return whether a figure stands before the noun or the unit that is asked for."""
    noun, units = (
        _noun(question),
        [unit for asked, unit in _UNITS.items() if re.search(asked, question, re.IGNORECASE)],
    )
    named = question.lower()
    for figure in FIGURE.finditer(sentence):
        if figure.group().lower() in named:
            continue
        behind = sentence[figure.end() : figure.end() + _BEHIND]
        if noun and noun in tokenise(behind):
            return True
        if any(re.match(rf"[\s-]*{unit}", behind, re.IGNORECASE) for unit in units):
            return True
    return False


def _noun(question: str) -> str | None:
    """Return the stem of what "how many" counts."""
    match = _HOW_MANY.search(question)
    if match is None:
        return None
    behind = match[1].split()
    at = next((at for at, word in enumerate(behind) if _VERB.match(word)), None)
    if at == 0:  # "how much does it cost"
        return None
    stems = tokenise(behind[0] if at is None else behind[at - 1])
    return stems[0] if stems else None


_EXACT: dict[str, Callable[[str, str], bool]] = {
    "time": _dated,
    "number": _counts,
    "name": _placed,
}
