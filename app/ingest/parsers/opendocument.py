"""Read OpenDocument texts, sheets, slides and drawings by their XML (OASIS 1.3, part 3)."""

from __future__ import annotations

import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import NamedTuple

from lxml import etree

from app.core.types import FileType, ParsedDocument
from app.ingest.parsers.blocks import (
    Block,
    Cell,
    lowered,
    numeral,
    on_one_line,
    raised,
    table_or_frame,
    write,
)
from app.ingest.parsers.office import (
    DC,
    Box,
    damaged_as,
    in_reading_order,
    opened,
    parsed_xml,
    unread_parts,
    whole,
)
from app.ingest.parsers.sniffing import protected
from app.ingest.parsers.tables import MOST_CELLS
from app.ingest.parsers.workbooks import NO_VALUE, Area, Cells, sheet_blocks

_NAMES = "{urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TEXT, _TABLE = (f"{_NAMES}{name}:1.0}}" for name in ("office", "text", "table"))
_DRAW, _STYLE, _META = (f"{_NAMES}{name}:1.0}}" for name in ("drawing", "style", "meta"))
_SVG = f"{_NAMES}svg-compatible:1.0}}"
_DEEPEST = 60
"""Of lists, tables and boxes within one another."""
_MOST_COLUMNS = 16_384
_MOST_BLANKS = 100
_UNSEEN = (
    "tracked-changes sequence-decls variable-decls user-field-decls ruby-text hidden-text"
    " note-citation"
)
_APART = {f"{_OFFICE}forms", f"{_OFFICE}scripts", *(_TEXT + name for name in _UNSEEN.split())}
"""What no reader sees: deleted text lies in tracked changes."""


class _Style(NamedTuple):
    parent: str
    shift: str
    """`super`, `sub` or nothing."""
    is_struck: bool
    is_hidden: bool
    levels: dict[int, tuple[str, str, str, int]]
    """Of a list, by depth from 1: sign before, kind of number, sign behind, first number."""


class _File(NamedTuple):
    body: etree._Element
    styles: dict[str, _Style]
    title: str
    authors: list[str]


@contextmanager
def _opened(content: bytes, filename: str, kind: str, body: str) -> Iterator[_File]:
    if not content.startswith(b"PK"):
        with damaged_as(filename, kind):
            tree = parsed_xml(content)
            yield _File(_body(tree, body), _styles(tree), *_said_by(tree))
        return
    with opened(content, filename, kind) as archive:
        names = set(archive.namelist())
        manifest = "META-INF/manifest.xml"
        if manifest in names and b"encryption-data" in archive.read(manifest):
            raise protected(filename)
        content_tree = parsed_xml(archive.read("content.xml"))
        styles = _styles(parsed_xml(archive.read("styles.xml"))) if "styles.xml" in names else {}
        styles |= _styles(content_tree)
        yield _File(_body(content_tree, body), styles, *_about(archive, names))


def _body(tree: etree._Element, name: str) -> etree._Element:
    found = tree.find(f"{_OFFICE}body/{_OFFICE}{name}")
    if found is None:
        raise KeyError("no body")
    return found


def _about(archive: zipfile.ZipFile, names: set[str]) -> tuple[str, list[str]]:
    """Return the title and the authors that the file declares."""
    if "meta.xml" not in names:
        return "", []
    return _said_by(parsed_xml(archive.read("meta.xml")))


def _said_by(meta: etree._Element) -> tuple[str, list[str]]:
    author = meta.findtext(f".//{_META}initial-creator") or meta.findtext(f".//{DC}creator") or ""
    return (meta.findtext(f".//{DC}title") or "").strip(), [author.strip()] if author else []


def _styles(tree: etree._Element) -> dict[str, _Style]:
    found: dict[str, _Style] = {}
    for node in tree.iter(f"{_STYLE}style", f"{_TEXT}list-style"):
        text = node.find(f"{_STYLE}text-properties")
        about = {} if text is None else text.attrib
        table = node.find(f"{_STYLE}table-properties")
        levels = {}
        for level in node:
            depth = level.get(f"{_TEXT}level") or ""
            if depth.isdigit() and level.tag == f"{_TEXT}list-level-style-number":
                before, form, behind = (
                    level.get(f"{_STYLE}num-{part}") or ""
                    for part in ("prefix", "format", "suffix")
                )
                first = whole(level.get(f"{_TEXT}start-value"), 1)
                levels[int(depth)] = before, form, behind, first
        found[node.get(f"{_STYLE}name") or ""] = _Style(
            parent=node.get(f"{_STYLE}parent-style-name") or "",
            shift=(about.get(f"{_STYLE}text-position") or "").split(" ")[0],
            is_struck=(about.get(f"{_STYLE}text-line-through-style") or "none") != "none",
            is_hidden=about.get(f"{_TEXT}display") == "none"
            or (table is not None and table.get(f"{_TABLE}display") == "false"),
            levels=levels,
        )
    return found


