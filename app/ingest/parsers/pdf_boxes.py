"""Locate stored text on a PDF page: read the page again and align both texts."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

import pypdfium2
import pypdfium2.raw as pdfium

from app.core.errors import Unreadable, UnsupportedType
from app.core.types import PageBoxes, PageText, PageWords
from app.ingest.ocr import text_layer
from app.ingest.parsers.pdf_layout import PageLayout, heads_before, open_forms
from app.ingest.parsers.sniffing import pdf_start

# Text of TeX fonts that a PDF does not name, or names wrongly.

_T1 = {"\x1b": "ff", "\x1c": "fi", "\x1d": "fl", "\x1e": "ffi", "\x1f": "ffl"}
"""Cork encoding. Knappen: The European Computer Modern fonts, 1990; LaTeX's encoding guide,
section 2."""
_OT1 = {"\x0b": "ff", "\x0c": "fi", "\x0e": "ffi", "\x0f": "ffl"}
"""Knuth: Computer Modern Typefaces, 1986. Its fl is the carriage return, which PDFium writes at
every line end: left out."""
_T1_MARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x10(?=\w)"), "\u201c"),
    (re.compile(r"(?<=[\w.,;:!?])\x11"), "\u201d"),
    (re.compile(r"\x15(?:(?<=\d\x15)(?=\d)|(?<=\w \x15)(?= \w))"), "\u2013"),
    (re.compile(r"\x16(?:(?<=\w\x16)(?=\w)|(?<=\w \x16)(?= \w))"), "\u2014"),
)
_LETTER = r"[^\W\d_]"

# Adobe: zapfdingbats.txt of the Adobe Glyph List, 2002. First code, first character, how many;
# codes are of the encodings above.
_RUNS = (
    (11, 0x261B, 1), (12, 0x261E, 1), (14, 0x270D, 3), (17, 0x2711, 12), (29, 0x2722, 6),
    (35, 0x2605, 1), (36, 0x2729, 35), (71, 0x25CF, 1), (72, 0x274D, 1), (73, 0x25A0, 1),
    (74, 0x274F, 1), (75, 0x2751, 1), (76, 0x25B2, 1), (77, 0x25BC, 1), (78, 0x25C6, 1),
    (79, 0x2756, 1), (81, 0x25D7, 1), (82, 0x2758, 3), (85, 0x276F, 1), (86, 0x2771, 3),
    (89, 0x2768, 2), (91, 0x276C, 2), (93, 0x276A, 2), (95, 0x2774, 2), (97, 0x275B, 4),
    (101, 0x2761, 4), (105, 0x2710, 1), (106, 0x2765, 3), (109, 0x2660, 1), (110, 0x2665, 2),
    (112, 0x2663, 1), (117, 0x2709, 1), (118, 0x2708, 1), (119, 0x2707, 1), (120, 0x2460, 10),
)  # fmt: skip
_ORNAMENTS = {first + at: code + at for code, first, count in _RUNS for at in range(count)}
# The older encoding's fl in one character, quotation marks.
_ORNAMENTS |= {0x270C: 0xFB02, 0x272C: 0x2019, 0x2775: 0x2018}
_ORNAMENT = re.compile("[" + "".join(map(chr, sorted(_ORNAMENTS))) + "]")
_ORNATE = 0.2
"""Least share of ornaments among the visible characters of a page whose letters they are; of a
text that is more than half."""
_BROKEN_WORD = re.compile(rf"(?<={_LETTER})-\r?\n(?={_LETTER})")


def name_tex_codes(pages: Sequence[str]) -> list[str]:
    """Return page texts with codes of TeX fonts replaced by their characters.

    A ligature is replaced where it touches a letter; marks only in documents that have ligatures of
    the same encoding. Pages of ornaments become letters, words that are broken at their line ends
    marked as PDFium marks them, by U+0002.
    """
    pages = [
        page if (plain := without_ornaments(page)) == page else _BROKEN_WORD.sub("\x02", plain)
        for page in pages
    ]
    for names, marks in ((_T1, _T1_MARKS), (_OT1, ())):
        behind, before, codes = f"(?<={_LETTER}.)", f"(?={_LETTER})", f"[{''.join(names)}]"
        inside = re.compile(codes + behind + before, re.DOTALL)
        if any(map(inside.search, pages)):
            beside = re.compile(f"{codes}(?:{behind}|{before})", re.DOTALL)
            return [_named(page, beside, names, marks) for page in pages]
    return pages


def _named(
    page: str,
    ligature: re.Pattern[str],
    names: Mapping[str, str],
    marks: Sequence[tuple[re.Pattern[str], str]],
) -> str:
    page = ligature.sub(lambda found: names[found[0]], page)
    for pattern, mark in marks:
        page = pattern.sub(mark, page)
    return page


def without_ornaments(page: str) -> str:
    """Return a page's text of equal length with ornament letters replaced by codes."""
    ornaments = len(_ORNAMENT.findall(page))
    is_ornate = ornaments and ornaments >= _ORNATE * len("".join(page.split()))
    return page.translate(_ORNAMENTS) if is_ornate else page


_LOOK_AHEAD = 24
"""Characters to look ahead in either text where they differ (a dropped hyphen, a stripped
invisible character)."""
_ANCHOR, _LONGEST_SKIP = 12, 600
"""Characters that agree again behind a running head that is not stored, and its most."""
DEVICE_UNITS = 100
"""PDFium maps to whole device units; a hundred per point keep the second decimal."""

