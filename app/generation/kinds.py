"""Find which kind of answer a question asks for, and whether a sentence brings one."""

from __future__ import annotations

import re

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


def brings(pattern: re.Pattern[str], sentence: str, question: str) -> bool:
    """Return whether a sentence has a match that the question does not name."""
    named = question.lower()
    return any(match.group().lower() not in named for match in pattern.finditer(sentence))
