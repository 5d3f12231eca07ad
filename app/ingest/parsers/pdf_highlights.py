"""Mark spans of stored text in a copy of their PDF, as highlight annotations with notes."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Sequence

import pypdfium2
import pypdfium2.raw as pdfium

from app.core.errors import InvalidInput, Unreadable
from app.core.types import Highlight, PageBoxes, PageWords
from app.ingest.parsers.pdf_boxes import DEVICE_UNITS, Rect, find_boxes
from app.ingest.parsers.sniffing import pdf_start

_COLOUR = (255, 214, 0)
_AUTHOR = "DocuMind"


def highlighted(
    content: bytes, highlights: Sequence[Highlight], words: Sequence[PageWords] = ()
) -> bytes:
    """Return a copy of a PDF with its marks; the original's bytes stay in front of them.

    Args:
        content: The PDF that the texts were parsed from.
        highlights: What to mark; a span over several pages is marked on each.
        words: What OCR recognised on pages of it.

    Raises:
        InvalidInput: The PDF is encrypted or signed.
        UnsupportedType: The content is not a PDF.
        Unreadable: It cannot be opened or has no such page.
    """
    places = [find_boxes(content, one.pages, words) for one in highlights]
    document = pypdfium2.PdfDocument(content[pdf_start(content) :])
    try:
        if pdfium.FPDF_GetSecurityHandlerRevision(document) >= 0:
            raise InvalidInput(
                "the PDF is encrypted, a copy with marks would not be; open the citations here"
            )
        if pdfium.FPDF_GetSignatureCount(document) > 0:
            raise InvalidInput(
                "the PDF is signed, marks would break the signature; open the citations here"
            )
        for one, pages in zip(highlights, places, strict=True):
            for boxes in pages:
                _mark(document[boxes.page - 1], boxes, one.note)
        copy = io.BytesIO()
        document.save(copy)
        return copy.getvalue()
    except pypdfium2.PdfiumError as exc:
        raise Unreadable(f"the PDF cannot be written anew ({exc})") from exc
    finally:
        document.close()


def _mark(page: pypdfium2.PdfPage, boxes: PageBoxes, note: str) -> None:
    """Add one annotation for the rectangles of a page; none without any."""
    try:
        if not boxes.rects:
            return
        annotation = pdfium.FPDFPage_CreateAnnot(page, pdfium.FPDF_ANNOT_HIGHLIGHT)
        corners = [_on_page(page, boxes, rect) for rect in boxes.rects]
        for left, bottom, right, top in corners:
            quad = pdfium.FS_QUADPOINTSF(left, top, right, top, left, bottom, right, bottom)
            pdfium.FPDFAnnot_AppendAttachmentPoints(annotation, quad)
        lefts, bottoms, rights, tops = zip(*corners, strict=True)
        around = pdfium.FS_RECTF(min(lefts), max(tops), max(rights), min(bottoms))
        pdfium.FPDFAnnot_SetRect(annotation, around)
        pdfium.FPDFAnnot_SetColor(annotation, pdfium.FPDFANNOT_COLORTYPE_Color, *_COLOUR, 255)
        for key, text in ((b"Contents", note), (b"T", _AUTHOR)):
            pdfium.FPDFAnnot_SetStringValue(annotation, key, _wide(text))
        pdfium.FPDFAnnot_SetFlags(annotation, pdfium.FPDF_ANNOT_FLAG_PRINT)
        pdfium.FPDFPage_CloseAnnot(annotation)
    finally:
        page.close()


def _on_page(page: pypdfium2.PdfPage, boxes: PageBoxes, rect: Rect) -> Rect:
    """Return left, bottom, right, top of a rectangle in the page's own space."""
    size = (round(boxes.width * DEVICE_UNITS), round(boxes.height * DEVICE_UNITS))
    across, up = ctypes.c_double(), ctypes.c_double()
    corners = []
    for x, y in (rect[:2], rect[2:]):
        device = round(x * DEVICE_UNITS), round(y * DEVICE_UNITS)
        pdfium.FPDF_DeviceToPage(page, 0, 0, *size, 0, *device, across, up)
        corners.append((across.value, up.value))
    (x0, y0), (x1, y1) = corners
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _wide(text: str) -> ctypes.Array[ctypes.c_ushort]:
    """Return a text as PDFium takes it: UTF-16, little-endian, with an end."""
    units = text.encode("utf-16-le", "replace") + b"\x00\x00"
    return (ctypes.c_ushort * (len(units) // 2)).from_buffer_copy(units)
