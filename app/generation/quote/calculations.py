"""Calculate from labelled rows of tables: a change, sum, mean, share or count, and the largest.

A row is a line `Name | Label: value | Label: value`, as documents are stored. A cell is meant by
the words of its row and its column. Cells of text make a row a record: `How many units are in Lyon`
means the rows that say so. A result names the cells that it was made of; where the words of a
question do not tell which cells are meant, there is none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, NamedTuple

from app.core.languages import DEFAULT, LANGUAGES, language_of
from app.core.sentences import CELLS
from app.core.text import CLAIMLESS_WORDS, tokenise
from app.core.types import Evidence
from app.generation.language.quantities import (
    EXCHANGED,
    NO_FIGURE,
    NOTHING,
    Figure,
    figure_of,
    in_one_unit,
    minutes_of,
    rounded,
    shown,
    with_clocks,
    with_commas,
    written,
)
from app.generation.quote.candidates import Candidate, candidates, one_line
from app.generation.quote.choosing import years_in
from app.generation.quote.quoting import Quoting

Operation = Literal[
    "growth", "share", "mean", "change", "sum", "count", "largest", "smallest", "years", "values",
    "number",
]  # fmt: skip

_SUMS = sorted({word for one in LANGUAGES.values() for word in one.sums.split()})
_OPERATIONS: Mapping[Operation, re.Pattern[str]] = {
    "growth": re.compile(
        r"(?:\bpercent(?:age)?|%|\bpct)[- ]+(?:\w+[- ]){0,2}?"
        r"(?:change|increase|decrease|growth|decline|rise|fall|drop)"
        r"|\bby (?:what|how many) per ?cent|\bgrowth rate",
        re.IGNORECASE,
    ),
    "share": re.compile(
        r"\b(?:as|in) (?:an? )?(?:percentage|percent|proportion|share|ratio|%)"
        r"|\b(?:percentage|percent|proportion|share|fraction|ratio)\b(?: \w+){0,3}? (?:of|that)"
        r"|% of\b|\bratio\b",
        re.IGNORECASE,
    ),
    "count": re.compile(
        r"\bhow many\b.{0,90}\b(?:exceed|more than|less than|at least|over|above|below|under)",
        re.IGNORECASE,
    ),
    "largest": re.compile(
        r"\b(?:which|what|who)\b.*"
        r"\b(?:highest|largest|most|biggest|greatest|longest|dearest|costliest|heaviest|oldest"
        r"|tallest)\b",
        re.IGNORECASE,
    ),
    "smallest": re.compile(
        r"\b(?:which|what|who)\b.*"
        r"\b(?:lowest|smallest|least|fewest|shortest|cheapest|lightest|youngest)\b",
        re.IGNORECASE,
    ),
    "mean": re.compile(r"\b(?:average|mean)\b", re.IGNORECASE),
    "change": re.compile(
        r"\b(?:change|difference|increase|decrease|growth|decline|fluctuation|differ)\b"
        r"|\bhow much (?:more|less|higher|lower|did)\b",
        re.IGNORECASE,
    ),
    "sum": re.compile(rf"\b(?:in all|{'|'.join(_SUMS)})\b", re.IGNORECASE),
    "years": re.compile(r"\b(?:which|what)(?: are the)?(?: \w+)? years\b", re.IGNORECASE),
    "values": re.compile(
        r"\b(?:what|how (?:much|many))\b.*\b(?:19|20)\d\d,? and (?:\w+ )?(?:19|20)\d\d\b",
        re.IGNORECASE,
    ),
    "number": re.compile(r"\bhow many\b", re.IGNORECASE),
}
"""The first that fits is asked for. `years` and `values` calculate nothing: for which years a row
or table has figures, and the figures of several years; `number` is of records."""
_OF_ALL = frozenset(
    tokenise(
        "how what which who many much year years fiscal period between from over under above below"
        " during across respectively calculate compute compare compared versus against"
        " annual amount value number nominal respective and"
    )
)
_WORDS: Mapping[Operation, str] = {
    "growth": "percent percentage pct change increase decrease growth decline rise fall drop rate",
    "share": "percent percentage proportion share fraction ratio expressed constitute constitution",
    "count": "number exceed more less than least million thousand billion dollars euros pounds",
    "mean": "average mean",
    "change": "change difference increase decrease growth decline fluctuation differ more less"
    " higher lower",
    "sum": " ".join(_SUMS),
    "largest": "highest largest most biggest greatest longest dearest costliest heaviest oldest"
    " tallest",
    "smallest": "lowest smallest least fewest shortest cheapest lightest youngest",
    "years": "table provide provided information include included given listed shown show financial"
    " company calculated recorded accounted",
    "values": "",
    "number": "different distinct come live stay work belong hold contain store keep locate base"
    " register list sell",
}
_OF_OPERATION: Mapping[Operation, frozenset[str]] = {
    name: frozenset(tokenise(words)) for name, words in _WORDS.items()
}
"""Stemmed words that say what to calculate, not with which cells."""
_ASKS_OTHERWISE = re.compile(
    r"\W*(?:why|when|where|how (?:is|are|was|were|does|do)\b)", re.IGNORECASE
)
_COMPARES = re.compile(
    r"\b(?:than|exceed(?:s|ed)?|over|above|below|under|at least|largest|smallest|highest|lowest)\b",
    re.IGNORECASE,
)
_WEIGHTED = re.compile(r"\bweighted[- ]average\b", re.IGNORECASE)
"""Part of a name, not what is asked for."""
_YEAR = re.compile(r"(?<![\d,.])(?:19|20)\d\d(?!\d|[,.]\d)")
_WRITTEN_YEAR = re.compile(r"\b(?:20\d\d/|F(?:Y|iscal ?)?[ '\u2019]?)(?:20)?(\d\d)(?!\d\d)\d?\b")
"""A fiscal year, which goes by the calendar year of its end: 2018/19, FY19, or FY191 with the mark
of a note."""
_HOW_MANY = re.compile(r"\bhow many (?:different |distinct )?(?P<what>.+)", re.IGNORECASE)
_NUMBER_OF_YEARS = re.compile(r"\b(?:\d|two|three|four|five) (?:fiscal )?years\b", re.IGNORECASE)
_DAY = re.compile(
    r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r" ?\d{1,2}\b,?"
)
_ASIDE = re.compile(r"(?<=\w)\s*\([^()]*\)")
"""Behind a label: its unit or date."""
_BOUND = re.compile(
    r"\b(?P<way>exceed(?:s|ed)?|more than|over|above|less than|below|under|at least)\b\W{0,3}"
    r"(?P<figure>\d[\d,]*(?:\.\d+)?)",
    re.IGNORECASE,
)
_PARTS = re.compile(
    r"\b(?:as (?:an? )?(?:percentage|percent|proportion|share|ratio|%) (?:of|to|over)|out of|over"
    r"|to(?= total)|in|from|relative to|compared (?:to|with)|of)\b",
    re.IGNORECASE,
)
_QUANTITIES: Sequence[tuple[re.Pattern[str], str, str]] = tuple(
    (re.compile(rf"\b(?:{adjective})\b", re.IGNORECASE), said, nouns)
    for adjective, said, nouns in (
        ("most expensive|dearest|costliest", "highest", "price cost fee"),
        ("least expensive|cheapest", "lowest", "price cost fee"),
        ("heaviest", "highest", "weight mass"),
        ("lightest", "lowest", "weight mass"),
        ("oldest", "highest", "age"),
        ("youngest", "lowest", "age"),
        ("tallest", "highest", "height"),
        ("longest", "highest", "length duration"),
        ("shortest", "lowest", "length duration"),
    )
)
"""Adjectives that name a quantity, and what its column may be called."""
_SUMMED = re.compile(r"\b(?:most|fewest|least)\b(?! \w+ive\b)", re.IGNORECASE)
"""Asks for what has the most of something in all, not for the largest of its figures."""
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}
_SEVERAL = re.compile(
    r"\b(?:which|what(?: are| were)?(?: the)?|top) (?:top )?"
    rf"(?P<n>{'|'.join(_NUMBERS)}|[2-9]|1\d|20)\b",
    re.IGNORECASE,
)
"""How many are asked for: which three, what are the 3, the top ten."""
_AND = re.compile(r"\s*,?\s*\b(?:and|versus|vs\.?|compared (?:to|with)|as well as)\b\s*|,\s+")
_FROM_TO = re.compile(
    r"\b(?:from|between) (?P<first>[\w' -]+?) (?:to|until|till|through|and) (?P<last>[\w'-]+)"
)
_TOTALS = frozenset(tokenise("total totals net overall subtotal"))
_PART_OF_YEAR = re.compile(
    r"\W*(?:[QH][1-4]|[1-4][QH]|of which|thereof|half[- ]year|quarter"
    r"|(?:first|second|third|fourth|[1-4](?:st|nd|rd|th)) (?:quarter|half))\b.*",
    re.IGNORECASE,
)
"""Rows next to months that sum them, and rows that are part of the one above."""
_LEAST_TOLD = 0.7
"""Share of a question's words, by rarity, that the labels of the cells must have."""
_LEAST_NAMED = 0.5
"""Share of a row's own words that the question must have."""
CALCULATED_RIGHT = 0.9
"""Share of the results that are right, rounded down (evaluation/reports/calculations.md)."""
_LINE = re.compile(r"\S[^\n]*")
MOST_PASSAGES = 1_000
"""Of a document that is calculated with, some 4,000 rows. A larger one is a data set: reading it
would take seconds, and a sum over a part of it would be wrong."""
MOST_SHOWN = 20
"""Rows and terms that an answer shows of a result."""
_TITLE = re.compile(r"(?:\S+ ){0,9}\S*[^.\s]|[^.]*:")
"""Of a table: a short line, or one that announces it."""
_GROUP_WORDS = 12
"""A line between rows that is longer names no group of them: another table begins."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure with what names it."""

    row: str
    column: str
    """Empty for a row that has no figure: it counts as a record."""
    figure: Figure
    source: Candidate
    tokens: frozenset[str]
    """Stemmed words of the row and the column."""
    row_tokens: frozenset[str]
    column_tokens: frozenset[str]
    around: frozenset[str]
    """Stemmed words of what stands above its row: headings, the name of a group of rows; the labels
    of its cells of text."""
    table: int
    part: str
    """The section and the title that its table stands under."""
    texts: tuple[tuple[str, str], ...]
    """The labelled cells of text of its row, label and value."""

    @property
    def place(self) -> tuple[int, str]:
        """The column that it stands in."""
        return self.table, self.column

    @property
    def record(self) -> tuple[object, ...]:
        """What it is a figure of, wherever that stands."""
        return self.texts, self.column


