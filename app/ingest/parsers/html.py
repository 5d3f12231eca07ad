"""HTML by selectolax: the text a reader sees, with its headings and tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.core.errors import Unreadable
from app.core.normalisation import normalise
from app.core.types import Heading, ParsedDocument
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.sniffing import decode

# Puts a document together block by block, keeping offsets of headings exact.


class TextBuilder:
    """Collects blocks of text; normalises each on entry, so offsets stay valid."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self.headings: list[Heading] = []
        self.stripped = 0
        """Invisible characters removed so far."""

    @property
    def length(self) -> int:
        return self._length

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str, *, gap: str = "\n\n", level: int | None = None) -> None:
        """Append a block after `gap`; blank blocks are dropped, margins trimmed.

        Args:
            text: Any text.
            gap: What separates it from the block before.
            level: Makes the block a heading of this level, from 1.
        """
        clean, stripped = normalise(text)
        self.stripped += stripped
        clean = clean.strip()
        if not clean:
            return
        if self._length:
            self._append(gap)
        if level is not None:
            self.headings.append(
                Heading(self._length, self._length + len(clean), level, " ".join(clean.split()))
            )
        self._append(clean)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


# Tables as lines that stay readable when a chunk holds only some of them.

_MAX_LABEL_CHARACTERS = 60


def table_lines(rows: Sequence[Sequence[str]], *, header: bool | None = None) -> list[str]:
    """Return one line a row; cells carry their column's label below a header row.

    `Year: 1911 | Place: Leiden`.

    Args:
        rows: Cell texts, row by row; blank rows are dropped.
        header: Whether the first row names the columns; None decides by its look.
    """
    filled = [
        [" ".join(cell.split()) for cell in row]
        for row in rows
        if any(cell.strip() for cell in row)
    ]
    if not filled:
        return []
    labels = filled[0]
    if header is None:
        header = _looks_like_labels(labels)
    if not header or len(filled) < 2 or len(labels) < 2:
        return [" | ".join(cell for cell in row if cell) for row in filled]
    return [
        " | ".join(label for label in labels if label),
        *(_labelled(row, labels) for row in filled[1:]),
    ]


def _looks_like_labels(cells: Sequence[str]) -> bool:
    named = [cell for cell in cells if cell]
    return (
        len(named) >= len(cells) - 1  # the corner cell is often blank
        and len(set(named)) == len(named)
        and all(
            len(cell) <= _MAX_LABEL_CHARACTERS and any(map(str.isalpha, cell)) for cell in named
        )
    )


def _labelled(row: Sequence[str], labels: Sequence[str]) -> str:
    parts = []
    for column, cell in enumerate(row):
        if cell:
            label = labels[column] if column < len(labels) else ""
            parts.append(f"{label}: {cell}" if label and label != cell else cell)
    return " | ".join(parts)


_DROPPED = frozenset(
    "script style nav noscript template svg math iframe object embed head select option button"
    " input textarea canvas audio"
    " video".split()
)
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset"
    " figcaption figure footer form"
    " header hr html legend li main ol p pre section summary table tbody td tfoot"
    " th thead tr ul".split()
)
_TIGHT = frozenset("li dt dd tr td th".split())
"""What follows one of these stands on the next line, without a blank one between."""
_LEVELS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_NOT_DATA = frozenset("table h1 h2 h3 h4 h5 h6 ul ol pre".split())
"""A table that holds one of these lays out a page; its cells are read as blocks."""
_INVISIBLE_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:px|pt|em|rem|%)?\s*(?:;|!|\Z)"
    r"|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|\Z)",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)", re.IGNORECASE)