_PLAIN = _Style("", "", is_struck=False, is_hidden=False, levels={})


def parse_odt(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return a text's headings, paragraphs, lists, tables and notes without what was deleted."""
    with _opened(content, filename, "OpenDocument text", "text") as file:
        reader = _Reader(file.styles)
        blocks = [*reader.blocks(file.body), *reader.notes]
    return write(
        blocks,
        "odt",
        title=reader.title or file.title or None,
        authors=file.authors,
        warnings=[
            *(["struck-through text is left out"] if reader.is_struck else []),
            *unread_parts(reader.unread),
        ],
        hidden=reader.hidden,
    )


class _Reader:
    def __init__(self, styles: dict[str, _Style]) -> None:
        self.title: str | None = None
        self.notes: list[Block] = []
        self.unread: Counter[str] = Counter()
        self.is_struck = False
        self.hidden = 0
        """Characters that are left out because no one sees them."""
        self.styles = styles
        self._aside: list[Block] = []
        """Blocks of boxes and pictures that hang on the paragraph that is read."""
        self._counts: dict[str, Counter[int]] = {}
        """Numbers given so far, by list style and depth."""

    def blocks(self, parent: etree._Element, depth: int = 0) -> Iterator[Block]:
        """Yield the blocks in an element."""
        if depth > _DEEPEST:
            self.unread["text nested too deeply"] += 1
            return
        for node in parent:
            if node.tag in (_APART | _CAPTIONS) or not isinstance(node.tag, str):
                continue
            if node.tag in (f"{_TEXT}h", f"{_TEXT}p"):
                yield from self._paragraph(node)
            elif node.tag == f"{_TEXT}list":
                yield from self._list(node, "", 1)
            elif node.tag == f"{_TABLE}table":
                yield from self._table(node, depth)
            else:  # sections, indexes, groups
                yield from self.blocks(node, depth + 1)

    def shape(self, shape: etree._Element) -> Iterator[Block]:
        """Yield the blocks of a shape on a page."""
        if shape.tag == f"{_DRAW}frame" and shape.find(f"{_TABLE}table") is None:
            self._frame(shape)
            aside, self._aside = self._aside, []
            yield from aside
        elif shape.tag == f"{_DRAW}g":
            for part in in_reading_order([(one, _box(one)) for one in shape]):
                yield from self.shape(part)
        else:
            yield from self.blocks(shape)

    def _paragraph(self, node: etree._Element) -> Iterator[Block]:
        outside, self._aside = self._aside, []
        text = self._text(node)
        aside, self._aside = self._aside, outside
        name = node.get(f"{_TEXT}style-name") or ""
        if node.tag == f"{_TEXT}h":
            yield Block("heading", text, level=whole(node.get(f"{_TEXT}outline-level"), 1))
        else:
            if "Title" in (name, self.styles.get(name, _PLAIN).parent):
                self.title = self.title or " ".join(text.split()) or None
            yield Block("paragraph", text)
        yield from aside

    def _list(self, node: etree._Element, style: str, depth: int) -> Iterator[Block]:
        own = node.get(f"{_TEXT}style-name") or style
        levels = self.styles.get(own, _PLAIN).levels
        before, form, behind, first = levels.get(depth, ("", "", "", 1))
        counts = self._counts.setdefault(own, Counter())
        is_numbered_on = node.get(f"{_TEXT}continue-numbering") == "true"
        if not is_numbered_on and not node.get(f"{_TEXT}continue-list"):
            counts[depth] = 0
        for item in node.iterchildren(f"{_TEXT}list-item", f"{_TEXT}list-header"):
            is_first = item.tag == f"{_TEXT}list-item"
            for child in item if depth <= _DEEPEST else ():
                if child.tag == f"{_TEXT}list":
                    yield from self._list(child, own, depth + 1)
                elif child.tag in (f"{_TEXT}p", f"{_TEXT}h"):
                    for block in self._paragraph(child):
                        if block.kind == "paragraph" and is_first and block.text.strip():
                            counts[depth] += 1
                            number = numeral(first + counts[depth] - 1, form)
                            mark = f"{before}{number}{behind}" if form else "-"
                            yield Block("item", block.text, level=depth - 1, mark=mark)
                            is_first = False
                        else:
                            yield block

    def _table(self, table: etree._Element, depth: int) -> Iterator[Block]:
        rows: list[list[Cell]] = []
        heads = 0
        inside: list[list[Block]] = []
        for row in table.iter(f"{_TABLE}table-row"):
            if next(row.iterancestors(f"{_TABLE}table"), None) is not table:
                continue  # of a table in a cell
            line: list[Cell] = []
            for cell in row.iterchildren(f"{_TABLE}table-cell"):
                inside.append(list(self.blocks(cell, depth + 1)))
                down, across = (_times(cell, f"{name}-spanned") for name in ("rows", "columns"))
                text = on_one_line(inside[-1])
                made = Cell(text, rows=down, columns=across)
                line += [made] * min(_times(cell, "columns-repeated"), 1 if not text else 100)
            above = row.getparent()
            heads += above is not None and above.tag == f"{_TABLE}table-header-rows"
            rows.append(line)
        yield from table_or_frame(rows, inside, heads or None)

    def _text(self, parent: etree._Element) -> str:
        parts = [parent.text or ""]
        for node in parent:
            if isinstance(node.tag, str) and node.tag not in _APART:
                parts.append(self._inline(node))
            parts.append(node.tail or "")
        return "".join(parts)

    def _inline(self, node: etree._Element) -> str:
        tag = node.tag
        if tag == f"{_TEXT}s":
            return " " * min(whole(node.get(f"{_TEXT}c"), 1), _MOST_BLANKS)
        if tag in (f"{_TEXT}tab", f"{_TEXT}line-break"):
            return "\t" if tag == f"{_TEXT}tab" else "\n"
        if tag == f"{_TEXT}note":
            mark = (node.findtext(f"{_TEXT}note-citation") or "").strip()
            body = node.find(f"{_TEXT}note-body")
            if body is not None:
                said = on_one_line(self.blocks(body), " ")
                self.notes.append(Block("footnote", said, mark=mark))
            return ""
        if tag == f"{_OFFICE}annotation":
            author = node.findtext(f"{DC}creator")
            mark = f"Comment by {author}:" if author else "Comment:"
            self.notes.append(Block("footnote", on_one_line(self.blocks(node), " "), mark=mark))
            return ""
        if tag == f"{_DRAW}frame":
            self._frame(node)
            return ""
        style = self.styles.get(node.get(f"{_TEXT}style-name") or "", _PLAIN)
        text = self._text(node)
        if style.is_hidden:
            self.hidden += len("".join(text.split()))
            return ""
        if style.is_struck:
            self.is_struck |= bool(text.strip())
            return ""
        marks = {"super": raised, "sub": lowered}
        return marks[style.shift](text) if style.shift in marks else text

    def _frame(self, frame: etree._Element) -> None:
        """Keep a box's blocks, or what is said of a picture."""
        said = frame.findtext(f"{_SVG}desc") or frame.findtext(f"{_SVG}title") or ""
        box = frame.find(f"{_DRAW}text-box")
        if box is not None:
            self._aside += self.blocks(box)
        elif said.strip():
            self._aside.append(Block("caption", said))
        else:
            has_object = frame.find(f"{_DRAW}object") is not None
            kind = "embedded objects" if has_object else "pictures without a description"
            self.unread[kind] += 1


def _times(node: etree._Element, what: str) -> int:
    """Return how many rows or columns a cell spans, or how often an element is repeated."""
    return whole(node.get(f"{_TABLE}number-{what}"), 1)


# Presentations and drawings.

_PRESENTATION = f"{_NAMES}presentation:1.0}}"
_LENGTH = re.compile(r"(-?\d+(?:\.\d+)?)(cm|mm|in|pt|pc|px)")
_MILLIMETRES = {"cm": 10, "mm": 1, "in": 25.4, "pt": 25.4 / 72, "pc": 25.4 / 6, "px": 25.4 / 96}
_CAPTIONS = frozenset({f"{_SVG}title", f"{_SVG}desc"})


def parse_odp(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return a presentation's visible pages: title, boxes in reading order, notes."""
    return _pages(content, filename, "odp", "presentation")


def parse_odg(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return the texts of a drawing's pages in reading order."""
    return _pages(content, filename, "odg", "drawing")


def _pages(content: bytes, filename: str, kind: FileType, body: str) -> ParsedDocument:
    with _opened(content, filename, f"OpenDocument {body}", body) as file:
        reader = _Reader(file.styles)
        blocks: list[Block] = []
        for number, page in enumerate(file.body.iterchildren(f"{_DRAW}page"), 1):
            blocks.append(Block("page", level=number))
            style = page.get(f"{_DRAW}style-name") or ""
            if file.styles.get(style, _PLAIN).is_hidden:
                reader.unread[f"hidden page {number}"] += 1
            else:
                blocks += _page(page, reader)
        blocks += reader.notes
    return write(
        blocks,
        kind,
        title=file.title or next((one.text for one in blocks if one.kind == "heading"), None),
        authors=file.authors,
        warnings=unread_parts(reader.unread),
        hidden=reader.hidden,
    )


def _page(page: etree._Element, reader: _Reader) -> Iterator[Block]:
    shapes = [one for one in page if one.tag not in (_APART | {f"{_PRESENTATION}notes"})]
    titles = [one for one in shapes if one.get(f"{_PRESENTATION}class") == "title"]
    for title in titles:
        yield Block("heading", on_one_line(reader.shape(title), " "), level=1)
    for shape in in_reading_order([(one, _box(one)) for one in shapes if one not in titles]):
        yield from reader.shape(shape)
    for notes in page.iterchildren(f"{_PRESENTATION}notes"):
        if said := on_one_line(reader.blocks(notes), " "):
            yield Block("paragraph", f"Notes: {said}")


def _box(shape: etree._Element) -> Box | None:
    """Return left, top, right and bottom of a shape in millimetres, if it says them."""
    said = (
        _LENGTH.fullmatch(shape.get(f"{_SVG}{name}") or "")
        for name in ("x", "y", "width", "height")
    )
    lengths = [float(one[1]) * _MILLIMETRES[one[2]] for one in said if one]
    if len(lengths) < 4:
        return None
    left, top, width, height = lengths
    return left, top, left + width, top + height


# Spreadsheets.


def parse_ods(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return a spreadsheet's visible sheets, numbers as they are shown, dates by ISO 8601."""
    unread: Counter[str] = Counter()
    blocks: list[Block] = []
    with _opened(content, filename, "OpenDocument spreadsheet", "spreadsheet") as file:
        reader = _Reader(file.styles)
        tables = file.body.findall(f"{_TABLE}table")
        left = MOST_CELLS
        for table in tables:
            name = table.get(f"{_TABLE}name") or ""
            if file.styles.get(table.get(f"{_TABLE}style-name") or "", _PLAIN).is_hidden:
                unread[f"hidden sheet {name!r}"] += 1
                continue
            cells, merged, left = _sheet(table, name, reader, left, unread)
            blocks += sheet_blocks(name, cells, merged, unread, alone=len(tables) == 1)
        blocks += reader.notes
        unread += reader.unread
    return write(
        blocks,
        "ods",
        title=file.title or PurePosixPath(filename).stem,
        authors=file.authors,
        warnings=unread_parts(unread),
    )


def _sheet(
    table: etree._Element, name: str, reader: _Reader, left: int, unread: Counter[str]
) -> tuple[Cells, list[Area], int]:
    """Return a sheet's cells and merged areas, and how many cells may still be read."""
    cells: Cells = defaultdict(dict)
    merged: list[Area] = []
    hidden = _hidden_columns(table)
    number = 0
    for row in table.iter(f"{_TABLE}table-row"):
        times, held, column = _times(row, "rows-repeated"), {}, 0
        is_hidden = row.get(f"{_TABLE}visibility") in ("collapse", "filter")
        for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            width = min(_times(cell, "columns-repeated"), _MOST_COLUMNS - column)
            style = reader.styles.get(cell.get(f"{_TABLE}style-name") or "", _PLAIN)
            text = _shown(cell, reader)
            if text and style.is_struck:
                unread["struck-through cells"] += 1
            elif text:
                held.update(dict.fromkeys(range(column, column + width), text))
                down, across = (_times(cell, f"{what}-spanned") for what in ("rows", "columns"))
                if down > 1 or across > 1:
                    merged.append((number, column, number + down - 1, column + across - 1))
            column += width
        for place in hidden & held.keys():
            unread[f"cells of hidden columns of sheet {name!r}"] += 1
            del held[place]
        if held and is_hidden:
            unread[f"hidden rows of sheet {name!r}"] += times
        elif held:
            kept = max(min(times, left // len(held)), 0)
            for row_number in range(number, number + kept):
                cells[row_number] = held
            unread[f"rows of sheet {name!r}, too many cells"] += times - kept
            left -= kept * sum(1 + len(text) // 64 for text in held.values())
        number += times
    return cells, merged, left


def _hidden_columns(table: etree._Element) -> set[int]:
    hidden: set[int] = set()
    at = 0
    for column in table.iter(f"{_TABLE}table-column"):
        end = min(at + _times(column, "columns-repeated"), _MOST_COLUMNS)
        if column.get(f"{_TABLE}visibility") in ("collapse", "filter"):
            hidden.update(range(at, end))
        at = end
    return hidden


def _shown(cell: etree._Element, reader: _Reader) -> str:
    """Return a cell's text as its sheet shows it, a date by ISO 8601."""
    if date := cell.get(f"{_OFFICE}date-value"):
        return str(date).removesuffix("T00:00:00").replace("T", " ")
    paragraphs = [*cell.iterchildren(f"{_TEXT}p")]
    text = "\n".join(reader._text(one) for one in paragraphs).strip()
    for note in cell.iterchildren(f"{_OFFICE}annotation"):
        reader._inline(note)
    if not text and cell.get(f"{_TABLE}formula"):
        reader.unread[NO_VALUE] += 1
    return text