@dataclass(frozen=True, slots=True)
class Calculation:
    """A result, how it was made, and the cells."""

    result: str
    """Empty where the cells are all that is asked for."""
    formula: str
    """Empty where the result is a name."""
    cells: tuple[Cell, ...]


def operation_of(question: str) -> Operation | None:
    """Return what a question asks to calculate; None if it asks for something else."""
    if _ASKS_OTHERWISE.match(question):
        return None
    plain = _WEIGHTED.sub(" ", question)
    found = [name for name, pattern in _OPERATIONS.items() if pattern.search(plain)]
    if "mean" in found and {"growth", "change"} & set(found):
        return None  # a change of means is two steps
    if {"share", "change"} <= set(found) and "growth" not in found:
        return "change"  # of a share
    return next(iter(found), None)


def calculate(question: str, lines: Sequence[Line], *, whole: bool = False) -> Calculation | None:
    """Return what a question asks to calculate from rows; None where they do not tell.

    Args:
        question: What was asked.
        lines: Of one document, in its order; those that are no rows part tables and name groups
            of rows.
        whole: Whether the cells have to tell every word of the question.
    """
    asked = _asked(question, lines)
    made = asked and _CALCULATED[asked.operation](asked)
    if made and not _are_alike(made.cells):
        return None
    return made if asked and made and (not whole or _told_by(asked, made.cells)) else None


