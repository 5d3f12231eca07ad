"""Read Word documents by their XML: paragraphs, numbering, tables, notes, boxes, equations.

python-docx refuses four of the seven kinds of files that Word writes and sees neither numbering,
content controls, equations nor text boxes; so the package is read with lxml. Unpacked sizes are
checked first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from lxml import etree

from app.core.types import ParsedDocument
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
from app.ingest.parsers.formulas import grouped
from app.ingest.parsers.html import parse_fragment
from app.ingest.parsers.office import (
    ALTERNATIVES,
    DRAWINGS,
    OFFICE,
    Package,
    opened,
    unread_parts,
    whole,
)
from app.ingest.parsers.sniffing import decode

_DEEPEST = 60
"""Of boxes, tables and equations within one another."""

_W = f"{{{OFFICE}wordprocessingml/2006/main}}"
_M = f"{{{OFFICE}officeDocument/2006/math}}"
_WP = f"{{{OFFICE}drawingml/2006/wordprocessingDrawing}}"

_FLOWS_THROUGH = frozenset(
    _W + name for name in "sdt sdtContent ins moveTo smartTag customXml".split()
)
_LEFT_OUT = frozenset(
    _W + name for name in "del moveFrom pPr rPr instrText delText rt sdtPr sdtEndPr".split()
)
_OFF = frozenset({"0", "false", "off"})
_FORMATS: Mapping[str, str] = MappingProxyType(
    {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
)
_WINGDINGS: Mapping[int, str] = MappingProxyType(
    {0xA8: "\u2610", 0x6F: "\u2610", 0xFD: "\u2612", 0xFE: "\u2611", 0x78: "\u2612",
     0xFC: "\u2713", 0xFB: "\u2717", 0xE0: "\u2192", 0xDF: "\u2190", 0xB7: "\u2022"}
)  # fmt: skip
_SYMBOL: Mapping[int, str] = MappingProxyType(
    {
        **dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)),
        **dict(zip(range(0x41, 0x5B), "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", strict=True)),
        0xA3: "≤", 0xB3: "≥", 0xB9: "≠", 0xBB: "≈", 0xB0: "°", 0xB1: "±", 0xB4: "\u00d7", 0xB8: "÷",
        0xB7: "•", 0xD7: "⋅", 0xA5: "∞", 0xAE: "→", 0xAC: "←", 0xDE: "⇒", 0xD6: "√", 0xE5: "∑",
        0xF2: "∫", 0xB6: "∂", 0xD1: "∇", 0xCE: "∈", 0xA2: "\u2032", 0xB2: "″", 0xBA: "≡", 0xB5: "∝",
        0x2D: "\u2212",
    }
)  # fmt: skip
"""Adobe's Symbol encoding, as Word's `w:sym` uses it."""


def parse_docx(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return a Word document's text without deleted, struck-through and hidden text.

    Hidden characters count as stripped. Archives within the archive (embedded workbooks) are never
    opened; a warning names them.
    """
    with opened(content, filename, "Word document") as archive:
        package = Package(archive)
        reader = _Reader(package)
        blocks = list(reader.blocks())
        title, authors = package.about()
    return write(
        blocks,
        "docx",
        title=reader.title or title or None,
        authors=authors,
        warnings=reader.warnings(),
        hidden=reader.hidden,
    )


class _Style(NamedTuple):
    level: int | None
    """Of a heading from 1, 0 for the title, None for running text."""
    number: str
    depth: int
    is_list: bool


class _Level(NamedTuple):
    start: int
    format: str
    text: str


