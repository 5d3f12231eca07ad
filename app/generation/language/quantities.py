"""Read the number of a cell: its form, its sign, its unit, and write results in that form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from types import MappingProxyType
from typing import NamedTuple

from app.core.sentences import CELLS

_FIGURE = re.compile(
    r"[^\w(+\-\u2212]{0,3}(?:[A-Z]{0,3}[$\u20ac\u00a3\u00a5]\s*)?(?P<open>\()?\s*"
    r"(?P<minus>[-\u2212])?\s*[$\u20ac\u00a3\u00a5]?\s*"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)\s*(?P<percent>%)?"
    r"\s*(?P<close>\))?\s*(?P<after>%|\D{0,12})"
)
MOST_DIGITS = 18
"""Of a figure: what is longer is a number of an account, not an amount."""
EXACT = Context(prec=4 * MOST_DIGITS)
NOTHING = re.compile(r"[$\u20ac\u00a3\u00a5\s]*[-\u2013\u2014]+")
"""A dash in a cell: nothing."""
_UNIT = re.compile(r"[^\W\d_]+|[%$\u20ac\u00a3\u00a5\u00b0]")
_POINT = re.compile(r"(?<![\d.,])\d+\.(?:\d{1,2}|\d{4,})(?![\d.,])|\d,\d{3}\.\d")
"""A number with decimals behind a point."""
_COMMA = re.compile(
    r"(?<![\d.,])\d{1,3}(?:\.\d{3})*,(?:\d{1,2}|\d{4,})(?![\d.,])"
    r"|(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,])"
)
"""A number with decimals behind a comma, or several points of thousands."""
_EITHER = re.compile(r"(?<![\d.,])\d{1,3}\.\d{3}(?![\d.,])")
_WHOLE = re.compile(r"(?<![\d.,])\d+(?![\d.,])")
EXCHANGED = str.maketrans(".,", ",.")
_CLOCK = re.compile(r"(?P<hours>\d{1,3}):(?P<minutes>[0-5]\d)(?::[0-5]\d)?")
"""Hours and minutes that passed, or a time of day."""
_SIZES: Mapping[str, tuple[str, Decimal]] = MappingProxyType(
    {
        unit: (kind, Decimal(size))
        for kind, units in {
            "mass": "mg=.001 g=1 kg=1000 t=1000000 tonne=1000000 tonnes=1000000",
            "length": "mm=.001 cm=.01 m=1 km=1000",
            "volume": "ml=.001 cl=.01 dl=.1 l=1 hl=100",
            "time": "s=1 min=60 h=3600",
            "power": "w=1 kw=1000 mw=1000000 gw=1000000000",
            "energy": "wh=1 kwh=1000 mwh=1000000 gwh=1000000000",
            "data": "kb=1 mb=1000 gb=1000000 tb=1000000000",
        }.items()
        for unit, _, size in (one.partition("=") for one in units.split())
    }
)
"""Kinds of units and their sizes, of those that differ by a fixed factor."""


class Figure(NamedTuple):
    """A number as a cell has it."""

    value: Decimal
    text: str
    is_percent: bool
    has_comma: bool = False
    """Stands before the decimals."""
    is_clock: bool = False
    """The value is minutes, written as hours and minutes."""
    converted_to: str = ""
    """The unit of all figures that it is taken together with, where they had several."""

    @property
    def is_nothing(self) -> bool:
        """Whether the cell has a dash."""
        return NOTHING.fullmatch(self.text) is not None

    @property
    def unit(self) -> str:
        """The letters and signs next to the number; empty for none."""
        return " ".join(_UNIT.findall(self.text)).casefold()


NO_FIGURE = Figure(Decimal(), "", is_percent=False)


def with_commas(rows: Iterable[str]) -> frozenset[str]:
    """Return the labels of columns whose numbers have a comma before the decimals.

    1.200 is twelve hundred where another number of its column has no decimals, or a comma before
    them; else it is a number with three decimals.
    """
    columns: dict[str, list[str]] = {}
    for row in rows:
        for part in row.split(CELLS):
            label, _, value = part.strip().rpartition(": ")
            columns.setdefault(label, []).append(value)
    found = set[str]()
    for label, values in columns.items():
        column = " ; ".join(values)
        if label and not _POINT.search(column):
            of_thousands = _EITHER.search(column) and _WHOLE.search(column)
            if _COMMA.search(column) or of_thousands:
                found.add(label)
    return frozenset(found)


def figure_of(text: str) -> Figure | None:
    """Return the number that a cell is; None where it says something else."""
    if NOTHING.fullmatch(text):
        return Figure(Decimal(), text, is_percent=False)
    match = _FIGURE.fullmatch(text.strip())
    if match is None or (match["open"] is None) != (match["close"] is None):
        return None
    digits = match["digits"].replace(",", "")
    if len(digits) > MOST_DIGITS:
        return None
    value = Decimal(digits)
    negative = bool(match["open"] or match["minus"])
    return Figure(-value if negative else value, text, "%" in text)


def minutes_of(text: str) -> Figure | None:
    """Return hours and minutes, 1:30, as a number of minutes; None for anything else."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    value = 60 * int(match["hours"]) + int(match["minutes"])
    return Figure(Decimal(value), text, is_percent=False, is_clock=True)


def in_one_unit(figures: Sequence[Figure]) -> list[Figure]:
    """Return figures in the smallest of their units; as they are where one cannot be converted."""
    sizes = {one.unit: _SIZES[one.unit] for one in figures if one.unit in _SIZES}
    kinds = {kind for kind, _ in sizes.values()}
    if len(sizes) < 2 or len(kinds) > 1 or any(one.unit not in sizes for one in figures):
        return list(figures)
    unit = min(sizes, key=lambda name: sizes[name][1])

    def converted(figure: Figure) -> Figure:
        value = figure.value * sizes[figure.unit][1] / sizes[unit][1]
        whole = value.to_integral_value()
        value = whole if value == whole else value
        return figure._replace(value=value, text=f"{shown(value)} {unit}", converted_to=unit)

    return [converted(one) for one in figures]


def with_clocks(rows: Iterable[str]) -> frozenset[str]:
    """Return the labels of columns of hours and minutes alone."""
    columns: dict[str, list[bool]] = {}
    for row in rows:
        for part in row.split(CELLS):
            label, _, value = part.strip().rpartition(": ")
            if label:
                columns.setdefault(label, []).append(_CLOCK.fullmatch(value) is not None)
    return frozenset(label for label, are in columns.items() if all(are))


def written(value: Decimal, like: Figure) -> str:
    """Return a result in the form of a figure that it was made of."""
    if like.is_clock:
        hours, minutes = divmod(int(value.to_integral_value(ROUND_HALF_UP)), 60)
        return " ".join(([f"{hours} h"] if hours else []) + ([f"{minutes} min"] if minutes else []))
    text = shown(value)
    text = text.translate(EXCHANGED) if like.has_comma else text
    return f"{text} {like.converted_to}".rstrip()


def shown(value: Decimal) -> str:
    return f"{value:,f}"


def rounded(value: Decimal) -> str:
    """Return a value to hundredths, without zeros behind it."""
    text = f"{value.quantize(Decimal('0.01'), ROUND_HALF_UP, EXACT):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