def _are_alike(cells: Sequence[Cell]) -> bool:
    """Return whether figures can be taken together.

    They have one unit, which may stand at some of them only, as that of an account does; and none
    of them is of a record that another part has with another figure.
    """
    units = {cell.figure.unit for cell in cells} - {""}
    parts: dict[tuple[object, ...], set[str]] = {}
    for cell in cells:
        if cell.texts and cell.column:
            parts.setdefault(cell.record, set()).add(cell.part)
    return len(units) < 2 and all(len(found) == 1 for found in parts.values())


def _each_once(cells: Sequence[Cell]) -> list[Cell]:
    """Return cells; of a record that stands in several parts with one figure, the first."""
    first: dict[tuple[object, ...], str] = {}
    return [
        cell
        for cell in cells
        if not cell.texts
        or first.setdefault((*cell.record, cell.figure.value), cell.part) == cell.part
    ]


def names_labels(question: str, lines: Sequence[Line]) -> bool:
    """Return whether a question that calculates has a word of the labels of records."""
    asked = _asked(question, lines)
    records = [] if asked is None else [cell for cell in asked.cells if cell.texts]
    labels = {label for cell in records for label, _ in (*cell.texts, (cell.column, ""))}
    return asked is not None and not asked.words.isdisjoint(tokenise(" ".join(labels)))


def _asked(question: str, lines: Sequence[Line]) -> _Asked | None:
    operation = operation_of(question)
    cells = [] if operation is None else cells_of(lines, timed=operation in ("sum", "mean"))
    if operation is None or not cells:
        return None
    columns = {cell.column: cell.column_tokens for cell in cells}
    return _Asked(_with_quantity(_with_years(question), columns), operation, cells)


class Line(NamedTuple):
    """A line of a document."""

    text: str
    source: Candidate | None
    """Where it can be quoted from."""


def cells_of(lines: Sequence[Line], *, timed: bool = False) -> list[Cell]:
    """Return the figures of rows with what names them, table by table.

    What names a table stands above it; that of the only table of a document anywhere around it.
    Hours and minutes, 1:30, are figures where they are `timed`.
    """
    cells: list[Cell] = []
    exchanged = with_commas(line.text for line in lines)
    clocks = with_clocks(line.text for line in lines) if timed else frozenset[str]()
    table, labels, group = 0, frozenset[str](), frozenset[str]()
    titles, above, read_to = list[str](), dict[int, frozenset[str]](), 0
    title = ""
    for line in lines:
        parts = [part.strip() for part in line.text.split(CELLS)]
        is_row = len(parts) > 1 and line.source is not None
        read = _figures(parts, exchanged, clocks) if is_row else None
        if read is None or line.source is None:
            heads = frozenset(parts) if len(parts) > 1 else frozenset()
            if (heads and not heads & labels) or len(line.text.split()) > _GROUP_WORDS:
                table, labels = table + 1, heads
            group = frozenset() if heads else frozenset(tokenise(line.text))
            title = titles[-1] if heads and titles else title
            if not heads and _TITLE.fullmatch(line.text):
                titles.append(line.text)
            continue
        if table not in above:
            above[table] = frozenset(tokenise(" ".join(titles[read_to:])))
        read_to = len(titles)
        names, figures = read
        name = names[0] if names else ""
        of_row = frozenset(tokenise(_with_years(" ".join(names))))
        cut = [part.rpartition(": ") for part in parts]
        texts = tuple((label, text) for label, _, text in cut if label and text in names)
        kind = frozenset(tokenise(" ".join(label for label, _ in texts)))
        part = f"{line.source.item.hit.passage.chunk.section} {title}"
        around = group | kind | line.source.above_tokens | above[table]
        for label, figure in figures or [("", NO_FIGURE)]:
            of_column = frozenset(tokenise(_with_years(label)))
            both = of_row | of_column
            cells.append(
                Cell(
                    name,
                    label,
                    figure,
                    line.source,
                    both,
                    of_row,
                    of_column,
                    around,
                    table,
                    part,
                    texts,
                )
            )
    if len(above) > 1:
        return cells
    everywhere = frozenset(tokenise(" ".join(titles)))
    return [replace(cell, around=cell.around | everywhere) for cell in cells]


