"""Parse DOCX with python-docx: paragraphs, headings, tables, footnotes.

Unpacked sizes are checked first.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import docx
from docx.document import Document as DocxDocument
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml
from lxml import etree

from app.core.errors import TooLarge, Unreadable
from app.core.types import ParsedDocument
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.html import TextBuilder, table_lines

MAX_ENTRIES = 2_000
MAX_UNPACKED_BYTES = 200 * 1024 * 1024
MAX_RATIO = 100
"""Unpacked to packed; ordinary documents stay under 30 (docs/facts/libraries.md)."""
_RATIO_FLOOR_BYTES = 8 * 1024 * 1024
"""Small parts of repeated markup may pass the ratio; they cannot hurt."""

_TEXT, _TAB, _BREAKS, _HYPHEN = (
    (qn("w:t"), qn("m:t")),
    qn("w:tab"),
    (qn("w:br"), qn("w:cr")),
    qn("w:noBreakHyphen"),
)
_PARAGRAPH, _TABLE, _ROW, _CELL, _RUN = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc"), qn("w:r")
_CONTAINERS = (qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:smartTag"), qn("w:customXml"))
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""What older programs show instead of the same text box or drawing."""
_LEFT_OUT = (qn("w:del"), qn("w:moveFrom"), qn("w:pPr"), qn("w:rPr"), qn("w:instrText"), _FALLBACK)


