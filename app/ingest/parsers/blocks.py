"""Blocks: what every parser makes of a file, and the one writer that makes stored text of them.

A parser yields blocks in reading order. The writer normalises each on entry, so that offsets stay
exact, and says where blocks lie that a chunk does not cut.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from app.core.normalisation import normalise
from app.core.types import BlockSpan, FileType, Heading, PageSpan, ParsedDocument
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.sniffing import encoded_data, without_encoded

# Inline marks that change what a text means. Parsers put them around raised and lowered text; the
# writer reads them with what stands before and behind.

_UP, _DOWN, _END = "\ufdd0", "\ufdd1", "\ufdd2"
"""Noncharacters, which no text holds (Unicode Standard, section 23.7)."""
_INNERMOST = re.compile(f"([{_UP}{_DOWN}])([^{_UP}{_DOWN}{_END}]*){_END}")
_NUMBER = re.compile(r"[+\-\u2212\u2013]?\d+(?:[.,]\d+)*\Z")
_FRACTION_BAR = re.compile(r"\s*[/\u2044\u2215]\s*\Z")
_FRACTION_BEHIND = re.compile(rf"\s*[/\u2044\u2215]\s*{_DOWN}(\d+){_END}")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|re|e|\u00e8me|eme|\u00ba|\u00aa|\u00b0)\Z", re.IGNORECASE)
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+\Z")
_LONGEST_UNIT = 3
"""Letters: a small number behind a longer word is the mark of a footnote, not a power."""
_UNIT = re.compile(
    r"(?<![^\W\d_])(?:[^\W\d_]|[^\W\d_A-Zaeiou]{2,3}|in|mi|ha|sec|min|sin|cos|tan|log|Hz)\Z"
)
"""A unit, a variable or a function, which has powers."""
_MARKS = re.compile(
    r"(?=.*[,*\u2217\u2020\u2021\u00a7\u00b6])[\d\s,*\u2217\u2020\u2021\u00a7\u00b6]+\Z"
)
"""Of footnotes and affiliations."""
_NOTE_SIGNS = frozenset("*,#\u2217\u2020\u2021\u00a7\u00b6\u2016 ")
_SIGNS = "+-\u2212\u2013=*/\u00d7\u00b7"
_SMALL = str.maketrans("23", "\u00b2\u00b3")


def raised(text: str) -> str:
    """Mark text as a superscript; the writer makes `10^12`, `km\u00b2`, `1st` or nothing of it."""
    return f"{_UP}{text}{_END}" if text.strip() else text


def lowered(text: str) -> str:
    """Mark text as a subscript: `H2O`, but `x_10` behind a number."""
    return f"{_DOWN}{text}{_END}" if text.strip() else text


def resolved(text: str) -> str:
    """Return text with raised and lowered parts in plain characters.

    A power keeps its value (`10^12`, `m\u00b2`, `x^(n+1)`), a fraction its bar (`4 1/2`), an
    ordinal its letters; the mark of a footnote, a number or sign behind a word, is left out.
    """
    if "\n" in text and _END in text:
        return "\n".join(map(resolved, text.split("\n")))
    at = 0
    while found := _INNERMOST.search(text, at):
        # only what stands around it can be innermost before it
        at = max(0, *(text.rfind(mark, 0, found.start()) for mark in (_UP, _DOWN)))
        before, inner, after = text[: found.start()], found[2].strip(), text[found.end() :]
        if found[1] == _UP and _NUMBER.match(inner) and (bar := _FRACTION_BEHIND.match(after)):
            gap = " " if before[-1:].isdigit() else ""
            text = f"{before}{gap}{inner}/{bar[1]}{after[bar.end() :]}"
        else:
            make = _power if found[1] == _UP else _index
            text = before + make(before, inner) + after
    return text.replace(_END, "").replace(_UP, "").replace(_DOWN, "") if _END in text else text


def _power(before: str, inner: str) -> str:
    if not inner or (inner.startswith("[") and inner.endswith("]")):
        return ""
    word = _LETTERS_BEFORE.search(before[-_LONGEST_UNIT - 1 :])
    behind_number, behind_word = before[-1:].isdigit(), word is not None
    if _MARKS.match(inner) and not (behind_number and _NUMBER.match(inner)):
        return ""
    if _NUMBER.match(inner):
        inner = inner.replace("\u2212", "-").replace("\u2013", "-")
        if (is_unit := _UNIT.search(before) is not None) and inner in ("2", "3"):
            return inner.translate(_SMALL)
        if behind_number or (before[-1:] and before[-1] in ")]\u03c0" + _SIGNS):
            return f"^{inner}"
        return f"^{inner}" if is_unit else ""
    if behind_number and _ORDINAL.match(inner):
        return inner
    if inner.isalpha() and behind_word and len(inner) > 1:
        return inner  # Mlle, TM
    if inner.isalpha() and word and len(word.group()) > _LONGEST_UNIT:
        return ""  # a footnote's letter
    if not any(map(str.isalnum, inner)):
        return "" if set(inner) <= _NOTE_SIGNS else inner
    return f"^{inner}" if len(inner) == 1 else f"^({inner})"


def _index(before: str, inner: str) -> str:
    if before[-1:].isalpha() or before[-1:] in (")", "]") or _FRACTION_BAR.search(before[-3:]):
        return inner
    return f"_{inner}" if before and not before[-1:].isspace() else inner


# Tables as grids, written as lines that stay readable when a chunk holds only some of them.


class Cell(NamedTuple):
    """One cell as the file has it; it may span rows and columns."""

    text: str
    is_head: bool = False
    rows: int = 1
    columns: int = 1


_MAX_LABEL_CHARACTERS = 60
_LONGEST_HEAD = 160
"""Characters of a head above figures."""
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d\Z")
_DATE = re.compile(
    r"(?:(?:1[5-9]|20)\d\d(?:[/-]\d{2,4})?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|[^\w]*['\u2019]000s?)"
    r"(?: ?\(\w\))?"
)
"""A year, two years, a day, or thousands of a currency; with a footnote's mark."""
MOST_HEADS = 6
"""Rows that may name the columns where nothing marks them."""
_MOST_COLUMNS = 1_000
_MOST_CELLS = 2_000_000
"""Of a grid with its spans resolved; spans behind that count once."""


