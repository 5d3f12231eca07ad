"""Open the ZIP containers of office files: bounds first, then the parts that refer to each other.

DOCX, XLSX and PPTX are packages of XML parts (ISO/IEC 29500-2); OpenDocument has the same container
with other parts.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from types import MappingProxyType
from typing import TypeVar

from lxml import etree

from app.core.errors import TooLarge, Unreadable
from app.ingest.parsers.blocks import Block, Cell

MAX_ENTRIES = 2_000
MAX_UNPACKED_BYTES = 200 * 1024 * 1024
MAX_RATIO = 100
"""Unpacked to packed; ordinary documents stay under 30 (docs/facts/libraries.md)."""
_RATIO_FLOOR_BYTES = 8 * 1024 * 1024
"""Small parts of repeated markup may pass the ratio; they cannot hurt."""

OFFICE = "http://schemas.openxmlformats.org/"
A = f"{{{OFFICE}drawingml/2006/main}}"
C = f"{{{OFFICE}drawingml/2006/chart}}"
R = f"{{{OFFICE}officeDocument/2006/relationships}}"
ALTERNATIVES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
DC = "{http://purl.org/dc/elements/1.1/}"
_STRICT: Mapping[bytes, bytes] = MappingProxyType(
    {
        f"http://purl.oclc.org/ooxml/{strict}".encode(): (OFFICE + usual).encode()
        for strict, usual in (
            ("wordprocessingml/main", "wordprocessingml/2006/main"),
            ("spreadsheetml/main", "spreadsheetml/2006/main"),
            ("presentationml/main", "presentationml/2006/main"),
            ("officeDocument/relationships", "officeDocument/2006/relationships"),
            ("officeDocument/math", "officeDocument/2006/math"),
            ("drawingml/main", "drawingml/2006/main"),
            ("drawingml/chart", "drawingml/2006/chart"),
            ("drawingml/diagram", "drawingml/2006/diagram"),
            ("drawingml/wordprocessingDrawing", "drawingml/2006/wordprocessingDrawing"),
        )
    }
)
"""Namespaces of the strict variety to those of the usual one (ISO/IEC 29500-1 and -4)."""


@contextmanager
def opened(content: bytes, filename: str, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open a container whose unpacked size is bounded; errors of its parts are translated.

    Raises:
        TooLarge: Unpacked it passes the limits of a zip bomb check.
        Unreadable: It is damaged.
    """
    with damaged_as(filename, kind), zipfile.ZipFile(io.BytesIO(content)) as archive:
        _check_sizes(archive.infolist(), filename)
        yield archive


@contextmanager
def damaged_as(filename: str, kind: str) -> Iterator[None]:
    """Translate what readers raise of a damaged file.

    Raises:
        Unreadable: It is damaged.
    """
    try:
        yield
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError),
        *(etree.XMLSyntaxError, KeyError, ValueError, RuntimeError),
    ) as exc:
        if isinstance(exc, RecursionError):
            raise
        raise Unreadable(
            f"{filename!r} is a damaged {kind} ({type(exc).__name__}); open it in its own program"
            " and save it again"
        ) from exc


def _check_sizes(entries: list[zipfile.ZipInfo], filename: str) -> None:
    # Python stops reading an entry at its declared size, so that sizes that lie low cannot unpack
    # to more.
    unpacked = sum(entry.file_size for entry in entries)
    packed = max(1, sum(entry.compress_size for entry in entries))
    is_bomb = unpacked > _RATIO_FLOOR_BYTES and unpacked > packed * MAX_RATIO
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED_BYTES or is_bomb:
        raise TooLarge(
            f"{filename!r} unpacks to {unpacked:,} bytes in {len(entries)} parts,"
            f" {unpacked // packed} times its size; at most"
            f" {MAX_UNPACKED_BYTES:,} bytes, {MAX_ENTRIES} parts and {MAX_RATIO} times are read:"
            " save it as PDF and send that"
        )