_OPEN_TAG = re.compile(r"<[a-z]", re.IGNORECASE)
_OPTION = re.compile(r"</?(?:option|optgroup)\b[^<>]*+>", re.IGNORECASE)
_BLANK = r"[ \t\n\r\f]"
_ATTRIBUTE = (
    rf"(?:{_BLANK}|/)*+[^ \t\n\r\f/>][^ \t\n\r\f/>=]*+"
    rf"(?:{_BLANK}*+=(?:{_BLANK}*+(?:\"[^\"]*+\"|'[^']*+'|[^ \t\n\r\f>]*+)))?+"
)
"""https://html.spec.whatwg.org/multipage/parsing.html, from the before attribute name state on."""
_MOST_ATTRIBUTES = 300
"""Of one tag; a parser compares each with all before it."""
_ATTRIBUTES = re.compile(
    rf"(<[a-z][^ \t\n\r\f/>]*+(?:{_ATTRIBUTE}){{0,{_MOST_ATTRIBUTES}}}+)((?:{_ATTRIBUTE})*+)",
    re.IGNORECASE,
)
_ENDLESS = frozenset(
    "area base br col embed hr img input link meta param source track wbr html head body p li dt"
    " dd tr td th thead tbody tfoot"
    " colgroup option optgroup rt rp".split()
)
"""Elements that never have an end tag or need none."""
_MOST_ELEMENTS = 1_000_000
_DEEPEST = 2_000
"""Browsers stop at 512; unclosed formatting of old pages counts here as well."""
_MANY_OPTIONS = 500
_SPACE = re.compile(r"[ \t\n\r\f]+")
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE
)
_META_WINDOW_BYTES = 4096
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")
_AUTHOR_NAMES = frozenset({"author", "citation_author", "dc.creator", "dcterms.creator"})
_DATE_NAMES = (
    "citation_publication_date",
    "citation_date",
    "dc.date",
    "article:published_time",
    "date",
)


def parse_html(content: bytes, filename: str = "the page", *_: object) -> ParsedDocument:
    """Return the visible text of a page.

    Scripts, styles, navigation, forms and hidden elements are left out; the characters of hidden
    elements are counted as stripped.

    Raises:
        UnsupportedType: The bytes are not text.
        Unreadable: It has more elements, or more within one another, than a page has.
    """
    declared = _META_CHARSET.search(content[:_META_WINDOW_BYTES])
    source, warnings = decode(content, declared[1].decode("ascii") if declared else None)
    source = _within_bounds(source, filename)
    tree = LexborHTMLParser(source)
    reader = _HtmlReader(_layouts(tree.root) if "<table" in source.lower() else frozenset())
    if tree.root is not None:
        reader.read(tree.root)
    title = tree.css_first("title")
    authors, year = _meta(tree)
    return ParsedDocument(
        text=reader.builder.text,
        media_type=FORMATS["html"].media_type,
        headings=tuple(reader.builder.headings),
        title=_SPACE.sub(" ", title.text()).strip() or None if title else None,
        authors=authors,
        year=year,
        warnings=warnings,
        stripped_characters=reader.builder.stripped + reader.hidden,
    )


def _meta(tree: LexborHTMLParser) -> tuple[tuple[str, ...], int | None]:
    authors: list[str] = []
    dates: dict[str, str] = {}
    for node in tree.css("meta"):
        attributes = node.attributes
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        value = (attributes.get("content") or "").strip()
        if name in _AUTHOR_NAMES and value:
            authors.append(value)
        elif name in _DATE_NAMES:
            dates.setdefault(name, value)
    found = next((_YEAR.search(dates[name]) for name in _DATE_NAMES if name in dates), None)
    return tuple(authors), int(found[1]) if found else None


def _within_bounds(source: str, filename: str) -> str:
    """Return markup that selectolax parses in linear time.

    `option` tags are removed, their text is dropped in any case; of a tag's attributes the first
    hundreds stay. A parser looks through all open elements at many tags, and through all options of
    a list at each.

    Raises:
        Unreadable: Over one of the bounds.
    """
    if (
        source.count("<") > _MOST_ELEMENTS
        and sum(1 for _ in _OPEN_TAG.finditer(source)) > _MOST_ELEMENTS
    ):
        raise Unreadable(
            f"{filename!r} has more than {_MOST_ELEMENTS:,} elements; save the part that you need"
            " as a page of its own"
        )
    source = _ATTRIBUTES.sub(r"\1", source)
    if _nests(source) > _DEEPEST:
        raise Unreadable(
            f"{filename!r} has more than {_DEEPEST:,} elements within one another; save its text"
            " and add that"
        )
    return _OPTION.sub(" ", source) if len(_OPTION.findall(source)) > _MANY_OPTIONS else source


def _nests(source: str) -> int:
    """Return the deepest nesting of elements, unclosed ones included."""
    depth = deepest = 0
    for tag in _TAG.finditer(source):
        if tag[2].lower() in _ENDLESS:
            continue
        depth = max(0, depth - 1) if tag[1] else depth + 1
        deepest = max(deepest, depth)
    return deepest