Rect = tuple[float, float, float, float]


def find_boxes(
    content: bytes, pages: Sequence[PageText], words: Sequence[PageWords] = ()
) -> tuple[PageBoxes, ...]:
    """Return each span's rectangles in points, origin top left, one per line.

    Args:
        content: The PDF or image that the texts were parsed from.
        pages: Stored text of a page and the span within it; numbers from 1.
        words: What OCR recognised on pages of it.

    Raises:
        UnsupportedType: The content is not a PDF.
        Unreadable: The PDF cannot be opened or has no such page.
    """
    known = {page.page: page for page in words if page.lines}
    recognised = [page for page in pages if page.number in known]
    found: dict[int, PageBoxes] = {}
    if recognised:
        with text_layer([known[page.number] for page in recognised]) as layer:
            found = {
                page.number: _page_boxes(layer, at, page) for at, page in enumerate(recognised)
            }
    if found and len(recognised) == len(pages):
        return tuple(found[page.number] for page in pages)
    if (start := pdf_start(content)) < 0:
        raise UnsupportedType("only a PDF has page boxes; ask for the text of the span instead")
    try:
        document = pypdfium2.PdfDocument(content[start:])
    except pypdfium2.PdfiumError as exc:
        raise Unreadable(f"the PDF cannot be opened ({exc}); upload it again") from exc
    try:
        open_forms(document)
        return tuple(
            found.get(page.number) or _page_boxes(document, page.number - 1, page) for page in pages
        )
    except (pypdfium2.PdfiumError, IndexError) as exc:
        raise Unreadable(
            f"the PDF has no readable page among {[p.number for p in pages]!r}; upload it again"
        ) from exc
    finally:
        document.close()


def _page_boxes(document: pypdfium2.PdfDocument, index: int, wanted: PageText) -> PageBoxes:
    """Return the boxes on a page; the number of the wanted one is that in the whole file."""
    page = document[index]
    textpage = page.get_textpage()
    try:
        width, height = page.get_size()
        layout = PageLayout(page, textpage, is_first=wanted.number == 1)
        if layout.begins_with_row and index:
            heads = heads_before(document, index)
            layout = PageLayout(page, textpage, is_first=wanted.number == 1, heads=heads)
        places = layout.indices()
        matched = align(wanted.text, layout.text)
        indices = [places[at] for at in matched[wanted.start : wanted.end] if at >= 0]
        found = [_char_rect(page, textpage, at, width, height) for at in indices if at >= 0]
        rects = _merge_lines([rect for rect in found if rect is not None])
        return PageBoxes(wanted.number, round(width, 2), round(height, 2), tuple(rects))
    finally:
        textpage.close()
        page.close()


def align(text: str, page: str) -> list[int]:
    """Return the place on the page of each character of stored text; -1 if unknown or blank.

    Both texts hold the same visible characters in the same order, except where parsing joined a
    broken word, composed accents or stripped an invisible character; a short look-ahead bridges
    those.
    """
    ours = list(_visible(enumerate(text)))
    theirs = list(_visible(enumerate(without_ornaments(page))))
    matched = [-1] * len(text)
    plain, shown = ("".join(char for _, char in some) for some in (ours, theirs))
    i = j = 0
    while i < len(ours) and j < len(theirs):
        if ours[i][1] == theirs[j][1]:
            if matched[ours[i][0]] < 0:
                matched[ours[i][0]] = theirs[j][0]
            i, j = i + 1, j + 1
            continue
        anchor = plain[i : i + _ANCHOR]
        at = shown.find(anchor, j, j + _LONGEST_SKIP) if len(anchor) == _ANCHOR else -1
        i, j = (i, at) if at >= 0 else _resume(ours, theirs, i, j)
    return matched


def _visible(characters: Iterator[tuple[int, str]] | enumerate[str]) -> Iterator[tuple[int, str]]:
    """Yield base characters and their index: no blanks, controls, or hyphens at line ends."""
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
            next_two = [char for _, char in ours[a : a + 2]]
            if next_two and next_two == [char for _, char in theirs[b : b + 2]]:
                return a, b
    return i + 1, j + 1


def _char_rect(
    page: pypdfium2.PdfPage,
    textpage: pypdfium2.PdfTextPage,
    index: int,
    width: float,
    height: float,
) -> Rect | None:
    """Return a character's loose box on the page as shown, rotated and cropped by PDFium."""
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
    size = (round(width * DEVICE_UNITS), round(height * DEVICE_UNITS))
    pdfium.FPDF_PageToDevice(page, 0, 0, *size, 0, x, y, across, down)
    return across.value / DEVICE_UNITS, down.value / DEVICE_UNITS


def _merge_lines(rects: list[Rect]) -> list[Rect]:
    """Join neighbours on a line; a jump back or in height starts a new rectangle."""
    merged: list[Rect] = []
    for rect in rects:
        if merged and _same_line(merged[-1], rect):
            (x0, y0, x1, y1), (left, top, right, bottom) = merged[-1], rect
            merged[-1] = min(x0, left), min(y0, top), max(x1, right), max(y1, bottom)
        else:
            merged.append(rect)
    return merged


def _same_line(line: Rect, rect: Rect) -> bool:
    overlap = min(line[3], rect[3]) - max(line[1], rect[1])
    height = max(rect[3] - rect[1], 0.1)
    is_beside = line[0] - height <= rect[0] and rect[0] - line[2] < 4 * height
    return is_beside and overlap > 0.5 * min(height, line[3] - line[1])
