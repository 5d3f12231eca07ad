"""Read the calendar dates that a sentence names."""

from __future__ import annotations

import re

MONTHS = tuple(
    "january february march april may june july august september october november december".split()
)
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\w.,/-])(?P<day>\d{1,2})\. ?(?P<number>\d{1,2})\. ?(?P<year>[12]\d{3})\b(?!\.\d)",
        r"(?<![\w.,/-])(?P<year>[12]\d{3})-(?P<number>\d{2})-(?P<day>\d{2})(?![\w-])",
        rf"(?<![\w.,/-]){_DAY} (?:of )?(?P<month>{_MONTH})\b\.?(?:,? {_YEAR}\b)?",
        rf"\b(?P<month>{_MONTH})\.? {_DAY}\b(?!\s?%)(?:,? {_YEAR}\b)?",
    )
)

LAST_DAY = 1231
"""The last date without a year."""


def dates_in(sentence: str) -> tuple[str, frozenset[int]]:
    """Return a sentence without the days of its dates, and the dates.

    Years stay in the sentence, since other sentences may give the year alone. A date is the
    number YYYYMMDD, or MMDD where the sentence gives no year.
    """
    found: set[int] = set()

    def taken(match: re.Match[str]) -> str:
        parts = match.groupdict()
        month = int(parts.get("number") or 0) or _number(parts["month"])
        day = int(parts["day"])
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return match.group()
        found.add(int(parts["year"] or 0) * 10_000 + month * 100 + day)
        return parts["year"] or " "

    for form in _FORMS:
        sentence = form.sub(taken, sentence)
    return sentence, frozenset(found)


def _number(month: str) -> int:
    return next(n for n, name in enumerate(MONTHS, 1) if name.startswith(month[:3].lower()))
