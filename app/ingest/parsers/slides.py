"""Read presentations (PPTX): a slide is a page with title, text, tables, charts and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from lxml import etree

from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Cell, lowered, numeral, on_one_line, raised, write
from app.ingest.parsers.office import (
    ALTERNATIVES,
    DRAWINGS,
    OFFICE,
    A,
    Box,
    Package,
    Relations,
    in_reading_order,
    opened,
    unread_parts,
    whole,
)

_P = f"{{{OFFICE}presentationml/2006/main}}"
_FRAME = frozenset({"sldNum", "dt", "ftr", "hdr"})
_TITLES = frozenset({"title", "ctrTitle"})
_LISTS = frozenset({"body", "obj", ""})
"""Placeholders whose paragraphs have bullets unless they say otherwise."""
_DEEPEST = 30
_NUMBERS: Mapping[str, str] = MappingProxyType(
    {"alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I"}
)
_KIND = 7
"""Letters of a name such as `alphaLcPeriod` that say the kind of number, not the signs."""


def parse_pptx(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return a presentation's visible slides, in order, as pages.

    The title of a slide comes first, its boxes column by column from the top; where one takes its
    place from the layout, in the order of the file, which is that of a screen reader.
    """
    with opened(content, filename, "presentation") as archive:
        package = Package(archive)
        reader = _Reader(package)
        blocks = list(reader.blocks())
        title, authors = package.about()
    return write(
        blocks,
        "pptx",
        title=title or next((one.text for one in blocks if one.kind == "heading"), None),
        authors=authors,
        warnings=unread_parts(reader.unread),
    )


class _Reader:
    def __init__(self, package: Package) -> None:
        self.unread: Counter[str] = Counter()
        self._package = package

    def blocks(self) -> Iterator[Block]:
        main = self._package.part(self._package.main)
        if main is None:
            raise KeyError("no presentation")
        relations = self._package.relations(self._package.main)
        for number, entry in enumerate(main.iterfind(f"{_P}sldIdLst/{_P}sldId"), 1):
            yield Block("page", level=number)
            part = self._package.referred(relations, entry, "id")
            slide = self._package.part(part)
            if slide is None:
                self.unread[f"missing slide {number}"] += 1
            elif slide.get("show") in ("0", "false"):
                self.unread[f"hidden slide {number}"] += 1
            else:
                yield from self._slide(slide, part)

    def _slide(self, slide: etree._Element, part: str) -> Iterator[Block]:
        relations = self._package.relations(part)
        tree = slide.find(f"{_P}cSld/{_P}spTree")
        blocks = [] if tree is None else list(self._shapes(tree, relations))
        yield from sorted(blocks, key=lambda one: one.kind != "heading")
        for name in self._package.of_kind("notesSlide", part):
            notes = self._package.part(name)
            for shape in () if notes is None else notes.iter(f"{_P}sp"):
                if _placeholder(shape) == "body" and (said := on_one_line(_text(shape), " ")):
                    yield Block("paragraph", f"Notes: {said}")
        for name in self._package.of_kind("comments", part):
            comments = self._package.part(name)
            for comment in () if comments is None else comments.iter(f"{_P}text"):
                yield Block("footnote", comment.text or "", mark="Comment:")

    def _shapes(
        self, parent: etree._Element, relations: Relations, depth: int = 0
    ) -> Iterator[Block]:
        placed = [(shape, _box(shape)) for shape in parent if not _is_placeless(shape)]
        for shape in in_reading_order(placed) if depth < _DEEPEST else ():
            about = shape.find(f"*/{_P}cNvPr")
            if about is not None and about.get("hidden") in ("1", "true"):
                self.unread["hidden shapes"] += 1
            elif shape.tag == f"{ALTERNATIVES}AlternateContent":
                chosen = shape.find(f"{ALTERNATIVES}Choice")
                if chosen is not None:
                    yield from self._shapes(chosen, relations, depth + 1)
            elif shape.tag == f"{_P}grpSp":
                yield from self._shapes(shape, relations, depth + 1)
            elif shape.tag == f"{_P}sp":
                yield from _text(shape)
            elif shape.tag == f"{_P}graphicFrame":
                yield from self._frame(shape, relations)
            elif shape.tag == f"{_P}pic" and about is not None:
                if said := (about.get("descr") or "").strip():
                    yield Block("caption", said)
                else:
                    self.unread["pictures without a description"] += 1

    def _frame(self, frame: etree._Element, relations: Relations) -> Iterator[Block]:
        for table in frame.iter(f"{A}tbl"):
            yield _table(table)
        for drawing, attribute, read in DRAWINGS:
            for one in frame.iter(drawing):
                name = self._package.referred(relations, one, attribute)
                yield from read(self._package.part(name))
        self.unread["embedded objects"] += next(frame.iter(f"{_P}oleObj"), None) is not None