class _Numbering:
    """Counts numbered paragraphs as Word does (ISO/IEC 29500-1, 17.9)."""

    def __init__(self, tree: etree._Element | None) -> None:
        self._levels: dict[str, dict[int, _Level]] = {}
        """By number and depth."""
        self._lists: dict[str, str] = {}
        """The list that a number counts in; several numbers may share one."""
        self._counts: dict[str, list[int | None]] = {}
        if tree is None:
            return
        lists = {
            one.get(f"{_W}abstractNumId"): {
                int(level.get(f"{_W}ilvl") or 0): _level(level)
                for level in one.iterchildren(f"{_W}lvl")
            }
            for one in tree.iterchildren(f"{_W}abstractNum")
        }
        for one in tree.iterchildren(f"{_W}num"):
            number, base = one.get(f"{_W}numId") or "", _value(one, "abstractNumId")
            levels = dict(lists.get(base, {}))
            overrides = list(one.iterchildren(f"{_W}lvlOverride"))
            for override in overrides:
                depth = int(override.get(f"{_W}ilvl") or 0)
                start = _value(override, "startOverride")
                own = override.find(f"{_W}lvl")
                if own is not None:
                    levels[depth] = _level(own)
                if start and depth in levels:
                    levels[depth] = levels[depth]._replace(start=int(start))
            self._levels[number] = levels
            self._lists[number] = number if overrides else f"list {base}"

    def next(self, number: str, depth: int) -> str | None:
        """Return the mark of the next paragraph; `-` for a sign, None when it has none."""
        levels = self._levels.get(number, {})
        if depth not in levels:
            return None
        counts = self._counts.setdefault(self._lists[number], [None] * 10)
        before = counts[depth]
        counts[depth] = levels[depth].start if before is None else before + 1
        counts[depth + 1 :] = [None] * (len(counts) - depth - 1)
        if levels[depth].format == "bullet":
            return "-"
        mark = levels[depth].text
        for at in range(depth + 1):
            level = levels.get(at, _Level(1, "decimal", ""))
            count = counts[at] if counts[at] is not None else level.start
            mark = mark.replace(f"%{at + 1}", numeral(count or 0, _FORMATS.get(level.format, "1")))
        return mark.strip() or None


def _level(node: etree._Element) -> _Level:
    form = _value(node, "numFmt") or "decimal"
    return _Level(whole(_value(node, "start"), 1), form, _value(node, "lvlText"))


def _value(node: etree._Element | None, path: str) -> str:
    """Return the `w:val` of a child element, empty if there is none."""
    found = None if node is None else node.find("/".join(_W + name for name in path.split("/")))
    return "" if found is None else found.get(f"{_W}val") or ""


def _is_on(properties: etree._Element | None, name: str) -> bool:
    found = None if properties is None else properties.find(_W + name)
    return found is not None and (found.get(f"{_W}val") or "1") not in _OFF


def _styles(tree: etree._Element | None) -> dict[str, _Style]:
    """Return paragraph styles by id, each with what it inherits; names are English everywhere."""
    nodes = {
        node.get(f"{_W}styleId") or "": node
        for node in (() if tree is None else tree.iterchildren(f"{_W}style"))
    }
    return {name: _style(nodes, name) for name in nodes}


def _style(nodes: Mapping[str, etree._Element], name: str) -> _Style:
    level: int | None = None
    number, depth, is_list = "", 0, False
    seen: set[str] = set()
    while name in nodes and name not in seen:
        seen.add(name)
        node = nodes[name]
        title = _value(node, "name").lower()
        outline = _value(node, "pPr/outlineLvl")
        if level is None and title.startswith("heading ") and title[8:].isdigit():
            level = int(title[8:])
        elif level is None and title == "title":
            level = 0
        elif level is None and outline.isdigit() and int(outline) < 9:
            level = int(outline) + 1
        if not number:
            number = _value(node, "pPr/numPr/numId")
            depth = whole(_value(node, "pPr/numPr/ilvl"), (level or 1) - 1 if number else depth)
        is_list |= title.startswith("list ") and title != "list paragraph"
        name = _value(node, "basedOn")
    return _Style(level, number, depth, is_list)


