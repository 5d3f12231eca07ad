"""Clean the replies of helper models."""

from __future__ import annotations

import re

_BULLET = re.compile(
    r"^\s*(?:(?:[-*\u2022]+|\(?\d{1,2}[.):])\s*)?(?:(?:sub-?)?(?:query|question)(?:\s\d)?:\s*)?",
    re.IGNORECASE,
)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019 "


def listed(reply: str) -> list[str]:
    """Return a reply's distinct lines without bullets, numbers or quotes.

    Lines that introduce the list ("Here are three queries:") are left out.
    """
    lines = [
        _BULLET.sub("", line).strip(_QUOTES)
        for line in reply.splitlines()
        if not line.rstrip().endswith(":")
    ]
    distinct: dict[str, str] = {}
    for line in lines:
        if any(char.isalnum() for char in line):
            distinct.setdefault(line.casefold(), line)
    return list(distinct.values())