def table_lines(rows: Sequence[Sequence[Cell]], *, heads: int | None = None) -> list[str]:
    """Return one line a row; cells carry their labels: `Year: 1911 | 2024 Autumn: 240`.

    A merged value stands in every row and column that it covers, several rows of heads are joined,
    and the first cell of a row without heads labels the second.

    Args:
        rows: Cells, row by row; blank rows are dropped.
        heads: How many rows name the columns; None decides by the marks, then the looks of cells.
    """
    lines: list[str] = []
    grid = _grid(rows)
    filled = [row for row in grid if any(cell.text for cell in row)]
    while filled and heads is None and _is_title(filled):
        lines.append(filled.pop(0)[0].text)  # a title above the heads
    if not filled:
        return lines
    count = _head_rows(filled) if heads is None else min(heads, len(filled))
    if len(filled[0]) < 2 or count == len(filled) == 1:
        count = 0
    naming, notes = _without_notes(filled[:count])
    labels = _labels(_spread(naming))
    lines += notes
    if count:
        lines.append(" | ".join(dict.fromkeys(filter(None, labels))))
    for row in filled[count:]:
        lines.append(_labelled(row, labels) if count else _row_line(row))
    return [line for line in lines if line]


def _grid(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """Return rows of the same length, each merged cell in every place that it covers."""
    grid: list[list[Cell]] = []
    pending: dict[int, tuple[Cell, int]] = {}
    left = _MOST_CELLS
    for row in rows:
        line: list[Cell] = []
        cells = iter(row)
        cell = next(cells, None)
        reach = max(pending, default=-1)
        while cell is not None or len(line) <= reach:
            at = len(line)
            if at in pending:
                held, more = pending.pop(at)
                line.append(held)
                if more > 1:
                    pending[at] = held, more - 1
                continue
            if cell is None:
                line.append(Cell(""))
                continue
            clean = cell._replace(text=" ".join(resolved(cell.text).split()))
            width = max(1, min(cell.columns, _MOST_COLUMNS, left))
            for column in range(at, at + width):
                line.append(clean)
                if cell.rows > 1 and left > 0:
                    pending[column] = clean, cell.rows - 1
            left -= width * max(1, cell.rows)
            cell = next(cells, None)
        grid.append(line)
    widest = max(map(len, grid), default=0)
    return [line + [Cell("")] * (widest - len(line)) for line in grid]


def _is_title(grid: Sequence[Sequence[Cell]]) -> bool:
    """Return whether the first row is a title above the heads."""
    first = grid[0]
    if _is_across(first):
        return True
    if len(grid) < 3 or not first[0].text or any(cell.text for cell in first[1:]):
        return False
    is_marked = any(cell.is_head for cell in first)
    return not is_marked and _names_columns(grid[1]) and _is_row_of_figures(grid[2])


def _is_across(row: Sequence[Cell]) -> bool:
    """Return whether one cell goes across the whole table."""
    return len(row) > 1 and all(cell is row[0] for cell in row)


def _head_rows(grid: list[list[Cell]]) -> int:
    """Return how many rows at the top name the columns."""
    marked = 0
    while marked < len(grid) and all(cell.is_head or not cell.text for cell in grid[marked]):
        marked += 1
    if marked:
        return marked
    if any(cell.is_head for cell in grid[0]):
        return 0  # rows that name themselves
    if len(grid) > 2 and _completes(grid[0], grid[1]):
        return 2
    stacked = 0
    while stacked < min(MOST_HEADS, len(grid) - 1) and _names_columns(grid[stacked]):
        if stacked and _is_across(grid[stacked]):  # names a group of rows
            break
        stacked += 1
    named = sum(bool(row[0].text) for row in grid[:stacked])
    if stacked and named <= 1 and _is_row_of_figures(grid[stacked]):
        return stacked
    return 1 if _looks_like_labels(grid[0]) else 0


def has_stacked_heads(rows: Sequence[Sequence[Cell]]) -> bool:
    """Return whether several rows at the top, which nothing marks, name the columns together."""
    return _head_rows(_grid(rows[: MOST_HEADS + 1])) > 1


def _names_columns(row: Sequence[Cell]) -> bool:
    """Return whether the cells behind the first are labels, dates or units, no figures."""
    named = [cell.text for cell in row[1:] if cell.text]
    if not named or max(map(len, named)) > _LONGEST_HEAD:
        return False
    figures = (text for text in named if not any(map(str.isalpha, text)))
    return all(_DATE.fullmatch(text) for text in figures if any(map(str.isdigit, text)))


def _is_row_of_figures(row: Sequence[Cell]) -> bool:
    """Return whether a row is named and most of its cells are figures; or a name above such."""
    if _is_across(row):
        return bool(row[0].text)
    name, *cells = (cell.text for cell in row)
    said = [text for text in cells if text.strip("$-\u2013\u2014")]
    figures = sum(any(map(str.isdigit, text)) for text in said)
    return bool(name) and 2 * figures >= len(said)


def _is_note(text: str) -> bool:
    """Return whether a head only says the unit or a condition: `(in thousands)`."""
    return text.startswith("(") and text.endswith(")")


def _without_notes(heads: Sequence[Sequence[Cell]]) -> tuple[list[Sequence[Cell]], list[str]]:
    """Return the rows that name columns, and what only says the unit or a condition of all.

    So does a corner that is too long to label the names below it.
    """
    rows: list[Sequence[Cell]] = []
    notes: list[str] = []
    for row in heads:
        named = {cell.text for cell in row if cell.text}
        if len(named) == 1 and len(heads) > 1 and _is_note(*named):
            notes += named
        elif len(row) > 1 and (_is_note(row[0].text) or len(row[0].text) > _MAX_LABEL_CHARACTERS):
            notes.append(row[0].text)
            rows.append([Cell(""), *row[1:]])
        else:
            rows.append(row)
    return rows, notes


def _spread(heads: Sequence[Sequence[Cell]]) -> list[Sequence[Cell]]:
    """Return rows of heads whose unmarked spans are filled, all but the lowest.

    Where the columns fall into equal parts with one head each, it is that of its part; else it is
    that of the blank columns to the right of it.
    """
    filled: list[Sequence[Cell]] = []
    for row in heads[:-1]:
        corner, *others = row
        named = [at for at, cell in enumerate(others) if cell.text]
        part, rest = divmod(len(others), len(named) or 1)
        if named and not rest and [at // part for at in named] == list(range(len(named))):
            spread = [others[named[at // part]] for at in range(len(others))]
        else:
            spread = others[:]
            for at in range(1, len(others)):
                spread[at] = others[at] if others[at].text else spread[at - 1]
        filled.append([corner, *spread])
    return [*filled, *heads[-1:]]


def _completes(top: Sequence[Cell], below: Sequence[Cell]) -> bool:
    """Return whether a row only names the columns below merged heads."""
    seen = Counter(map(id, top))
    apart = [(head, low) for head, low in zip(top, below, strict=True) if seen[id(head)] == 1]
    return len(apart) < len(top) and all(
        low.text in ("", head.text) or any(low is other for other in top) for head, low in apart
    )


def _looks_like_labels(cells: Sequence[Cell]) -> bool:
    named = list({id(cell): cell.text for cell in cells if cell.text}.values())
    blank = sum(not cell.text for cell in cells)
    return (
        blank <= 1  # the corner cell is often blank
        and len(set(named)) == len(named)
        and (len(named) > 1 or len(cells) == 1)
        and all(
            len(text) <= _MAX_LABEL_CHARACTERS
            and (any(map(str.isalpha, text)) or (at and _YEAR.match(text)))
            for at, text in enumerate(named)
        )
    )


def _labels(heads: Sequence[Sequence[Cell]]) -> list[str]:
    """Return a label for each column: the texts of its heads, from the top, each once."""
    columns = ([cell.text for cell in column] for column in zip(*heads, strict=True))
    return [" ".join(dict.fromkeys(filter(None, texts))) for texts in columns]


def _labelled(row: Sequence[Cell], labels: Sequence[str]) -> str:
    if _is_across(row):
        return row[0].text  # one cell across the table: the name of the rows below
    parts = []
    for cell, label in zip(row, labels, strict=True):
        if cell.text:
            parts.append(f"{label}: {cell.text}" if label and label != cell.text else cell.text)
    return " | ".join(parts)


def _row_line(row: Sequence[Cell]) -> str:
    """Return a row of a table without column heads; its own head labels what follows."""
    befores = [None, *row[:-1]]
    once = [cell for cell, last in zip(row, befores, strict=True) if cell.text and cell is not last]
    if len(once) > 1 and once[0].is_head and not once[1].is_head:
        label = once[0].text.rstrip(":")
        return " | ".join([f"{label}: {once[1].text}", *(cell.text for cell in once[2:])])
    return " | ".join(cell.text for cell in once)


# Blocks and their writer.

BlockKind = Literal[
    "page", "heading", "paragraph", "item", "table", "code", "quote", "footnote", "caption", "field"
]


class Block(NamedTuple):
    kind: BlockKind
    text: str = ""
    """Its text; of a table its caption."""
    level: int = 0
    """Of a heading from 1; of an item, how deep it is nested, from 0; of a page its number."""
    mark: str = ""
    """Of an item its number or sign as printed, of a footnote its mark, of a field its label."""
    rows: Sequence[Sequence[Cell]] = ()
    heads: int | None = None
    """Of a table: see `table_lines`."""
    is_tight: bool = False
    """Stands on the line below the block before, without a blank one between."""


class Inner(NamedTuple):
    """A document that a parser has read, within another one: a file that is attached to a mail."""

    document: ParsedDocument
    below: int
    """Level of the heading that it stands under, 0 for none."""


def on_one_line(blocks: Iterable[Block], between: str = "; ") -> str:
    """Return blocks as one line, such as what stands in a table's cell."""
    parts: list[str] = []
    for block in blocks:
        text = " ".join(block.text.split())
        if block.kind == "table":
            parts += [text, *table_lines(block.rows, heads=block.heads)]
        elif block.kind == "field":
            parts.append(f"{block.mark.rstrip(': ')}: {text}")
        else:
            has_number = block.kind == "item" and block.mark not in ("", "-")
            parts.append(f"{block.mark} {text}" if has_number else text)
    return between.join(part.rstrip(";") for part in parts if part)


_LISTED = frozenset({"item", "row", "field"})
"""Follow each other line by line."""


class Writer:
    """Makes stored text of blocks; offsets of headings and blocks are exact."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._last = ""
        self.headings: list[Heading] = []
        self.blocks: list[BlockSpan] = []
        self._pages: list[tuple[int, int | None]] = []
        """Number and start of each; None while nothing stands on it."""
        self.stripped = 0
        """Invisible characters removed so far."""
        self.encoded = 0
        """Characters of encoded data left out so far."""

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def pages(self) -> tuple[PageSpan, ...]:
        """Return the pages; one without text is an empty span."""
        spans: list[PageSpan] = []
        end = self._length
        for number, start in reversed(self._pages):
            begin = end if start is None else start
            spans.append(PageSpan(number, begin, end))
            end = begin
        return tuple(reversed(spans))

    def add(self, block: Block | Inner) -> None:
        """Append a block; one that is blank is dropped."""
        if isinstance(block, Inner):
            self._add_inner(block.document, block.below)
        elif block.kind == "page":
            self._pages.append((block.level, None))
            self._last = "page"
        elif block.kind == "table":
            self._put("caption", block.text)
            for line in table_lines(block.rows, heads=block.heads):
                self._put("row", line, tight=self._last in ("row", "caption"))
            self._last = "table"
        elif block.kind == "item":
            mark = block.mark or "-"
            if block.text.strip():
                self._put("item", f"{mark} {block.text.strip()}", indent="  " * block.level)
        elif block.kind == "field":
            label = f"{block.mark.rstrip(': ')}: " if block.mark else ""
            self._put("field", label + block.text)
        elif block.kind == "footnote":
            self._put("footnote", f"{block.mark} {block.text}".strip())
        else:
            self._put(block.kind, block.text, tight=block.is_tight, level=block.level)

    def _add_inner(self, document: ParsedDocument, below: int) -> None:
        if self._length and document.text:
            self._append("\n\n")
        at = self._length
        self._append(document.text)
        self.stripped += document.stripped_characters
        self.headings += (
            Heading(at + one.start, at + one.end, below + one.level, one.title)
            for one in document.headings
        )
        self.blocks += (BlockSpan(kind, at + a, at + b) for kind, a, b in document.blocks)
        self._last = ""

    def _put(
        self, kind: str, text: str, *, tight: bool = False, level: int = 0, indent: str = ""
    ) -> None:
        text, encoded = without_encoded(text)
        self.encoded += encoded
        clean, stripped = normalise(resolved(text))
        self.stripped += stripped
        clean = clean.strip("\n") if kind == "code" else clean.strip()
        if not clean.strip():
            return
        if self._length:
            listed = kind == self._last and kind in _LISTED
            self._append("\n" if tight or listed else "\n\n")
        if self._pages and self._pages[-1][1] is None:
            self._pages[-1] = self._pages[-1][0], self._length
        self._append(indent)
        start, end = self._length, self._length + len(clean)
        if kind == "heading":
            self.headings.append(Heading(start, end, max(level, 1), " ".join(clean.split())))
        elif kind != "paragraph":
            self.blocks.append(BlockSpan(kind, start, end))
        self._append(clean)
        self._last = kind

    def _append(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)


def write(
    blocks: Iterable[Block | Inner],
    kind: FileType,
    *,
    title: str | None = None,
    authors: Sequence[str] = (),
    year: int | None = None,
    warnings: Sequence[str] = (),
    hidden: int = 0,
) -> ParsedDocument:
    """Return the document that blocks make, in reading order.

    Title, authors and year are what the file itself says; warnings tell what was seen and not read,
    `hidden` how many characters were left out because no reader sees them.
    """
    writer = Writer()
    for block in blocks:
        writer.add(block)
    return ParsedDocument(
        text=writer.text,
        media_type=FORMATS[kind].media_type,
        pages=writer.pages,
        headings=tuple(writer.headings),
        blocks=tuple(writer.blocks),
        title=title,
        authors=tuple(authors),
        year=year,
        warnings=(*warnings, *encoded_data(writer.encoded)),
        stripped_characters=writer.stripped + hidden,
    )


def table_or_frame(
    rows: Sequence[Sequence[Cell]], inside: Iterable[Iterable[Block]], heads: int | None
) -> Iterable[Block]:
    """Return a table; of one that only frames what it holds, the blocks inside its cells."""
    if all(len(row) <= 1 for row in rows):
        return chain.from_iterable(inside)
    return [Block("table", rows=rows, heads=heads)]


_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l")),
    *((40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST_ROMAN = 3_999


def numeral(number: int, style: str) -> str:
    """Return a number as a list prints it; `style` is that of HTML: `1`, `a`, `A`, `i` or `I`."""
    if style in ("i", "I") and 0 < number <= _MOST_ROMAN:
        text = ""
        for value, letters in _ROMAN:
            text += letters * (number // value)
            number %= value
    elif style in ("a", "A") and number > 0:
        text = ""
        while number > 0:
            number, at = divmod(number - 1, 26)
            text = chr(ord("a") + at) + text
    else:
        return str(number)
    return text.upper() if style.isupper() else text