def parse_docx(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return a Word document's text without deleted and hidden text.

    Hidden characters count as stripped. Archives within the archive (embedded workbooks) are never
    opened.

    Raises:
        TooLarge: Unpacked it passes the limits of a zip bomb check.
        Unreadable: It is damaged.
    """
    _check_archive(content, filename)
    try:
        document: DocxDocument = docx.Document(io.BytesIO(content))
        reader = _DocxReader(document)
        reader.read()
        properties = document.core_properties
        title, author = properties.title, properties.author
    except (
        zipfile.BadZipFile,
        PackageNotFoundError,
        etree.XMLSyntaxError,
        KeyError,
        ValueError,
        AttributeError,
        EOFError,
    ) as exc:
        raise Unreadable(
            f"{filename!r} is a damaged DOCX ({type(exc).__name__}); open it in a word processor"
            " and save it again"
        ) from exc
    return ParsedDocument(
        text=reader.builder.text,
        media_type=FORMATS["docx"].media_type,
        headings=tuple(reader.builder.headings),
        title=reader.title or title or None,
        authors=tuple(name.strip() for name in (author or "").split(";") if name.strip()),
        stripped_characters=reader.builder.stripped + reader.hidden,
    )


def _check_archive(content: bytes, filename: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as exc:
        raise Unreadable(
            f"{filename!r} is a damaged DOCX; open it in a word processor and save it again"
        ) from exc
    # Python stops reading an entry at its declared size, so that sizes that lie low cannot unpack
    # to more.
    unpacked = sum(entry.file_size for entry in entries)
    packed = max(1, sum(entry.compress_size for entry in entries))
    if (
        len(entries) > MAX_ENTRIES
        or unpacked > MAX_UNPACKED_BYTES
        or (unpacked > _RATIO_FLOOR_BYTES and unpacked > packed * MAX_RATIO)
    ):
        raise TooLarge(
            f"{filename!r} unpacks to {unpacked:,} bytes in {len(entries)} parts,"
            f" {unpacked // packed} times its size; at most"
            f" {MAX_UNPACKED_BYTES:,} bytes, {MAX_ENTRIES} parts and {MAX_RATIO} times are read:"
            " save it as PDF and send that"
        )


class _DocxReader:
    def __init__(self, document: DocxDocument) -> None:
        self.builder = TextBuilder()
        self.title: str | None = None
        self.hidden = 0
        self._document = document
        self._levels = _style_levels(document)
        self._list_styles = {
            style.style_id
            for style in document.styles
            if (style.name or "").lower().startswith("list ")
        }

    def read(self) -> None:
        self._read_blocks(self._document.element.body)
        for relation in self._document.part.rels.values():
            if (
                relation.reltype in (RELATIONSHIP_TYPE.FOOTNOTES, RELATIONSHIP_TYPE.ENDNOTES)
                and not relation.is_external
            ):
                for note in parse_xml(relation.target_part.blob):
                    self._read_blocks(note)

    def _read_blocks(self, parent: etree._Element) -> None:
        for element in _flat(parent):
            if element.tag == _TABLE:
                self._read_table(element)
            else:
                self._read_paragraph(element)

    def _read_paragraph(self, paragraph: etree._Element) -> None:
        text = self._text(paragraph)
        level = self._level(paragraph)
        if level == 0:
            self.title = self.title or " ".join(text.split())
        numbered = (
            paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}") is not None
            or _style_of(paragraph) in self._list_styles
        )
        is_item = numbered and level is None
        self.builder.add(
            f"- {text}" if is_item and text.strip() else text,
            gap="\n" if is_item else "\n\n",
            level=level or None,
        )

    def _level(self, paragraph: etree._Element) -> int | None:
        """Heading level from 1, 0 for the title, None for running text."""
        outline = paragraph.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        if outline is not None and (outline.get(qn("w:val")) or "9") < "9":
            return int(outline.get(qn("w:val"))) + 1
        return self._levels.get(_style_of(paragraph))

    def _read_table(self, table: etree._Element) -> None:
        rows: list[list[str]] = []
        marked = False
        for row in table.iterchildren(_ROW):
            marked |= not rows and row.find(f"{qn('w:trPr')}/{qn('w:tblHeader')}") is not None
            rows.append(
                [
                    " ".join(self._text(p) for p in cell.iter(_PARAGRAPH))
                    for cell in row.iterchildren(_CELL)
                ]
            )
        for index, line in enumerate(table_lines(rows, header=marked or None)):
            self.builder.add(line, gap="\n" if index else "\n\n")

    def _text(self, element: etree._Element) -> str:
        parts: list[str] = []
        stack: list[etree._Element | None] = [element]
        while stack:
            node = stack.pop()
            if node is None:
                parts.append("\n")
            elif node.tag in _TEXT:
                parts.append(node.text or "")
            elif node.tag == _TAB:
                parts.append("\t")
            elif node.tag in _BREAKS:
                parts.append("\n")
            elif node.tag == _HYPHEN:
                parts.append("-")
            elif node.tag in _LEFT_OUT:
                continue
            elif node.tag == _RUN and node.find(f"{qn('w:rPr')}/{qn('w:vanish')}") is not None:
                self.hidden += sum(len("".join((t.text or "").split())) for t in node.iter(*_TEXT))
            elif (
                node.tag == _PARAGRAPH and node is not element
            ):  # of a text box, which hangs on a word of this one
                stack += [None, *reversed(node), None]
            else:
                stack.extend(reversed(node))
        return "".join(parts)


def _style_of(paragraph: etree._Element) -> str:
    style = paragraph.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
    return "" if style is None else style.get(qn("w:val"), "")


def _flat(parent: etree._Element) -> Iterator[etree._Element]:
    """Yield paragraphs and tables in order, out of content controls too."""
    stack = list(reversed(parent))
    while stack:
        element = stack.pop()
        if element.tag in (_PARAGRAPH, _TABLE):
            yield element
        elif element.tag in _CONTAINERS:
            stack.extend(reversed(element))


def _style_levels(document: DocxDocument) -> dict[str, int]:
    """Return heading levels by style id; a file names styles in English everywhere."""
    levels: dict[str, int] = {}
    for style in document.styles:
        name = (style.name or "").lower()
        if name == "title":
            levels[style.style_id] = 0
        elif name.startswith("heading ") and name[8:].isdigit():
            levels[style.style_id] = int(name[8:])
    return levels