class _Reader:
    """Yields the blocks of a document; the author decides how deep tables and boxes nest."""

    def __init__(self, package: Package) -> None:
        self.title: str | None = None
        self.hidden = 0
        self._package = package
        self._relations = package.relations(package.main)
        self._styles = _styles(self._first("styles"))
        self._numbering = _Numbering(self._first("numbering"))
        self._cap = ""
        """The letter that a drop cap sets apart from its word."""
        self._struck = False
        self._unread: Counter[str] = Counter()
        self._aside: list[Block] = []
        """Blocks of boxes, diagrams and pictures that hang on the paragraph that is read."""
        self._depth = 0

    def _first(self, kind: str) -> etree._Element | None:
        names = self._package.of_kind(kind)
        return self._package.part(names[0]) if names else None

    def warnings(self) -> list[str]:
        unread = unread_parts(self._unread)
        return ["struck-through text is left out", *unread] if self._struck else unread

    def blocks(self) -> Iterator[Block]:
        main = self._package.part(self._package.main)
        body = None if main is None else main.find(f"{_W}body")
        if body is None:
            raise KeyError("no body")
        yield from self._read(body)
        for kind in ("footnotes", "endnotes", "comments"):
            notes = self._first(kind)
            for note in () if notes is None else notes:
                yield from self._note(note)
        said: set[str] = set()
        for kind in ("header", "footer"):
            for name in self._package.of_kind(kind):
                part = self._package.part(name)
                for block in () if part is None else self._read(part):
                    if block.text not in said and any(map(str.isalpha, block.text)):
                        said.add(block.text)
                        yield block
        self._unread["embedded files"] += len(self._package.of_kind("package"))
        self._unread["embedded objects"] += len(self._package.of_kind("oleObject"))

    def _note(self, note: etree._Element) -> Iterator[Block]:
        if note.get(f"{_W}type") in ("separator", "continuationSeparator", "continuationNotice"):
            return
        author = note.get(f"{_W}author")
        is_comment = note.tag == f"{_W}comment"
        mark = (f"Comment by {author}:" if author else "Comment:") if is_comment else ""
        if text := on_one_line(self._read(note), " "):
            yield Block("footnote", text, mark=mark)

    def _read(self, parent: etree._Element) -> Iterator[Block]:
        if self._depth > _DEEPEST:
            return
        self._depth += 1
        for element in _flat(parent):
            if element.tag == f"{_W}tbl":
                yield from self._table(element)
            elif element.tag == f"{_W}altChunk":
                yield from self._foreign(element)
            else:
                yield from self._paragraph(element)
        self._depth -= 1

    def _paragraph(self, paragraph: etree._Element) -> Iterator[Block]:
        outside, self._aside = self._aside, []
        text = self._text(paragraph)
        aside, self._aside = self._aside, outside
        properties = paragraph.find(f"{_W}pPr")
        if _drop_cap(properties):
            self._cap += text.strip()
        elif text.strip() or self._cap:
            text, self._cap = self._cap + text, ""
            yield self._block(text, properties)
        yield from aside

    def _block(self, text: str, properties: etree._Element | None) -> Block:
        style = self._styles.get(_value(properties, "pStyle"), _Style(None, "", 0, False))
        outline = _value(properties, "outlineLvl")
        level = int(outline) + 1 if outline.isdigit() and int(outline) < 9 else style.level
        if level == 0:
            self.title = self.title or " ".join(text.split())
        own = _value(properties, "numPr/numId")
        depth = _value(properties, "numPr/ilvl")
        at = min(int(depth), 8) if depth.isdigit() else (0 if own else style.depth)
        number = own or style.number
        if number == "0":  # takes the paragraph out of its style's list
            number = ""
        mark = self._numbering.next(number, at) if number else None
        if level is not None:
            text = f"{mark} {text.strip()}" if mark and mark != "-" else text
            return Block("heading", text, level=level) if level else Block("paragraph", text)
        if mark is None and (style.is_list or number):
            mark = "-"
        return Block("item", text, level=at, mark=mark) if mark else Block("paragraph", text)

    def _table(self, table: etree._Element) -> Iterator[Block]:
        rows: list[list[Cell]] = []
        open_cells: dict[int, tuple[int, int]] = {}
        """Where a cell that goes on below stands, by its column."""
        heads = 0
        inside: list[list[Block]] = []
        for row in _flat(table, f"{_W}tr"):
            properties = row.find(f"{_W}trPr")
            heads += heads == len(rows) and _is_on(properties, "tblHeader")
            column = min(whole(_value(properties, "gridBefore"), 0), 100)
            line = [Cell("")] * column
            for cell in _flat(row, f"{_W}tc"):
                width = min(whole(_value(cell, "tcPr/gridSpan"), 1), 1_000)
                merge = cell.find(f"{_W}tcPr/{_W}vMerge")
                goes_on = merge is not None and merge.get(f"{_W}val") != "restart"
                if goes_on and column in open_cells:
                    at, index = open_cells[column]
                    rows[at][index] = rows[at][index]._replace(rows=len(rows) - at + 1)
                else:
                    inside.append(list(self._read(cell)))
                    line.append(Cell(on_one_line(inside[-1]), rows=1, columns=width))
                    open_cells.pop(column, None)
                    if merge is not None:
                        open_cells[column] = len(rows), len(line) - 1
                column += width
            rows.append(line)
        yield from table_or_frame(rows, inside, heads or None)

    def _foreign(self, node: etree._Element) -> Iterator[Block]:
        """Yield the text of a part in another format that stands in the document's place."""
        name = self._package.referred(self._relations, node, "id")
        data = self._package.bytes(name)
        if data is not None and name.lower().endswith((".htm", ".html", ".xhtml")):
            yield from parse_fragment(decode(data)[0], name).blocks
        elif data is not None and name.lower().endswith(".txt"):
            yield Block("paragraph", decode(data)[0])
        else:
            self._unread["inserted files"] += 1

    def _text(self, element: etree._Element) -> str:
        parts: list[str] = []
        stack: list[etree._Element] = list(reversed(element))
        while stack:
            node = stack.pop()
            tag = node.tag
            if tag in _LEFT_OUT or not isinstance(tag, str):
                continue
            if tag == f"{_W}r":
                properties = node.find(f"{_W}rPr")
                if self._is_unseen(node, properties):
                    continue
                if properties is not None and (place := _value(properties, "vertAlign")):
                    inner = self._text(node)
                    mark = {"superscript": raised, "subscript": lowered}.get(place)
                    parts.append(mark(inner) if mark else inner)
                    continue
            elif tag == f"{_W}sdt" and _is_on(node.find(f"{_W}sdtPr"), "showingPlcHdr"):
                continue
            elif tag == f"{ALTERNATIVES}AlternateContent":
                chosen = node.find(f"{ALTERNATIVES}Choice")
                stack.append(node[0] if chosen is None and len(node) else chosen)
                continue
            elif tag == f"{_W}txbxContent":
                self._aside += self._read(node)
                continue
            elif (own := self._special(node, tag)) is not None:
                parts.append(own)
                continue
            stack.extend(reversed(node))
        return _AROUND.sub(" ", "".join(parts))

    def _is_unseen(self, run: etree._Element, properties: etree._Element | None) -> bool:
        if _is_on(properties, "vanish"):
            self.hidden += sum(len("".join((t.text or "").split())) for t in run.iter(f"{_W}t"))
            return True
        if _is_on(properties, "strike") or _is_on(properties, "dstrike"):
            self._struck |= run.find(f"{_W}t") is not None
            return True
        return False

    def _special(self, node: etree._Element, tag: str) -> str | None:
        """Return the text of an element that is read as a whole; None: its children are read."""
        if tag in (f"{_W}t", f"{_M}t"):
            return node.text or ""
        if tag in _SIGNS:
            return _SIGNS[tag]
        if tag == f"{_M}oMath":
            return f"{_APART}{equation(node).strip()}{_APART}"
        if tag == f"{_W}sym":
            return _symbol(node)
        if tag == f"{_W}fldChar":
            return _form_field(node)
        if tag == f"{_WP}docPr":
            if said := (node.get("descr") or "").strip():
                self._aside.append(Block("caption", said))
            return ""
        for drawing, attribute, read in DRAWINGS:
            if tag == drawing:
                name = self._package.referred(self._relations, node, attribute)
                self._aside += read(self._package.part(name))
                return ""
        return None