def parsed_xml(data: bytes, *, entities: bool = False) -> etree._Element:
    """Return the root of a part, without comments or anything from elsewhere.

    Entities that the part itself defines are resolved on request, within the parser's bounds.
    """
    parser = etree.XMLParser(
        resolve_entities="internal" if entities else False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    return etree.fromstring(data, parser)


def whole(said: str | None, usual: int) -> int:
    """Return the number that an attribute says, `usual` where it says none."""
    return int(said) if said and said.isdigit() else usual


Relations = Mapping[str, tuple[str, str]]
"""Kind and target of what a part refers to within the file, by id."""


class Package:
    """The parts of a file by name, and how they refer to each other."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        main = [target for kind, target in self.relations("").values() if kind == "officeDocument"]
        if not main or main[0] not in self._names:
            raise KeyError("no main document")
        self.main = main[0]

    def part(self, name: str) -> etree._Element | None:
        """Return a part's root; None if there is no such part."""
        data = self.bytes(name)
        return None if data is None else parsed_xml(data)

    def bytes(self, name: str) -> bytes | None:
        """Return a part with the usual namespaces; None if there is no such part."""
        if name not in self._names:
            return None
        data = self._archive.read(name)
        if b"purl.oclc.org" in data:
            for strict, usual in _STRICT.items():
                data = data.replace(strict, usual)
        return data

    def referred(self, relations: Relations, node: etree._Element, name: str) -> str:
        """Return the part that an attribute of a part's element refers to; empty if none."""
        return relations.get(node.get(R + name) or "", ("", ""))[1]

    def relations(self, name: str) -> Relations:
        folder, base = posixpath.split(name)
        data = self.bytes(posixpath.join(folder, "_rels", f"{base}.rels"))
        found: dict[str, tuple[str, str]] = {}
        for one in () if data is None else parsed_xml(data):
            target = one.get("Target") or ""
            if one.get("TargetMode") != "External" and target:
                path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
                found[one.get("Id") or ""] = (one.get("Type") or "").rsplit("/", 1)[-1], path
        return found

    def of_kind(self, kind: str, name: str = "") -> list[str]:
        """Return the parts of a kind that a part, else the main one, refers to, in their order."""
        referred = self.relations(name or self.main).values()
        return list(dict.fromkeys(path for found, path in referred if found == kind))

    def about(self) -> tuple[str, list[str]]:
        """Return the title and the authors that the file declares."""
        core = self.part("docProps/core.xml")
        title, author = (
            "" if core is None else (core.findtext(f"{DC}{name}") or "").strip()
            for name in ("title", "creator")
        )
        return title, [name.strip() for name in author.split(";") if name.strip()]


# The order in which shapes on a page are read.

Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a shape, in any unit."""
Shape = TypeVar("Shape")
_MOST_CUTS = 100
"""Of one page; the rest is read from the top."""


def in_reading_order(shapes: Sequence[tuple[Shape, Box | None]]) -> list[Shape]:
    """Return shapes column by column, each from the top; as they come where one has no place."""
    placed = [(shape, box) for shape, box in shapes if box is not None]
    if len(placed) < len(shapes):
        return [shape for shape, _ in shapes]
    return [shape for shape, _ in _ordered(placed, _MOST_CUTS)]


def _ordered(shapes: list[tuple[Shape, Box]], cuts: int) -> list[tuple[Shape, Box]]:
    """Cut at the first gap between columns, else below what stands at the top."""
    if len(shapes) > 1 and cuts > 0:
        for start, end in ((0, 2), (1, 3)):
            by_start = sorted(shapes, key=lambda one: one[1][start])
            reach = by_start[0][1][end]
            for at, (_, box) in enumerate(by_start[1:], 1):
                if box[start] >= reach:
                    first, rest = by_start[:at], by_start[at:]
                    return [*_ordered(first, cuts - 1), *_ordered(rest, cuts - 1)]
                reach = max(reach, box[end])
    return sorted(shapes, key=lambda one: (one[1][1], one[1][0]))


def chart(tree: etree._Element | None) -> Iterator[Block]:
    """Yield a chart's title and its stored values as a table."""
    if tree is None:
        return
    title = tree.find(f".//{C}title")
    text = "" if title is None else "".join(one.text or "" for one in title.iter(f"{A}t"))
    columns = [[""]]
    for series in tree.iter(f"{C}ser"):
        name, places, values = (
            [one.text or "" for one in series.iterfind(f"{C}{part}//{C}v")]
            for part in ("tx", "cat", "val")
        )
        if len(places) + 1 > len(columns[0]):
            columns[0] = ["", *places]
        columns.append([" ".join(name), *values])
    rows = [[*map(Cell, row)] for row in zip_longest(*columns, fillvalue="")]
    yield Block("table", text, rows=rows if len(rows) > 1 else (), heads=1)


def diagram(tree: etree._Element | None) -> Iterator[Block]:
    """Yield the texts of a diagram (SmartArt)."""
    for paragraph in () if tree is None else tree.iter(f"{A}p"):
        yield Block("item", "".join(one.text or "" for one in paragraph.iter(f"{A}t")))


DRAWINGS = (
    (f"{C}chart", "id", chart),
    (f"{{{OFFICE}drawingml/2006/diagram}}relIds", "dm", diagram),
)
"""Elements that stand for a drawing, the attribute that refers to its part, what reads that."""


def unread_parts(unread: Mapping[str, int]) -> list[str]:
    """Return warnings about what was seen and not read."""
    return [
        f"not read: {what}" + (f" ({count:,})" if count > 1 else "")
        for what, count in unread.items()
        if count
    ]
