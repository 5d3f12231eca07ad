"""Lay out a PDF's page: columns, lines in reading order, fields of forms, notes."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise, repeat

import pypdfium2
import pypdfium2.raw as pdfium

from app.ingest.metadata import is_name
from app.ingest.parsers.blocks import resolved
from app.ingest.parsers.pdf_grids import grids_of
from app.ingest.parsers.pdf_lines import (
    CLOSE,
    HYPHEN,
    KINDS,
    NOWHERE,
    Box,
    Heads,
    Line,
    Piece,
    line_of,
)
from app.ingest.parsers.pdf_ruled import FARTHEST_HEAD
from app.ingest.parsers.pdf_tables import PageTables

_MOST_PAGES = 50
"""Of a table, through which its heads are looked for."""
_WITH_VALUES = (
    pdfium.FPDF_FORMFIELD_TEXTFIELD,
    pdfium.FPDF_FORMFIELD_COMBOBOX,
    pdfium.FPDF_FORMFIELD_LISTBOX,
)
_NO_NOTES = (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_WIDGET)
_NOT_SHOWN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13
"""ISO 32000-1, table 228."""
_FARTHEST_LABEL = 200
"""Points from a label to its field."""
_FOOT = 0.5
"""Height of a page below which a line behind a small mark is a note, not an affiliation."""
_FRONT_LINES = 15
"""Of a first page, among which its authors are."""
_WIDE = re.compile("[\u4e00-\u9fff\uac00-\ud7a3]")
_LEAST_WIDE, _SAMPLE = 20, 60
_LONGEST_CELL, _WIDEST_GAP = 40, 30
"""Characters, and heights of a line, of cells that PDFium holds for lines of their own."""
_GUTTER = 1.2
"""Between two columns of text."""
_LEAST_LINES = 4
"""Of two columns that were drawn line by line."""
_LEAST_SIDE = 0.25
"""Of the width of both columns, that each has."""
_LEAST_WORDS = 3
"""On each side of a line, on average."""


def open_forms(document: pypdfium2.PdfDocument) -> None:
    """Make the fields of forms readable, before any page is opened."""
    if document.get_formtype() != pdfium.FORMTYPE_NONE:
        document.init_forms()


class PageLayout(PageTables):
    """A page's lines in reading order."""

    def __init__(
        self,
        page: pypdfium2.PdfPage,
        textpage: pypdfium2.PdfTextPage,
        *,
        is_first: bool = False,
        heads: Heads | None = None,
    ) -> None:
        super().__init__(page, textpage, heads)
        lines = self._by_columns(list(_whole_lines(self._lines())))
        self._notes = self._marks_of_notes(lines)
        for line in lines:
            self._arrange(line)
            self._close_up(line)
        if is_first:
            for line in lines[:_FRONT_LINES]:
                self._part_names(line)
        lines = self._with_words(self._with_grids(lines, grids_of(page)))
        lines = self._with_gaps(self._with_wrapped(self._with_fields(lines)))
        lines = self._with_heads(lines)
        lines = self._with_labels(lines)
        ended = {line.start: heads for line, heads in self._ends_with}
        last = (
            ended[line.start]
            for line in reversed(lines[-FARTHEST_HEAD - 1 :])
            if line.parts and line.start in ended
        )
        self.heads = next(last, None)
        """Of the table that ends the page."""
        tops = lines[: FARTHEST_HEAD + 1]
        self.begins_with_row = any(line.kind == "row" for line in tops)
        self.lines = self._notes_last(lines)
        self._add_annotations(page)

    @property
    def text(self) -> str:
        """The lines with marks around powers and before rows, broken words joined by U+0002."""
        parts: list[str] = []
        for line in self.lines:
            parts += [KINDS.get(line.kind, ""), self._text(line.pieces)]
            parts.append(HYPHEN if line.is_broken else "\n")
        return "".join(parts).removesuffix("\n")

    def indices(self) -> list[int]:
        """Return PDFium's index of each character of `text`, -1 where only the layout tells it."""
        found: list[int] = []
        for line in self.lines:
            found += repeat(-1, bool(line.kind))
            for piece in line.pieces:
                found += repeat(-1, len(piece)) if isinstance(piece, str) else range(*piece)
            found.append(-1)
        return found[: len(self.text)]

    def names_other_characters(self) -> bool:
        """Return whether Han and Hangul, which are all as wide, are drawn in many widths."""
        places = [found.start() for found in islice(_WIDE.finditer(self.characters), _SAMPLE)]
        if len(places) < _LEAST_WIDE:
            return False
        box, ratios = self._boxes[0], Counter[int]()
        for at in places:
            pdfium.FPDFText_GetLooseCharBox(self._raw, at, box)
            ratios[round(20 * (box.right - box.left) / max(box.top - box.bottom, 0.1))] += 1
        return ratios.most_common(1)[0][1] < 0.5 * len(places)

    def _part_names(self, line: Line) -> None:
        """Put commas between names of authors that only gaps or marks part."""
        starts = self._cell_starts(line)
        for mark, piece in pairwise(line.pieces):
            if isinstance(mark, str) and mark.endswith(CLOSE) and not isinstance(piece, str):
                starts.add(piece[0])
        names: list[list[Piece]] = [[]]
        for piece in line.pieces:
            if isinstance(piece, str):
                names[-1].append(piece)
                continue
            places = sorted(at for at in starts if piece[0] <= at < piece[1])
            for start, end in pairwise([piece[0], *places, piece[1]]):
                if start in starts:
                    names.append([])
                if end > start:
                    names[-1].append((start, end))
        texts = [resolved(self._text(name)).strip(" ,") for name in names]
        if len(texts) > 1 and all(map(is_name, filter(None, texts))):
            kept = [name for name, text in zip(names, texts, strict=True) if text]
            parted = [piece for name in kept for piece in (", ", *self._stripped(name, " ,"))]
            line.pieces = parted[1:]

    def _notes_last(self, lines: list[Line]) -> list[Line]:
        """Return lines with the notes at the foot of columns behind all others, each on a line."""
        low = self._shown.bottom + _FOOT * (self._shown.top - self._shown.bottom)
        others: list[Line] = []
        notes: list[Line] = []
        last: Line | None = None
        for line in lines:
            begins = line.start in self._begin_notes and line.box.top < low
            if begins and not line.kind:
                line.kind = "footnote"
                notes.append(line)
            elif last is not None and not line.kind and _is_below(last, line):
                link = HYPHEN if last.is_broken else " "
                notes[-1].pieces = [*self._stripped(notes[-1].pieces), link, *line.pieces]
            else:
                others.append(line)
                last = None
                continue
            last = line
        for note in notes:
            note.is_broken = False
        return others + notes

    # Fields of forms, notes and comments.

    def _add_annotations(self, page: pypdfium2.PdfPage) -> None:
        """Add what was filled in behind its label, and what was noted at the end of the page."""
        for at in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
            annotation = pdfium.FPDFPage_GetAnnot(page.raw, at)
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            if kind == pdfium.FPDF_ANNOT_WIDGET and page.formenv is not None:
                self._add_field(page.formenv.raw, annotation)
            elif kind not in _NO_NOTES and not pdfium.FPDFAnnot_GetFlags(annotation) & _NOT_SHOWN:
                note = " ".join(_string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents"))
                if note:
                    self.lines.append(Line([], NOWHERE, 0.0, kind="footnote", pieces=[note]))
            pdfium.FPDFPage_CloseAnnot(annotation)

    def _add_field(self, form: pdfium.FPDF_FORMHANDLE, field_: pdfium.FPDF_ANNOTATION) -> None:
        kind = pdfium.FPDFAnnot_GetFormFieldType(form, field_)
        is_box = kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
        if is_box:
            value = "yes" if pdfium.FPDFAnnot_IsChecked(form, field_) else "no"
        elif kind in _WITH_VALUES:
            value = " ".join(_string(pdfium.FPDFAnnot_GetFormFieldValue, form, field_))
        else:
            return
        flags = pdfium.FPDFAnnot_GetFlags(field_) & _NOT_SHOWN
        if flags or pdfium.FPDFAnnot_GetFormFieldFlags(form, field_) & _PASSWORD or not value:
            return
        rect = pdfium.FS_RECTF()
        pdfium.FPDFAnnot_GetRect(field_, rect)
        line = self._label_of(Box(rect.left, rect.bottom, rect.right, rect.top), is_box=is_box)
        if line is not None:
            line.kind = "field"
            line.pieces = [*self._stripped(line.pieces), ": ", value]
            return
        label = " ".join(
            _string(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, field_)
            or _string(pdfium.FPDFAnnot_GetFormFieldName, form, field_)
        )
        text = f"{label}: {value}" if label else value
        self.lines.append(Line([], NOWHERE, 0.0, kind="field", pieces=[text]))

    def _label_of(self, place: Box, *, is_box: bool) -> Line | None:
        """Return the line that is the label of a field: before it, or behind a box to tick."""
        found: list[tuple[float, Line]] = []
        for line in self.lines:
            if line.kind:
                continue
            box = line.box
            middle = (max(box.bottom, place.bottom) + min(box.top, place.top)) / 2
            is_level = box.bottom < middle < box.top and place.bottom < middle < place.top
            is_above = 0 <= box.bottom - place.top < line.high
            far = box.left - place.right if is_box else place.left - box.right
            if is_level and -2 <= far < _FARTHEST_LABEL:
                found.append((far, line))
            elif is_above and not is_box and abs(box.left - place.left) < _FARTHEST_LABEL / 10:
                found.append((_FARTHEST_LABEL, line))
        return min(found, key=lambda one: one[0])[1] if found else None

    def _by_columns(self, lines: list[Line]) -> list[Line]:
        """Return lines column by column where two columns were drawn line by line."""
        gaps = [_gaps(line) for line in lines]
        at = 0
        while at < len(lines) and sum(map(bool, gaps)) >= _LEAST_LINES:
            end, gutter = at, 0.0
            if gaps[at]:
                widest = max(gaps[at], key=lambda gap: gap[1] - gap[0])
                end, gutter = _block(lines, gaps, at, widest)
            if end > at and (sides := self._sides_of(lines[at:end], gutter)) is not None:
                lines[at:end] = sides
                gaps[at:end] = [[] for _ in sides]
                end = at + len(sides)
            at = max(end, at + 1)
        return lines

    def _sides_of(self, lines: Sequence[Line], gutter: float) -> list[Line] | None:
        """Return the lines of both columns, the left one first, None if they are none of prose."""
        lefts, rights = [], []
        for line in lines:
            left, right = self._halves(line, gutter)
            lefts += left
            rights += right
        width = max(line.box.right for line in lines) - min(line.box.left for line in lines)
        for side in (lefts, rights):
            parts = [(part[0].start, part[-1].end) for line in side for part in line.parts]
            words = " ".join(self.characters[start:end] for start, end in parts).split()
            wide = sum(line.box.right - line.box.left for line in side) / len(side)
            lettered = sum(any(map(str.isalpha, word)) for word in words)
            is_prose = len(words) >= _LEAST_WORDS * len(side) and lettered >= 0.75 * len(words)
            if wide < _LEAST_SIDE * width or not is_prose:
                return None
        return lefts + rights

    def _halves(self, line: Line, gutter: float) -> tuple[list[Line], list[Line]]:
        counts = [sum(run.left < gutter for run in part) for part in line.parts]
        halves = [(part[:at], part[at:]) for part, at in zip(line.parts, counts, strict=True)]
        left, right = (list(filter(None, side)) for side in zip(*halves, strict=True))
        if not left or not right:
            return ([line], []) if left else ([], [line])
        start, last = left[-1][0].start, left[-1][-1]
        text = self.characters[start : last.end].rstrip()
        is_broken = text.endswith("-") and text[-2:-1].isalpha()
        left[-1][-1] = last._replace(end=start + len(text) - is_broken)
        return [line_of(left, is_broken)], [line_of(right, line.is_broken)]


def heads_before(document: pypdfium2.PdfDocument, index: int) -> Heads | None:
    """Return the heads of the table that ends the page before one.

    A table over more than `_MOST_PAGES` pages is read from the last of them.
    """
    heads: Heads | None = None
    first = index - 1
    while first > max(0, index - _MOST_PAGES) and _laid_out(document, first).begins_with_row:
        first -= 1
    for at in range(first, index):
        heads = _laid_out(document, at, heads).heads
    return heads


def _laid_out(
    document: pypdfium2.PdfDocument, index: int, heads: Heads | None = None
) -> PageLayout:
    page = document[index]
    textpage = page.get_textpage()
    try:
        return PageLayout(page, textpage, is_first=not index, heads=heads)
    finally:
        textpage.close()
        page.close()


def _gaps(line: Line) -> list[tuple[float, float]]:
    """Return where a line's text objects leave room for a gutter between them."""
    least = _GUTTER * line.high
    pairs = pairwise(line.runs)
    return [(a.right, b.left) for a, b in pairs if b.left - a.right > least]


def _block(
    lines: Sequence[Line],
    gaps: Sequence[Sequence[tuple[float, float]]],
    at: int,
    gap: tuple[float, float],
) -> tuple[int, float]:
    """Return the end of the lines from here on with text on both sides of a gap, and its middle.

    The end is the beginning where they are too few.
    """
    left, right = gap
    both, end = 0, at
    for index in range(at, len(lines)):
        line = lines[index]
        common = [
            (max(left, a), min(right, b))
            for a, b in gaps[index]
            if min(right, b) - max(left, a) > 0.5 * line.high
        ]
        if common:
            left, right = common[0]
            both, end = both + 1, index + 1
        elif line.box.right >= right and line.box.left <= left:
            break
    return (end if both >= max(_LEAST_LINES, 0.6 * (end - at)) else at), (left + right) / 2


def _string(get: Callable[..., int], *of: object) -> list[str]:
    """Return the words of a string of PDFium, which are UTF-16."""
    size = get(*of, None, 0)
    buffer = ctypes.create_string_buffer(size)
    get(*of, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return buffer.raw[: max(size - 2, 0)].decode("utf-16-le", "replace").split()


def _whole_lines(lines: Iterator[Line]) -> Iterator[Line]:
    """Join lines that PDFium parts at a power or a cell of another height."""
    held: Line | None = None
    for line in lines:
        if held is not None and not held.is_broken and _goes_on(held, line):
            held = line_of(held.parts + line.parts, line.is_broken)
            continue
        if held is not None:
            yield held
        held = line
    if held is not None:
        yield held


def _is_below(line: Line, next_: Line) -> bool:
    """Return whether a line goes on in the next, in the same font."""
    gap, high = line.box.bottom - next_.box.top, line.high
    is_near = -0.5 * high < gap < high and abs(next_.box.left - line.box.left) < 3 * high
    return is_near and 0.85 * high < next_.high < 1.15 * high


def _goes_on(line: Line, next_: Line) -> bool:
    """Return whether a line goes on in the next: at a power, or in another cell."""
    high = max(line.high, next_.high)
    gap = next_.box[0] - line.box[2]
    if gap < -0.3 * high:
        return False
    overlap = min(line.box[3], next_.box[3]) - max(line.box[1], next_.box[1])
    if gap < high:
        return overlap >= 0.3 * min(line.high, next_.high)
    part = next_.parts[-1]
    is_short = part[-1].end - part[0].start <= _LONGEST_CELL
    return overlap >= 0.7 * min(line.high, next_.high) and is_short and gap < _WIDEST_GAP * high