_APART = "\ufdd3"
_AROUND = re.compile(f" *{_APART} *")
"""An equation stands apart from the words around it by one blank."""
_SIGNS: Mapping[str, str] = MappingProxyType(
    {
        f"{_W}tab": "\t",
        f"{_W}br": "\n",
        f"{_W}cr": "\n",
        f"{_W}noBreakHyphen": "-",
        f"{_W}softHyphen": "",
    }
)


def _flat(parent: etree._Element, *tags: str) -> Iterator[etree._Element]:
    """Yield paragraphs and tables (or rows, or cells) in order, out of content controls too."""
    wanted = tags or (f"{_W}p", f"{_W}tbl", f"{_W}altChunk")
    stack = list(reversed(parent))
    while stack:
        element = stack.pop()
        if element.tag in wanted:
            yield element
        elif element.tag in _FLOWS_THROUGH:
            stack.extend(reversed(element))


def _drop_cap(properties: etree._Element | None) -> bool:
    frame = None if properties is None else properties.find(f"{_W}framePr")
    return frame is not None and (frame.get(f"{_W}dropCap") or "none") != "none"


def _symbol(node: etree._Element) -> str:
    code = node.get(f"{_W}char") or ""
    font = (node.get(f"{_W}font") or "").lower()
    try:
        place = int(code, 16)
    except ValueError:
        return ""
    table = _WINGDINGS if font.startswith(("wingdings", "webdings")) else _SYMBOL
    if place >= 0xF000:
        return table.get(place - 0xF000, "")
    return table.get(place, chr(place)) if place < 0x100 and table is _WINGDINGS else chr(place)