def _layouts(root: LexborNode | None) -> frozenset[int]:
    """Return the memory ids of tables that hold what only layouts hold, in one walk."""
    found: set[int] = set()
    tables: list[int] = []
    stack: list[tuple[LexborNode, bool]] = [] if root is None else [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            tables.pop()
            continue
        if tables and node.tag in _NOT_DATA:
            found.add(tables[-1])
        if node.tag == "table":
            tables.append(node.mem_id)
            stack.append((node, True))
        child = node.last_child
        while child is not None:
            stack.append((child, False))
            child = child.prev
    return frozenset(found)


class _HtmlReader:
    """Walks the tree without recursion, because the author decides how deep a page nests."""

    def __init__(self, layouts: frozenset[int]) -> None:
        self._layouts = layouts
        self.builder = TextBuilder()
        self.hidden = 0
        self._line: list[str] = []
        self._gap = "\n\n"
        self._pre = 0

    def read(self, root: LexborNode) -> None:
        stack: list[tuple[LexborNode, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                self._leave(node.tag or "")
                continue
            if node.is_text_node:
                self._add_text(node.text_content or "")
                continue
            tag = node.tag or ""
            if not node.is_element_node or tag in _DROPPED or self._is_hidden(node):
                continue
            if tag == "table" and node.mem_id not in self._layouts:
                self._add_table(node)
                continue
            self._enter(tag)
            stack.append((node, True))
            child = node.last_child
            while child is not None:
                stack.append((child, False))
                child = child.prev
        self._flush()

    def _enter(self, tag: str) -> None:
        if tag == "br":
            self._line.append("\n")
        elif tag in _LEVELS or tag in _BLOCKS:
            self._flush()
            if tag == "li":
                self._line.append("- ")
            self._pre += tag == "pre"

    def _leave(self, tag: str) -> None:
        if tag in _LEVELS or tag in _BLOCKS:
            self._flush(_LEVELS.get(tag))
            self._gap = "\n" if tag in _TIGHT else "\n\n"
            self._pre -= tag == "pre"

    def _flush(self, level: int | None = None) -> None:
        text = "".join(self._line)
        self._line.clear()
        if text.strip() in ("", "-"):
            return
        if not self._pre:
            text = "\n".join(line.strip() for line in text.split("\n"))
        self.builder.add(text, gap="\n\n" if level else self._gap, level=level)

    def _add_text(self, text: str) -> None:
        if not self._pre:
            text = _SPACE.sub(" ", text)
            if text.startswith(" ") and (not self._line or self._line[-1].endswith((" ", "\n"))):
                text = text[1:]
        if text:
            self._line.append(text)

    def _add_table(self, table: LexborNode) -> None:
        self._flush()
        rows: list[list[str]] = []
        header = False
        for row in table.css("tr"):
            cells = row.css("td, th")
            header |= not rows and bool(cells) and all(cell.tag == "th" for cell in cells)
            rows.append([self._cell_text(cell) for cell in cells])
        caption = table.css_first("caption")
        lines = ([self._cell_text(caption)] if caption else []) + table_lines(
            rows, header=header or None
        )
        for index, line in enumerate(lines):
            self.builder.add(line, gap="\n" if index else "\n\n")

    def _cell_text(self, cell: LexborNode) -> str:
        parts: list[str] = []
        stack = [cell]
        while stack:
            node = stack.pop()
            if node.is_text_node:
                parts.append(node.text_content or "")
            elif node.tag == "br":
                parts.append(" ")
            elif node.is_element_node and node.tag not in _DROPPED and not self._is_hidden(node):
                child = node.last_child
                while child is not None:
                    stack.append(child)
                    child = child.prev
        return _SPACE.sub(" ", "".join(parts)).strip()

    def _is_hidden(self, node: LexborNode) -> bool:
        attributes = node.attributes
        if not attributes:
            return False
        hidden = "hidden" in attributes or bool(
            _INVISIBLE_STYLE.search(attributes.get("style") or "")
        )
        if hidden:
            self.hidden += len(_SPACE.sub("", node.text()))
        return (
            hidden
            or attributes.get("aria-hidden") == "true"
            or attributes.get("role") == "navigation"
        )
