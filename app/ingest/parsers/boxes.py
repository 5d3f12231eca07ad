"""Locate stored text on a PDF page: read the page again and align both texts."""

from __future__ import annotations

import ctypes
import unicodedata
from collections.abc import Iterator, Sequence

import pypdfium2
import pypdfium2.raw as pdfium

from app.core.errors import Unreadable, UnsupportedType
from app.core.types import PageBoxes, PageText
from app.ingest.parsers.tex_fonts import without_ornaments

_LOOK_AHEAD = 24
"""Characters to look ahead in either text where they differ (a dropped hyphen, a stripped
invisible character)."""
_DEVICE_UNITS = 100
"""PDFium maps to whole device units; a hundred per point keep the second decimal."""

Rect = tuple[float, float, float, float]


def find_boxes(content: bytes, pages: Sequence[PageText]) -> tuple[PageBoxes, ...]:
    """Return each span's rectangles in points, origin top left, one per line.

    Args:
        content: The PDF that the texts were parsed from.
        pages: Stored text of a page and the span within it; numbers from 1.

    Raises:
        UnsupportedType: The content is not a PDF.
        Unreadable: The PDF cannot be opened or has no such page.
    """
    if b"%PDF-" not in content[:1024]:
        raise UnsupportedType("only a PDF has page boxes; ask for the text of the span instead")
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as exc:
        raise Unreadable(f"the PDF cannot be opened ({exc}); upload it again") from exc
    try:
        return tuple(_page_boxes(document, page) for page in pages)
    except (pypdfium2.PdfiumError, IndexError) as exc:
        raise Unreadable(
            f"the PDF has no readable page among {[p.number for p in pages]!r}; upload it again"
        ) from exc
    finally:
        document.close()


def _page_boxes(document: pypdfium2.PdfDocument, wanted: PageText) -> PageBoxes:
    page = document[wanted.number - 1]
    textpage = page.get_textpage()
    try:
        width, height = page.get_size()
        codes = [
            pdfium.FPDFText_GetUnicode(textpage, index) for index in range(textpage.count_chars())
        ]
        matched = align(wanted.text, codes)
        indices = [
            matched[at]
            for at in range(wanted.start, min(wanted.end, len(matched)))
            if matched[at] >= 0
        ]
        rects = _merge_lines(
            [
                rect
                for index in indices
                if (rect := _char_rect(page, textpage, index, width, height)) is not None
            ]
        )
        return PageBoxes(wanted.number, round(width, 2), round(height, 2), tuple(rects))
    finally:
        textpage.close()
        page.close()


def align(text: str, codes: Sequence[int]) -> list[int]:
    """Return PDFium's index for each character of stored text; -1 if unknown or blank.

    Both sequences hold the same visible characters in the same order, except where parsing joined a
    broken word, composed accents or stripped an invisible character; a short look-ahead bridges
    those.

    Args:
        text: Stored text of the page.
        codes: PDFium's code points of the page, in its order.
    """
    ours = list(_visible(enumerate(text)))
    page = "".join(chr(code) if code <= 0x10FFFF else "\ufffd" for code in codes)
    theirs = list(_visible(enumerate(without_ornaments(page))))
    matched = [-1] * len(text)
    i = j = 0
    while i < len(ours) and j < len(theirs):
        if ours[i][1] == theirs[j][1]:
            if matched[ours[i][0]] < 0:
                matched[ours[i][0]] = theirs[j][0]
            i, j = i + 1, j + 1
            continue
        i, j = _resume(ours, theirs, i, j)
    return matched


def _visible(characters: Iterator[tuple[int, str]] | enumerate[str]) -> Iterator[tuple[int, str]]:
    """Yield base characters and their index, visible ones only.

    Without blanks, hyphens at line ends, controls and unknown ones.
    """
    for index, char in characters:
        if char in "-\ufffd" or char.isspace():
            continue
        if char.isascii():
            if char.isprintable():
                yield index, char
            continue
        for part in unicodedata.normalize("NFD", char):
            if unicodedata.category(part)[0] not in "CM":
                yield index, part


def _resume(
    ours: list[tuple[int, str]], theirs: list[tuple[int, str]], i: int, j: int
) -> tuple[int, int]:
    """Return the nearest pair of positions where two characters in a row agree again."""
    for distance in range(1, 2 * _LOOK_AHEAD):
        for skip in range(max(0, distance - _LOOK_AHEAD), min(distance, _LOOK_AHEAD) + 1):
            a, b = i + distance - skip, j + skip
            if (
                [c for _, c in ours[a : a + 2]] == [c for _, c in theirs[b : b + 2]]
                and a < len(ours)
                and b < len(theirs)
            ):
                return a, b
    return i + 1, j + 1


def _char_rect(
    page: pypdfium2.PdfPage,
    textpage: pypdfium2.PdfTextPage,
    index: int,
    width: float,
    height: float,
) -> Rect | None:
    """Return a character's loose box on the page as shown.

    PDFium applies rotation and crop box.
    """
    box = pdfium.FS_RECTF()
    if not pdfium.FPDFText_GetLooseCharBox(textpage, index, box):
        return None
    (x0, y0), (x1, y1) = (
        _to_device(page, x, y, width, height)
        for x, y in ((box.left, box.top), (box.right, box.bottom))
    )
    rect = (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))
    return rect if rect[2] > rect[0] and rect[3] > rect[1] else None


def _to_device(
    page: pypdfium2.PdfPage, x: float, y: float, width: float, height: float
) -> tuple[float, float]:
    across, down = ctypes.c_int(), ctypes.c_int()
    size = (round(width * _DEVICE_UNITS), round(height * _DEVICE_UNITS))
    pdfium.FPDF_PageToDevice(page, 0, 0, *size, 0, x, y, across, down)
    return across.value / _DEVICE_UNITS, down.value / _DEVICE_UNITS


def _merge_lines(rects: list[Rect]) -> list[Rect]:
    """Join neighbours on a line; a jump back or in height starts a new rectangle."""
    merged: list[Rect] = []
    for rect in rects:
        if merged and _same_line(merged[-1], rect):
            last = merged[-1]
            merged[-1] = (
                min(last[0], rect[0]),
                min(last[1], rect[1]),
                max(last[2], rect[2]),
                max(last[3], rect[3]),
            )
        else:
            merged.append(rect)
    return merged


def _same_line(line: Rect, rect: Rect) -> bool:
    overlap = min(line[3], rect[3]) - max(line[1], rect[1])
    height = max(rect[3] - rect[1], 0.1)
    return (
        overlap > 0.5 * min(height, line[3] - line[1])
        and rect[0] >= line[0] - height
        and rect[0] - line[2] < 4 * height
    )
