"""Judge whether a PDF's pages are readable: text, images, or unnamed glyphs."""

from __future__ import annotations

from collections.abc import Sequence

import pypdfium2
import pypdfium2.raw as pdfium

from app.core.errors import NoTextLayer
from app.core.types import ParsedDocument

MIN_CHARACTERS_PER_PAGE = 20
"""On average; below it the pages are images (docs/facts/libraries.md)."""
_UNNAMED_FILE = 1 / 3
"""Share of a file's characters without a meaning from which it cannot be read."""
_UNNAMED_PAGE = 0.1
"""The same of a page that a warning names: formulas of a paper stay below a tenth, a figure with
a font of its own is above."""
_LEAST_PICTURE = 0.25
"""Share of a page that a picture of its text covers; a logo is smaller."""
_MOST_NAMED = 8
"""Ranges of pages that a warning lists."""


def pages_of_pictures(document: pypdfium2.PdfDocument, texts: Sequence[str]) -> list[int]:
    """Return the numbers, from 1, of pages that show a picture and hardly any text."""
    bare = (at for at, text in enumerate(texts) if len(text) < MIN_CHARACTERS_PER_PAGE)
    return [at + 1 for at in bare if _shows_picture(document, at)]


def _shows_picture(document: pypdfium2.PdfDocument, index: int) -> bool:
    page = document[index]
    try:
        least = _LEAST_PICTURE * page.get_width() * page.get_height()
        for picture in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3):
            left, bottom, right, top = picture.get_bounds()
            if (right - left) * (top - bottom) >= least:
                return True
        return False
    finally:
        page.close()


def require_text(filename: str, texts: Sequence[str]) -> None:
    """Refuse a PDF whose pages hold hardly any text.

    Raises:
        NoTextLayer: Fewer than 20 characters a page on average.
    """
    if sum(map(len, texts)) < MIN_CHARACTERS_PER_PAGE * len(texts):
        pages = "1 page" if len(texts) == 1 else f"{len(texts)} pages"
        raise NoTextLayer(
            f"{filename!r} has {pages} but hardly any text (a scan?); run OCR on it and upload the"
            " result"
        )


def judge(filename: str, parsed: ParsedDocument, scanned: Sequence[int]) -> tuple[str, ...]:
    """Return warnings about pages whose text cannot be found.

    Args:
        filename: For messages.
        parsed: With U+FFFD for a glyph whose font does not say which character it is.
        scanned: The numbers, from 1, of pages that are pictures.

    Raises:
        NoTextLayer: A third of all characters are without a meaning.
    """
    if _unnamed(parsed.text) >= _UNNAMED_FILE:
        raise NoTextLayer(
            f"{filename!r} has fonts that do not say which characters they show; "
            "run OCR on pictures of its pages (ocrmypdf --force-ocr) and send the result"
        )
    warnings = []
    if scanned:
        where = _pages(scanned, len(parsed.pages))
        warnings.append(
            f"pictures without text on {where}; if they show text, run OCR on the file and send"
            " the result"
        )
    if unnamed := _unnamed_pages(parsed):
        warnings.append(
            "fonts that do not say which characters they show on"
            f" {_pages(unnamed, len(parsed.pages))}; "
            "run OCR on pictures of the pages (ocrmypdf --force-ocr) and send the result"
        )
    return tuple(warnings)


def _unnamed_pages(parsed: ParsedDocument) -> list[int]:
    if "\ufffd" not in parsed.text:
        return []
    texts = [(page.number, parsed.text[page.start : page.end]) for page in parsed.pages]
    return [
        number
        for number, text in texts
        if len(text) >= MIN_CHARACTERS_PER_PAGE and _unnamed(text) >= _UNNAMED_PAGE
    ]


def _unnamed(text: str) -> float:
    """Return the share of characters without a Unicode value.

    Spaces and line ends do not count.
    """
    unnamed = text.count("\ufffd")
    return unnamed / (len(text) - text.count(" ") - text.count("\n")) if unnamed else 0.0


def _pages(numbers: Sequence[int], of: int) -> str:
    """Return a number of pages and which: `4 of 20 pages (3, 7-9)`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    named = ", ".join("-".join(map(str, span)) for span in ranges[:_MOST_NAMED])
    more = ", ..." if len(ranges) > _MOST_NAMED else ""
    return f"{len(numbers)} of {of} pages ({named}{more})"