def _figures(
    parts: Sequence[str],
    exchanged: frozenset[str] = frozenset(),
    clocks: frozenset[str] = frozenset(),
) -> tuple[list[str], list[tuple[str, Figure]]] | None:
    """Return what names a row and its figures by label; None if it is no labelled row.

    Its first cell names it, and so do cells of text. In columns that are `exchanged` a comma stands
    before the decimals, in `clocks` are hours and minutes.
    """

    def read(label: str, value: str) -> Figure | None:
        if label in clocks:
            return minutes_of(value)
        if label not in exchanged:
            return figure_of(value)
        figure = figure_of(value.translate(EXCHANGED))
        return figure and figure._replace(text=value, has_comma=True)

    cells = [part.rpartition(": ") for part in parts]
    if not any(label for label, _, _ in cells):
        return None
    names = [parts[0] if not cells[0][0] else cells[0][2]]
    figures: list[tuple[str, Figure]] = []
    for label, _, value in cells[1:]:
        figure = read(label, value) if label else None
        if figure is None or (_YEAR.fullmatch(value) and "year" in tokenise(label)):
            names.append(value)
        else:
            figures.append((label, figure))
    if (
        cells[0][0]
        and (first := read(cells[0][0], cells[0][2]))
        and not _YEAR.fullmatch(cells[0][2])
    ):
        return names[1:], [(cells[0][0], first), *figures]  # a sum, or a record with a number
    return names, figures


def has_rows(text: str) -> bool:
    """Return whether a passage has a row of a table."""
    return CELLS in text


def lines_of(evidence: Sequence[Evidence]) -> list[Line]:
    """Return the lines of a document's passages in order, what two passages share once.

    Args:
        evidence: All passages of one document in reading order.
    """
    lines: list[Line] = []
    read_to = 0
    for item in evidence:
        chunk = item.hit.passage.chunk
        rows = {one.start: one for one in candidates([item])} if has_rows(chunk.text) else {}
        for match in _LINE.finditer(chunk.text):
            if chunk.start + match.start() >= read_to:
                lines.append(Line(one_line(match.group()), rows.get(match.start())))
        read_to = max(read_to, chunk.end)
    return lines


def write_calculation(quoting: Quoting, made: Calculation) -> None:
    """Write a result with how it was made, then the rows of its cells as quotes."""
    if made.result:
        quoting.say(f"**{made.result}**" + (f" = {made.formula}" if made.formula else "") + "\n")
    sources = list(dict.fromkeys(cell.source for cell in made.cells))
    for at, source in enumerate(sources[:MOST_SHOWN]):
        quoting.say("\n- " if at or made.result else "- ")
        quoting.quote(source)
    if len(sources) > MOST_SHOWN:
        quoting.say(f"\n- {len(sources) - MOST_SHOWN} more rows of the same table")