def _is_placeless(shape: etree._Element) -> bool:
    """Return whether an element is no shape."""
    return shape.tag in (f"{_P}nvGrpSpPr", f"{_P}grpSpPr", f"{_P}extLst")


def _box(shape: etree._Element) -> Box | None:
    """Return where a shape lies on its slide, if it says so itself."""
    if _placeholder(shape) in (*_TITLES, *_FRAME):
        return 0, 0, 0, 0  # read first, or not at all
    if shape.tag == f"{ALTERNATIVES}AlternateContent":
        inner = shape.find(f"{ALTERNATIVES}Choice/*")
        return None if inner is None else _box(inner)
    places = shape.find(f"*/{A}xfrm"), shape.find(f"{_P}xfrm")
    place = next((one for one in places if one is not None), None)
    start, size = (None if place is None else place.find(A + name) for name in ("off", "ext"))
    if start is None or size is None:
        return None
    left, top = (float(start.get(name) or 0) for name in ("x", "y"))
    return left, top, left + float(size.get("cx") or 0), top + float(size.get("cy") or 0)


def _placeholder(shape: etree._Element) -> str | None:
    """Return the kind of placeholder that a shape fills; None: it is a box of its own."""
    found = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return None if found is None else found.get("type") or ""


def _text(shape: etree._Element) -> Iterator[Block]:
    kind = _placeholder(shape)
    body = shape.find(f"{_P}txBody")
    if body is None or kind in _FRAME:
        return
    if kind in _TITLES:
        title = " ".join(" ".join(map(_line, body.iterchildren(f"{A}p"))).split())
        yield Block("heading", title, level=1)
        return
    filled = [one for one in body.iterchildren(f"{A}p") if _line(one).strip()]
    counts: Counter[int] = Counter()
    for paragraph in filled:
        about = paragraph.find(f"{A}pPr")
        depth = 0 if about is None else min(whole(about.get("lvl"), 0), 8)
        auto = None if about is None else about.find(f"{A}buAutoNum")
        has = set() if about is None else {one.tag for one in about}
        is_plain, is_marked = f"{A}buNone" in has, bool({f"{A}buChar", f"{A}buBlip"} & has)
        for deeper in [one for one in counts if one > depth or (one == depth and auto is None)]:
            del counts[deeper]
        if auto is not None:
            counts[depth] += 1
            style = _NUMBERS.get((auto.get("type") or "")[:_KIND], "1")
            number = counts[depth] - 1 + whole(auto.get("startAt"), 1)
            yield Block("item", _line(paragraph), level=depth, mark=f"{numeral(number, style)}.")
        elif is_marked or (not is_plain and kind in _LISTS and (len(filled) > 1 or depth)):
            yield Block("item", _line(paragraph), level=depth)
        else:
            yield Block("paragraph", _line(paragraph))


def _line(paragraph: etree._Element) -> str:
    parts: list[str] = []
    for run in paragraph:
        if run.tag == f"{A}br":
            parts.append("\n")
            continue
        text = run.findtext(f"{A}t") or ""
        about = run.find(f"{A}rPr")
        shift = "" if about is None else about.get("baseline") or ""
        mark = {"": str, "0": str}.get(shift, lowered if shift.startswith("-") else raised)
        parts.append(mark(text))
    return "".join(parts)


def _table(table: etree._Element) -> Block:
    rows: list[list[Cell]] = []
    for row in table.iterchildren(f"{A}tr"):
        line: list[Cell] = []
        for cell in row.iterchildren(f"{A}tc"):
            if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
                continue
            text = "; ".join(filter(str.strip, map(_line, cell.iter(f"{A}p"))))
            down, across = (whole(cell.get(name), 1) for name in ("rowSpan", "gridSpan"))
            line.append(Cell(text, rows=down, columns=across))
        rows.append(line)
    about = table.find(f"{A}tblPr")
    has_heads = about is not None and about.get("firstRow") in ("1", "true") and len(rows) > 1
    return Block("table", rows=rows, heads=1 if has_heads else None)
