"""Return the text of wikitext templates: characters, quotes, quantities, places."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TEXT_TEMPLATES = frozenset(
    "lang transl nowrap nobr nobold small big smaller sc smallcaps abbr tooltip em strong quote"
    " blockquote cquote quotation mvar"
    " var math ill nihongo audio visible-anchor frac sfrac convert cvt ship val coord".split()
)
_SYMBOLS = {
    "nbsp": " ", "snd": " \u2013 ", "spnd": " \u2013 ", "spaced-ndash": " \u2013 ",
    "ndash": "\u2013", "mdash": "\u2014",
    "endash": "\u2013", "emdash": "\u2014", "dash": "\u2013", "spaced-mdash": " \u2014 ",
    "'": "'", "'s": "'s", "=": "=",
    "!": "|", "pipe": "|", "dot": " \xb7 ", "middot": "\xb7", "bull": " \u2022 ",
    "ellipsis": "\u2026",
}  # fmt: skip
"""Templates without arguments that stand for a character; dropping a space among them would join
two words."""
_POWERS = {"e3": "thousand ", "e6": "million ", "e9": "billion "}
_RANGE_WORDS = frozenset("- \u2013 to and or by x + to(-) and(-)".split())


def template_text(match: re.Match[str]) -> str:
    """Return the text of a template without inner templates; most have none.

    Args:
        match: Its first group is the template without its braces: name, then arguments after bars.
    """
    name, *parts = match[1].split("|")
    name = name.strip().lower().replace(" ", "-")
    if not parts or name not in _TEXT_TEMPLATES:
        return _SYMBOLS.get(name, "")
    values = [part.strip() for part in parts if "=" not in part]
    if not values:
        return ""
    if name in {"val", "coord"}:
        named = dict(part.split("=", 1) for part in map(str.strip, parts) if "=" in part)
        return (
            _number(values[0], named) if name == "val" else _place(values, named.get("display", ""))
        )
    if name in {"convert", "cvt"}:
        return _quantity(values)
    if name in {"frac", "sfrac"}:
        return "/".join(values)
    return values[-1 if name in {"lang", "transl", "audio"} else 0]


def _number(value: str, named: Mapping[str, str]) -> str:
    """Return the arguments of `val`: `0.5|e=-3|u=mm` is 0.5\u00d710^-3 mm."""
    power = f"\u00d710^{named['e']}" if named.get("e") else ""
    return f"{value}{power} {named.get('u') or named.get('ul') or ''}".strip()


def _place(values: list[str], display: str) -> str:
    """Return a `coord` as a place: `30|12|N|74|7|W` is 30\u00b012\u2032N 74\u00b07\u2032W."""
    if "title" in display or not values[0]:
        return ""
    parts: list[str] = []
    numbers: list[str] = []
    for value in values[:8]:
        if value in {"N", "S", "E", "W"}:
            parts.append(
                "".join(map("".join, zip(numbers, "\u00b0\u2032\u2033", strict=False))) + value
            )
            numbers = []
        else:
            numbers.append(value)
    return " ".join(parts) or ", ".join(numbers[:2])


def _quantity(values: list[str]) -> str:
    """Return a `convert` template's quantity: `44|e6acre|km2` is 44 million acre."""
    length = 1
    while length + 1 < len(values) and values[length] in _RANGE_WORDS:
        length += 2
    numbers, units = values[:length], values[length : length + 1]
    unit = units[0] if units else ""
    if unit[:2] in _POWERS:
        unit = _POWERS[unit[:2]] + unit[2:]
    return " ".join([*numbers, unit]).strip()