class _Asked:
    """A question with the cells that could be meant."""

    def __init__(self, question: str, operation: Operation, cells: Sequence[Cell]) -> None:
        self.text, self.operation = question, operation
        cells = _each_once(cells)
        self.cells = [cell for cell in cells if cell.column]
        self.records = list({cell.source.key: cell for cell in cells if cell.texts}.values())
        """One cell of each record."""
        self.years = _years(question, operation)
        held: Counter[str] = Counter(token for cell in cells for token in cell.tokens)
        self._rarity: Mapping[str, float] = {
            token: math.log(1 + len(cells) / count) for token, count in held.items()
        }
        self._unknown = math.log(1 + len(cells))
        of_records = (cell.column_tokens for cell in cells if cell.texts)
        self._idle = _OF_ALL.difference(*of_records) | _OF_OPERATION[operation]
        language = language_of(question) or DEFAULT
        own_words = LANGUAGES[language].function_words
        self._claimless = CLAIMLESS_WORDS[DEFAULT].union(tokenise(own_words))
        pattern = {"count": _BOUND, "largest": _SEVERAL, "smallest": _SEVERAL}.get(operation)
        self.words = self.telling(pattern.sub(" ", question) if pattern else question)

    def telling(self, text: str) -> frozenset[str]:
        """Return the stemmed words of a text that name cells, years left out."""
        for pattern in (_DAY, _NUMBER_OF_YEARS, _YEAR):
            text = pattern.sub(" ", text)
        words = set(tokenise(text))
        return frozenset(words - self._idle - self._claimless)

    def weight(self, tokens: Iterable[str]) -> float:
        return sum(self._rarity.get(token, self._unknown) for token in tokens)

    def told(self, words: frozenset[str], cell: Cell) -> float:
        """Return the share of words that a cell's labels have, by rarity."""
        return self.weight(words & (cell.tokens | cell.around)) / (self.weight(words) or 1.0)

    def named(self, words: frozenset[str], cell: Cell) -> float:
        """Return the share of the row's own words that are among the words and years."""
        own = self.telling(cell.row) or cell.row_tokens
        return self.weight(own & words) / (self.weight(own) or 1.0)

    def fit(self, words: frozenset[str], cell: Cell) -> float:
        """Return how well words mean a cell: what they say of it and it of them."""
        own = self.weight(words & cell.tokens) / (self.weight(words) or 1.0)
        return self.told(words, cell) + own + self.named(words, cell)

    def means(self, words: frozenset[str], cell: Cell) -> bool:
        return self.told(words, cell) >= _LEAST_TOLD and (
            self.named(words, cell) >= _LEAST_NAMED or self.column_is_named(words, cell)
        )

    def column_is_named(self, words: frozenset[str], cell: Cell) -> bool:
        own = self.telling(_ASIDE.sub("", cell.column))
        return bool(own) and self.weight(own & words) / self.weight(own) >= _LEAST_NAMED

    def best(
        self, words: frozenset[str], year: str = "", among: Sequence[Cell] | None = None
    ) -> Cell | None:
        """Return the cell that words mean, of a year where one is given."""
        cells = self.cells if among is None else among
        fits = [cell for cell in cells if not year or year in cell.tokens]
        best = max(fits, key=lambda cell: self.fit(words, cell), default=None)
        return best if best is not None and self.means(words, best) else None

    def by_years(self, years: Sequence[str]) -> tuple[Cell, ...] | None:
        """Return one cell for each year, all of one row or all of one column."""
        lines: dict[tuple[str, str], dict[str, Cell]] = {}
        for year in years:
            for cell in self.cells:
                if year in cell.column_tokens:
                    rest = " ".join(sorted(_undated(cell.column_tokens)))
                    lines.setdefault((f"row {cell.source.key}", rest), {}).setdefault(year, cell)
                elif year in cell.row_tokens:
                    rest = " ".join(sorted(_undated(cell.row_tokens)))
                    lines.setdefault((f"column {cell.table} {cell.column}", rest), {}).setdefault(
                        year, cell
                    )
        full = [line for line in lines.values() if len(line) == len(years)]
        best = max(full, key=lambda line: self.fit(self.words, line[years[0]]), default=None)
        if best is None or not self.means(self.words, best[years[0]]):
            return None
        return tuple(best[year] for year in years)

    def phrases(self) -> list[frozenset[str]]:
        """Return the words of each thing that `A and B` names."""
        found = [self.telling(part) for part in _AND.split(self.text)]
        return [words for words in found if words]

    def by_phrases(self) -> tuple[Cell, ...] | None:
        """Return one cell for each thing that is named, of the one year where one is."""
        year = self.years[0] if len(self.years) == 1 else ""
        named = self.phrases()
        if len(named) < 2:
            return None
        first = self.best(named[0], year)
        if first is None:
            return None
        beside = [
            one for one in self.cells if one.place == first.place or one.source is first.source
        ]
        cells = [first, *(self.best(words, year, beside) for words in named[1:])]
        known = tuple(dict.fromkeys(cell for cell in cells if cell is not None))
        return known if len(known) == len(named) else None

    def span(self) -> tuple[Cell, ...] | None:
        """Return the figures of a column from one named row to another; None where none is named.

        Rows that sum others, as a quarter does its months, are left out.
        """
        for match in _FROM_TO.finditer(self.text):
            first, last = (frozenset(tokenise(match[side])) for side in ("first", "last"))
            named = self.words - first - last
            ends = [cell for cell in self.cells if cell.row_tokens in (first, last)]
            cells = [one for one in ends if not named or self.column_is_named(named, one)]
            if len({cell.place for cell in cells}) == 1 and len(cells) == 2:
                column = [cell for cell in self.cells if cell.place == cells[0].place]
                line = column[column.index(cells[0]) : column.index(cells[1]) + 1]
                return tuple(
                    cell
                    for cell in line
                    if not (_sums_others(cell) or _PART_OF_YEAR.fullmatch(cell.row))
                )
        return None

    def line(self) -> tuple[Cell, ...] | None:
        """Return the figures of the row or column that is meant, sums of others left out."""
        best = self.best(self.words, self.years[0] if len(self.years) == 1 else "")
        if best is None:
            return None
        if self.named(self.words, best) >= _LEAST_NAMED and not self.years:
            found = [cell for cell in self.row_of(best) if not cell.column_tokens & _TOTALS]
            kind = _undated(best.column_tokens)
            dated = [one for one in found if _year_of(one.column)]
            dated = [one for one in dated if _undated(one.column_tokens) == kind]
            found = dated if len(dated) > 1 else found
        elif self.named(self.words, best) >= _LEAST_NAMED and not self.column_is_named(
            self.words, best
        ):
            return None  # one cell, of one year
        else:
            found = self.column_of(best)
        return tuple(found) if len(found) > 1 else None

    def row_of(self, cell: Cell) -> list[Cell]:
        return [one for one in self.cells if one.source is cell.source]

    def column_of(self, cell: Cell) -> list[Cell]:
        """Return the figures of a column in the rows that are meant, sums of others left out."""
        return self.meant([one for one in self.cells if one.place == cell.place])

    def meant(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells of the records that the words tell apart; of all where they tell none.

        None when no record has all of the words, unless the question names several things. Rows
        that sum others are left out.
        """
        cells = [cell for cell in cells if not _sums_others(cell)]
        months = [cell for cell in cells if not _PART_OF_YEAR.fullmatch(cell.row)]
        cells = months or cells
        words = self.words.union(self.years)
        said = [words & cell.row_tokens if cell.texts else frozenset() for cell in cells]
        telling = frozenset[str]().union(*said) - frozenset.intersection(*said) if said else None
        if not telling:
            return cells
        most = max(len(words & telling) for words in said)
        if most < len(telling) and not _AND.search(self.text):
            return []
        return [
            cell for cell, words in zip(cells, said, strict=True) if len(words & telling) == most
        ]

    def asked_of(self, cell: Cell) -> str:
        """Return the label of a record's cell that the question asks for first; empty for none."""
        order = tokenise(self.text)
        named = [(tokenise(label), label) for label, _ in cell.texts]
        found = [(order.index(own[0]), label) for own, label in named if own and {*own} <= {*order}]
        return min(found, default=(0, ""))[1]


def _years(question: str, operation: Operation) -> tuple[str, ...]:
    """Return the years of a question in order; of a sum or mean those within a span too."""
    spans = years_in(question) if operation in ("mean", "sum") else set[str]()
    return tuple(sorted({*_YEAR.findall(question), *spans}))


def _with_years(text: str) -> str:
    """Return a text with fiscal years written as calendar years, and days apart from years."""
    return _WRITTEN_YEAR.sub(r"20\1", text)


def _with_quantity(text: str, columns: Mapping[str, frozenset[str]]) -> str:
    """Return a question with `cheapest` written as `lowest unit price` where one column is that."""
    for adjective, said, nouns in _QUANTITIES:
        if adjective.search(text):
            named = [one for one, tokens in columns.items() if tokens & frozenset(tokenise(nouns))]
            return adjective.sub(f"{said} {named[0]}", text) if len(named) == 1 else text
    return text


def _undated(tokens: Iterable[str]) -> set[str]:
    """Return the words without years, days of a month and marks of notes."""
    return {token for token in tokens if not token.isdigit()}


def _year_of(text: str) -> list[str]:
    return _YEAR.findall(_with_years(text))


def _dated(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of columns with a year, in the order of the years."""
    dated = [(year[0], cell) for cell in cells if (year := _year_of(cell.column))]
    return [cell for _, cell in sorted(dated, key=lambda pair: pair[0])]


def _pair(asked: _Asked) -> tuple[Cell, ...] | None:
    """Return what comes first and what comes then."""
    if len(asked.years) == 2:
        return asked.by_years(asked.years)
    named = asked.by_phrases()
    if named is not None and len(named) == 2:
        return named
    if asked.years:
        return None
    latest = tuple(_dated(asked.line() or ())[-2:])
    return latest if len(latest) == 2 else None


def _change(asked: _Asked) -> Calculation | None:
    pair = _pair(asked)
    if pair is None:
        return None
    first, then = pair if _is_in_time(pair) else pair[::-1]  # what is named first, less the other
    result = then.figure.value - first.figure.value
    percent = " percentage points" if then.figure.is_percent else ""
    return Calculation(
        f"{shown(result)}{percent}", f"{_term(then)} - {_term(first, closed=True)}", (then, first)
    )


def _growth(asked: _Asked) -> Calculation | None:
    pair = _pair(asked)
    if pair is None or not pair[0].figure.value or not _is_in_time(pair):
        return None
    first, then = pair
    if first.figure.is_percent and then.figure.is_percent:
        return _change(asked)
    result = (then.figure.value - first.figure.value) / abs(first.figure.value) * 100
    formula = f"({_term(then)} - {_term(first, closed=True)}) / {_term(first, closed=True)}"
    return Calculation(f"{rounded(result)} %", formula, (then, first))


def _is_in_time(pair: Sequence[Cell]) -> bool:
    """Return whether two cells are of two years, the earlier first."""
    first, then = (_year_of(f"{cell.column} {cell.row}") for cell in pair)
    return bool(first and then) and first < then


def _mean(asked: _Asked) -> Calculation | None:
    cells = tuple(cell for cell in _several(asked) or () if not cell.figure.is_nothing)
    if not cells:
        return None
    result = sum((cell.figure.value for cell in cells), Decimal()) / len(cells)
    percent = " %" if all(cell.figure.is_percent for cell in cells) else ""
    said = _like(rounded(result), result, cells)
    return Calculation(f"{said}{percent}", f"({_sum_of(cells)}) / {len(cells)}", cells)


def _sum(asked: _Asked) -> Calculation | None:
    cells = _several(asked)
    if cells is None:
        return None
    if not asked.years and len({cell.source.key for cell in cells}) == 1 and _dated(cells):
        return None  # a total of unnamed years is a stated one
    result = sum((cell.figure.value for cell in cells), Decimal())
    return Calculation(_like(shown(result), result, cells), _sum_of(cells), cells)


def _like(text: str, value: Decimal, cells: Sequence[Cell]) -> str:
    """Return a result in the form of the figures that have one of their own."""
    formed = (one.figure for one in cells)
    form = next(
        (one for one in formed if one.has_comma or one.is_clock or one.converted_to), NO_FIGURE
    )
    return text if form is NO_FIGURE else written(value, form)


def _several(asked: _Asked) -> tuple[Cell, ...] | None:
    cells = _meant_together(asked)
    return cells and _in_one_unit(cells)


def _in_one_unit(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    figures = in_one_unit([cell.figure for cell in cells])
    return tuple(replace(cell, figure=figure) for cell, figure in zip(cells, figures, strict=True))


def _meant_together(asked: _Asked) -> tuple[Cell, ...] | None:
    if (span := asked.span()) is not None:
        return span
    if len(asked.years) > 1:
        return asked.by_years(asked.years)
    best = asked.best(asked.words, asked.years[0] if asked.years else "")
    if best is not None and best.tokens & _OF_OPERATION[asked.operation]:
        return None  # the table states it
    is_one = best is not None and asked.telling(best.row) == asked.words
    return (None if is_one else asked.by_phrases()) or asked.line()


def _share(asked: _Asked) -> Calculation | None:
    year = asked.years[0] if len(asked.years) == 1 else ""
    if len(asked.years) > 1:
        return None
    for split in reversed(list(_PARTS.finditer(asked.text))):
        sides = asked.telling(asked.text[: split.start()]), asked.telling(asked.text[split.end() :])
        if not all(sides):
            continue
        part, whole = (asked.best(words, year) for words in sides)
        if part is None or whole is None or abs(part.figure.value) >= abs(whole.figure.value):
            continue
        if not year and part.place != whole.place and part.source is not whole.source:
            continue
        result = part.figure.value / whole.figure.value
        is_ratio = re.search(r"\b(?:ratio|proportion)\b", asked.text, re.IGNORECASE)
        said = rounded(result) if is_ratio else f"{rounded(result * 100)} %"
        return Calculation(said, f"{_term(part)} / {_term(whole, closed=True)}", (part, whole))
    return None


def _count(asked: _Asked) -> Calculation | None:
    bound = _BOUND.search(asked.text)
    if bound is None:
        return None
    limit, way = Decimal(bound["figure"].replace(",", "")), bound["way"].lower()
    named = asked.telling(asked.text[: bound.start()] + asked.text[bound.end() :])
    best = asked.best(named)
    if best is None:
        return None
    by_row = asked.named(named, best) >= _LEAST_NAMED
    line = asked.row_of(best) if by_row else asked.column_of(best)
    below = way in {"less than", "below", "under"}
    found = tuple(
        cell
        for cell in line
        if (cell.figure.value < limit if below else cell.figure.value > limit)
        or (way == "at least" and cell.figure.value == limit)
    )
    sign = "<" if below else ">"
    return Calculation(str(len(found)), f"{sign} {bound['figure']}", found or tuple(line))


def _extreme(asked: _Asked) -> Calculation | None:
    if (of_records := _most_records(asked)) is not None:
        return of_records
    best = asked.best(asked.words, asked.years[0] if len(asked.years) == 1 else "")
    if best is None:
        return None
    if asked.column_is_named(asked.words, best) or asked.years:
        line = asked.column_of(best)
    else:
        line = asked.row_of(best)
    line = [cell for cell in line if not cell.figure.is_nothing]
    line = list(_in_one_unit(line))
    if len(line) < 2 or not _are_alike(line):
        return None
    pick = max if asked.operation == "largest" else min
    if label := asked.asked_of(line[0]):
        return _extreme_record(asked, line, label, pick)
    found = pick(line, key=lambda cell: cell.figure.value)
    if found.texts and asked.text.lower().startswith("what"):
        return Calculation(found.figure.text, "", (found,))
    same_row = line[0].source is line[-1].source
    return Calculation(found.column if same_row else found.row, "", (found,))


def _extreme_record(
    asked: _Asked, cells: Sequence[Cell], label: str, pick: Callable[..., Decimal]
) -> Calculation:
    """Return which value of a column of text has the extreme; that of its sum for `most`."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(dict(cell.texts).get(label, cell.row), []).append(cell)
    summed = len(groups) < len(cells) and _SUMMED.search(asked.text) is not None
    values = {
        name: sum(figures, Decimal()) if summed else pick(figures)
        for name, of in groups.items()
        if (figures := [cell.figure.value for cell in of])
    }
    several = _SEVERAL.search(asked.text)
    count = _NUMBERS.get(several["n"].lower(), 0) or int(several["n"]) if several else 1
    ranked = sorted(values.values(), reverse=asked.operation == "largest")
    chosen = set(ranked[:count])
    names = [name for name, value in values.items() if value in chosen]
    names.sort(key=lambda name: ranked.index(values[name]))
    found = tuple(
        cell
        for name in names
        for cell in groups[name]
        if summed or cell.figure.value == values[name]
    )
    if summed and len(names) == 1:
        return Calculation(f"{names[0]}: {shown(ranked[0])}", _sum_of(found), found)
    return Calculation(", ".join(names), "", found)


def _most_records(asked: _Asked) -> Calculation | None:
    """Return which value of a column of text the most or the fewest records have."""
    match = _SUMMED.search(asked.text)
    counted = tokenise(asked.text[match.end() :]) if match else []
    for line in _records_of(asked, counted):
        label = asked.asked_of(line[0])
        if not label or _begins(counted, label):
            continue
        groups: dict[str, list[Cell]] = {}
        for one in line:
            groups.setdefault(dict(one.texts).get(label, ""), []).append(one)
        most = (max if asked.operation == "largest" else min)(map(len, groups.values()))
        names = [name for name, of in groups.items() if len(of) == most]
        return Calculation(
            f"{', '.join(names)}: {most}", "", tuple(one for name in names for one in groups[name])
        )
    return None


def _number(asked: _Asked) -> Calculation | None:
    """Return how many records are meant, or the sum of their column that is asked for."""
    match = _HOW_MANY.search(asked.text)
    what = tokenise(match["what"]) if match else []
    columns = {cell.place: cell for cell in asked.cells if cell.texts}
    for cell in columns.values():
        line = asked.column_of(cell) if _begins(what, cell.column) else []
        if len(line) > 1 and _told_by(asked, line):
            total = sum((one.figure.value for one in line), Decimal())
            return Calculation(_like(shown(total), total, line), _sum_of(line), tuple(line))
    for line in _records_of(asked, what):
        texts = [(label, text) for one in line for label, text in one.texts]
        values = {text for label, text in texts if _begins(what, label)}
        return Calculation(str(len(values)), "", tuple(line))
    return None


def _records_of(asked: _Asked, what: Sequence[str]) -> Iterator[list[Cell]]:
    """Yield the records that are meant of each table where a label is what is counted."""
    tables: dict[int, list[Cell]] = {}
    for cell in asked.records:
        tables.setdefault(cell.table, []).append(cell)
    for cells in tables.values():
        labels = dict.fromkeys(label for cell in cells for label, _ in cell.texts)
        line = asked.meant(cells) if any(_begins(what, label) for label in labels) else []
        if line and _told_by(asked, line):
            yield line


def _begins(what: Sequence[str], label: str) -> bool:
    """Return whether stemmed words begin with those of a label."""
    own = tokenise(label)
    return bool(own) and what[: len(own)] == own


def _sums_others(cell: Cell) -> bool:
    """Return whether a row is a total: of a record, a text begins or ends so."""
    if not cell.texts:
        return bool(cell.row_tokens & _TOTALS)
    ends = [own[at] for _, text in cell.texts if (own := tokenise(text)) for at in (0, -1)]
    return not {"total", "subtot"}.isdisjoint(ends)


def _told_by(asked: _Asked, cells: Sequence[Cell]) -> bool:
    """Return whether every word of the question is one of these cells or of what names them."""
    told = frozenset[str]().union(*(cell.tokens | cell.around for cell in cells))
    return asked.words.union(asked.years) <= told


def _covered(asked: _Asked) -> Calculation | None:
    """Return the years for which a row has figures, or the table that the question names."""
    if _COMPARES.search(asked.text):
        return None
    best = asked.best(asked.words)
    whole = best is None
    if best is None:
        fits = (one for one in asked.cells if asked.told(asked.words, one) >= _LEAST_TOLD)
        is_only = not asked.words and len({one.table for one in asked.cells}) == 1
        best = asked.cells[0] if is_only else next(fits, None)
    line = () if best is None else tuple(asked.row_of(best))
    cells = [cell for cell in line if whole or not NOTHING.fullmatch(cell.figure.text)]
    years = {year[0]: cell for cell in reversed(cells) if (year := _year_of(cell.column))}
    if len(years) < 2:
        return None
    return Calculation(", ".join(reversed(years)), "", tuple(years.values()))


def _values(asked: _Asked) -> Calculation | None:
    cells = asked.by_years(asked.years)
    return Calculation("", "", cells) if cells else None


_CALCULATED = {
    "growth": _growth,
    "share": _share,
    "mean": _mean,
    "change": _change,
    "sum": _sum,
    "count": _count,
    "largest": _extreme,
    "smallest": _extreme,
    "years": _covered,
    "values": _values,
    "number": _number,
}


def _sum_of(cells: Sequence[Cell]) -> str:
    if len(cells) > MOST_SHOWN:
        return f"sum of {len(cells)} figures"
    return " + ".join(_term(cell, closed=at > 0) for at, cell in enumerate(cells))


def _term(cell: Cell, *, closed: bool = False) -> str:
    said = written(cell.figure.value, cell.figure)
    return f"({said})" if closed and cell.figure.value < 0 else said
