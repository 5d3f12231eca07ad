"""Read the rows of tables in a text, and say what a row or two rows hold of a claim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.generation.language.clauses import Token, read, said_in

_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_LABELLED = re.compile(r"([^:|]{1,80}):\s+(.*)")
_NAMED_VALUE = re.compile(
    r"[ \t]*(?:[-*][ \t]+)?[^:|.!?\t]{2,60}:[ \t]+[^:;|\t\n]{0,9}\d[^:;|\t\n]{0,30}"
)
"""A line of a list of values: `Microchip: 18`; only with another above or below it."""
_FEWEST_CELLS = 2
_CAPTION = 300
"""Characters of the text before a table that may name what it is about."""
_LIGHT = frozenset(
    "take price get hold list show amount total reach stand lie come measur count number record"
    " report valu equal hav cell row column figur".split()
)
"""Words that say no more than that a cell has a value; also `measured~` and the like."""
_MORE = frozenset(
    "more higher larger greater longer older bigger heavier taller wider deeper warmer hotter later"
    " dearer faster newer newest most highest largest greatest longest oldest biggest heaviest"
    " tallest widest deepest warmest hottest latest dearest".split()
)
_LESS = frozenset(
    "less fewer lower smaller shorter younger lighter narrower colder cooler earlier cheaper slower"
    " least fewest lowest smallest shortest youngest lightest narrowest coldest earliest"
    " cheapest".split()
)
_OF_AGE = frozenset(("older", "oldest", "younger", "youngest"))
"""The older of two has the smaller year."""
_OF_TIME = frozenset(("newer", "newest", "earlier", "earliest", "later", "latest"))
_YEARS = (1000, 2100)
_UTMOST = re.compile(r"(?:most|least|fewest|\w+est)\Z")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value under its label, by the keys of their words; `value` is None where no number is."""

    label: frozenset[str]
    words: frozenset[str]
    number: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table at `[start, end)` of its text."""

    start: int
    end: int
    cells: tuple[Cell, ...]
    table: int
    about: frozenset[str]
    """Words of the caption and of the first line of the text, where that is no row."""

    @property
    def key(self) -> Cell | None:
        """The cell that names the row: its first with words."""
        return next((cell for cell in self.cells if cell.words), None)


def rows_of(text: str, title: str = "") -> list[Row]:
    """Return the rows of Markdown tables, of tables between tabs and of labelled lines."""
    rows: list[Row] = []
    head: list[str] | None = None
    table, at, last_end = 0, 0, -1
    about: frozenset[str] = frozenset()
    lines = text.split("\n")
    above = "" if len(lines) == 1 or _cells(lines[0]) else lines[0]
    named_lines = [bool(_NAMED_VALUE.fullmatch(line)) for line in lines]
    for number, line in enumerate(lines):
        start, end = at, at + len(line)
        at = end + 1
        if _RULE.fullmatch(line) and "-" in line:
            continue
        if named_lines[number] and any(named_lines[max(0, number - 1) : number + 2 : 2]):
            about = said_in(read(f"{title} . {above}"))
            name, value = line.split(":", 1)
            rows.append(Row(start, end, (_cell("", name), _cell("", value)), -1, about))
            head = None
            continue
        cells = _cells(line)
        if len(cells) < _FEWEST_CELLS:
            head = None
            continue
        if head is None or (last_end >= 0 and start > last_end + 200):
            table += 1
            before = text[max(0, start - _CAPTION) : start]
            about = said_in(read(f"{title} . {above} . {before}"))
        labelled = [_LABELLED.fullmatch(cell) for cell in cells]
        if all(labelled):
            named = [(found[1], found[2]) for found in labelled if found]
            head = head or [""]
        elif head is None or len(head) != len(cells):
            following = lines[number + 1] if number + 1 < len(lines) else ""
            head = cells if _RULE.fullmatch(following) or "\t" in line else [""]
            continue
        else:
            named = list(zip(head, cells, strict=True))
        rows.append(Row(start, end, tuple(_cell(*pair) for pair in named), table, about))
        last_end = end
    return rows


def _cells(line: str) -> list[str]:
    mark = "|" if "|" in line else "\t"
    cells = [cell.strip() for cell in line.strip().strip("|").split(mark)]
    return cells if mark in line else []


def _cell(label: str, value: str) -> Cell:
    tokens = read(value)
    numbers = [token.key for token in tokens if token.kind == "n" and not token.key.endswith(".")]
    negative = value.strip().startswith(("-", "\u2212", "("))
    number = float(numbers[0]) * (-1 if negative else 1) if len(numbers) == 1 else None
    return Cell(said_in(read(label)), said_in(tokens), number)


def rows_say(tokens: Sequence[Token], rows: Sequence[Row]) -> tuple[bool | None, Row | None]:
    """Return whether a table holds a claim, says otherwise, or neither, and the row."""
    said = [token for token in tokens if token.said]
    words = said_in(said)
    against: Row | None = None
    computed = list(_computed(tokens, words, rows))
    if computed:
        return computed[0]
    if any(token.kind == "o" for token in said) or words & (_MORE | _LESS):
        return None, None
    for row in rows:
        found = [cell for cell in row.cells if cell.words and _stands(cell, said)]
        if len({cell.words for cell in row.cells}) < _FEWEST_CELLS:
            continue  # a line across the table
        if _holds(words, row, found):
            return True, row
        if against is None and _contradicts(said, words, row, rows):
            against = row
    return (None, None) if against is None else (False, against)


def _stands(cell: Cell, said: Sequence[Token]) -> bool:
    """Return whether a claim has the words of a cell together."""
    keys = [token.key.rstrip("~") for token in said]
    size = len(cell.words)
    return any(cell.words == frozenset(keys[at : at + size]) for at in range(len(keys)))


def _holds(words: frozenset[str], row: Row, found: Sequence[Cell]) -> bool:
    """Return whether a row has all words of a claim, each value with its label."""
    first = row.key
    if first is None or first not in found:
        return False
    values = [cell for cell in found if cell is not first and (cell.label & words or row.table < 0)]
    told = frozenset().union(*(cell.label | cell.words for cell in (first, *values)))
    others = [cell for cell in row.cells if cell not in values and cell is not first]
    if not values or any(
        cell.label - told - row.about and cell.label - told <= words for cell in others
    ):
        return False
    figures = frozenset(word for word in words if word[0].isdigit())
    explained = told | _LIGHT | (row.about - figures if not figures <= told else row.about)
    return words <= explained | (row.about & figures)


def _contradicts(
    said: Sequence[Token], words: frozenset[str], row: Row, rows: Sequence[Row]
) -> bool:
    """Return whether a claim names the row and one label, and gives it another value."""
    first = row.key
    if first is None or not first.words <= words:
        return False
    left = words - first.words - first.label - _LIGHT
    if row.table < 0:  # a named value: another figure and nothing else
        left -= row.about | row.cells[1].words
        return bool(left) and all(token.kind == "n" for token in said if token.key in left)
    named = [cell for cell in row.cells if cell is not first and cell.label and cell.label <= words]
    if len(named) != 1 or named[0].words <= words:
        return False
    left -= named[0].label
    if named[0].number is not None:
        return any(token.kind == "n" and token.key in left for token in said)
    column = row.cells.index(named[0])
    return any(
        len(other.cells) > column
        and other.table == row.table
        and other.cells[column].words
        and other.cells[column].words <= left
        for other in rows
    )


def stands_under_another_head(tokens: Sequence[Token], rows: Sequence[Row]) -> bool:
    """Return whether a claim names a row and gives one of its figures to another of its heads.

    It has all words by which that head differs from the figure's own, and none the other way. A
    claim that compares may name several.
    """
    said = [token for token in tokens if token.said]
    words = said_in(said)
    if any(token.kind == "o" for token in said) or words & (_MORE | _LESS):
        return False
    return any(_is_under_another_head(said, words, row) for row in rows)


def _is_under_another_head(said: Sequence[Token], words: frozenset[str], row: Row) -> bool:
    key = row.key
    if key is None or row.table < 0 or not key.words <= words:
        return False
    others = [cell for cell in row.cells if cell is not key]
    figures = [cell for cell in others if cell.number is not None and _stands(cell, said)]
    return bool(figures) and all(
        any(_is_meant(other.label, cell.label, words) for other in others if other not in figures)
        for cell in figures
    )


def _is_meant(head: frozenset[str], own: frozenset[str], words: frozenset[str]) -> bool:
    """Return whether words tell of one head, and not of another."""
    return bool(head - own) and head - own <= words and bool(own - head) and not own - head & words


def _computed(
    tokens: Sequence[Token], words: frozenset[str], rows: Sequence[Row]
) -> Iterator[tuple[bool | None, Row | None]]:
    """Yield the verdict on a comparison of two rows, or on the utmost of a column."""
    sign = bool(words & _MORE) - bool(words & _LESS)
    if not sign:
        return
    than = next((n for n, token in enumerate(tokens) if token.key == "than"), None)
    sides = (tokens, ()) if than is None else (tokens[:than], tokens[than + 1 :])
    utmost = any(_UTMOST.match(word) for word in words & (_MORE | _LESS))
    if utmost == (than is not None):
        return
    one, two = (said_in(side) for side in sides)
    for row in rows:
        key = row.key
        if key is None or not key.words <= one:
            continue
        others = [
            other
            for other in rows
            if other is not row
            and other.table == row.table
            and len(other.cells) == len(row.cells)
            and (utmost or any(cell.words and cell.words <= two for cell in other.cells[:1]))
        ]
        counted = [
            n for n, cell in enumerate(row.cells) if cell is not key and cell.number is not None
        ]
        years = [n for n in counted if _YEARS[0] <= (row.cells[n].number or 0) <= _YEARS[1]]
        columns = [n for n in counted if row.cells[n].label & words]
        if words & (_OF_AGE | _OF_TIME) and not columns:
            columns = years
        if len(columns) != 1 or not others:
            continue
        column = row.cells[columns[0]]
        named = frozenset().union(*(other.cells[0].words for other in others if not utmost))
        told = key.words | key.label | column.label | named | row.about | _LIGHT | _MORE | _LESS
        if not words <= told | {"than", "all", str(len(others) + 1)}:
            continue
        way = -sign if words & _OF_AGE and columns[0] in years else sign
        values = [other.cells[columns[0]].number for other in others]
        if column.number is None or any(value is None for value in values):
            continue
        yield (all(way * (column.number - value) > 0 for value in values if value is not None), row)