def _form_field(node: etree._Element) -> str | None:
    """Return what a check box or a list of an older form shows."""
    box = node.find(f"{_W}ffData/{_W}checkBox")
    if box is not None:
        is_set = _is_on(box, "checked" if box.find(f"{_W}checked") is not None else "default")
        return "\u2612 " if is_set else "\u2610 "
    entries = node.find(f"{_W}ffData/{_W}ddList")
    if entries is None:
        return ""
    names = [one.get(f"{_W}val") or "" for one in entries.iterchildren(f"{_W}listEntry")]
    at = whole(_value(entries, "result"), 0)
    return names[at] if at < len(names) else ""


# Equations of Office (ISO/IEC 29500-1, part 22), as a line of text.


def equation(node: etree._Element, depth: int = 0) -> str:
    """Return an equation in readable form: `N = f/D`, `x^2`, a root as its sign."""
    if depth > _DEEPEST:
        return "".join(one.text or "" for one in node.iter(f"{_M}t"))
    name = str(node.tag).removeprefix(_M)
    if name == "t":
        return node.text or ""
    children = [
        (str(child.tag).removeprefix(_M), equation(child, depth + 1))
        for child in node
        if isinstance(child.tag, str) and not child.tag.endswith("Pr")
    ]
    parts = {key: text.strip() for key, text in children}
    base = parts.get("e", "")
    if form := _FORMS.get(name):
        operands = {key: grouped(text) for key, text in parts.items()}
        keys = dict.fromkeys(("e", "num", "den", "sup", "sub", "deg"), "")
        return form.format(**(keys | operands), base=base)
    if name == "rad":
        degree = parts.get("deg", "")
        return f"{grouped(base)}^(1/{degree})" if degree else f"√({base})"
    if name == "nary":
        sign = node.find(f"{_M}naryPr/{_M}chr")
        bounds = (("_", parts.get("sub", "")), ("^", parts.get("sup", "")))
        said = "".join(mark + grouped(text) for mark, text in bounds if text)
        return f"{'∫' if sign is None else sign.get(f'{_M}val')}{said} {base}"
    if name == "d":
        marks = node.find(f"{_M}dPr")
        inner = _sign(marks, "sepChr", "|").join(text for key, text in children if key == "e")
        return f"{_sign(marks, 'begChr', '(')}{inner}{_sign(marks, 'endChr', ')')}"
    between = {"m": "; ", "eqArr": "; ", "mr": " "}.get(name, "")
    return between.join(text for _, text in children)


_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "f": "{num}/{den}",
        "sSup": "{e}^{sup}",
        "sSub": "{base}_{sub}",
        "sSubSup": "{base}_{sub}^{sup}",
    }
)


def _sign(properties: etree._Element | None, key: str, usual: str) -> str:
    found = None if properties is None else properties.find(_M + key)
    return usual if found is None else found.get(f"{_M}val") or ""
