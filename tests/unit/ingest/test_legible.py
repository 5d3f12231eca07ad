"""Pages of a PDF that nobody will find, and who says so."""

from __future__ import annotations

import io
import unicodedata
from itertools import accumulate

import pypdfium2
import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics, ttfonts
from reportlab.pdfgen.canvas import Canvas

from app.core.errors import NoTextLayer
from app.core.types import PageSpan, ParsedDocument
from app.ingest.ocr import INSTALL
from app.ingest.options import IngestOptions
from app.ingest.parsers.pdf import assemble as assemble_pages
from app.ingest.parsers.pdf import judge, pages_of_pictures, parse_pdf

WORDS = "It is said in plain words that crystals walk at night. " * 4


def mixed() -> bytes:
    """A page of text, two pictures of pages, a blank page, a logo alone."""
    buffer, picture = io.BytesIO(), ImageReader(Image.new("L", (40, 50), 200))
    canvas = Canvas(buffer, pagesize=(400, 500), invariant=1)
    for line, words in enumerate(WORDS.split(". ")):
        canvas.drawString(10, 400 - 20 * line, words)
    for width, height in ((400, 500), (380, 480), (0, 0), (40, 50)):
        canvas.showPage()
        if width:
            canvas.drawImage(picture, 0, 0, width, height)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def parsed(*texts: str) -> ParsedDocument:
    starts = [*accumulate((len(text) + 1 for text in texts), initial=0)]
    pages = tuple(
        PageSpan(n, start, start + len(text))
        for n, (start, text) in enumerate(zip(starts, texts, strict=False), 1)
    )
    return ParsedDocument("\n".join(texts), "application/pdf", pages)


def test_a_scanned_page_among_pages_of_text_is_named() -> None:
    (warning,) = parse_pdf(mixed(), "report.pdf", IngestOptions()).warnings
    assert (
        warning
        == "pictures without text on 2 of 5 pages (2-3); if they show text, run OCR on the file"
        f" and send the result, or, {INSTALL}"
    )


def test_a_page_with_text_beside_its_picture_is_not_asked_for() -> None:
    document = pypdfium2.PdfDocument(mixed())
    assert pages_of_pictures(document, [WORDS, WORDS, "", "", ""]) == [3]
    document.close()


def test_text_of_glyphs_without_characters_is_refused_with_the_cure() -> None:
    with pytest.raises(NoTextLayer, match="ocrmypdf --force-ocr"):
        judge("old.pdf", parsed("\ufffd" * 60 + " and a few words"), [])
    said = parsed(WORDS, "x = \ufffd\ufffd y, as was said before")
    assert judge("paper.pdf", said, []).warnings == ()
    found = judge("paper.pdf", parsed(*[WORDS] * 3, "\ufffd" * 30, WORDS, "\ufffd" * 30), [])
    (warning,) = found.warnings
    assert found.unread == (4, 6)
    assert "characters they show on 2 of 6 pages (4, 6);" in warning


def test_a_figure_in_such_a_font_on_a_page_of_text_is_named() -> None:
    (warning,) = judge("paper.pdf", parsed(WORDS, WORDS + 40 * "\ufffd", WORDS), []).warnings
    assert "characters they show on 1 of 3 pages (2);" in warning


def test_many_ranges_of_pages_are_cut() -> None:
    (warning,) = judge("book.pdf", parsed(*[WORDS] * 40), range(1, 41, 2)).warnings
    assert "on 20 of 40 pages (1, 3, 5, 7, 9, 11, 13, 15, ...);" in warning


def pages(*texts: str, picture: bool = False) -> bytes:
    buffer, shown = io.BytesIO(), ImageReader(Image.new("L", (40, 50), 200))
    canvas = Canvas(buffer, pagesize=(400, 500), invariant=1)
    for text in texts:
        if picture:
            canvas.drawImage(shown, 0, 0, 400, 450)
        canvas.drawString(10, 470, text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def test_few_words_on_a_page_are_read() -> None:
    slides = ["Pumps", "Pump A: 40 bar", "Pump B: 25 bar", "Questions?", "Thanks"]
    assert parse_pdf(pages(*slides), "deck.pdf", IngestOptions()).text.split("\n") == slides
    assert parse_pdf(pages("Gate code 4471"), "code.pdf", IngestOptions()).text == "Gate code 4471"
    shown = parse_pdf(pages(*slides, picture=True), "deck.pdf", IngestOptions())
    assert "Pump A: 40 bar" in shown.text
    assert "pictures without text on 5 of 5 pages" in shown.warnings[0]


def test_pictures_of_pages_with_a_stamp_are_a_scan() -> None:
    stamped = pages(*["Scanned by Me"] * 6, picture=True)
    with pytest.raises(NoTextLayer, match="has 6 pages but hardly any text"):
        parse_pdf(stamped, "scan.pdf", IngestOptions())
    with pytest.raises(NoTextLayer, match="has 2 pages"):
        parse_pdf(pages("", ""), "blank.pdf", IngestOptions())


def test_fonts_that_name_other_characters_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ttfonts.makeToUnicodeCMap

    def shifted(name: str, codes: list[int]) -> str:
        return str(made(name, [code + 0xAC00 if code > 0x40 else code for code in codes]))

    monkeypatch.setattr(ttfonts, "makeToUnicodeCMap", shifted)
    font = ttfonts.TTFont("Shifted", "Vera.ttf")
    pdfmetrics.registerFont(font)
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(500, 500), invariant=1)
    canvas.drawString(10, 400, "A page of plain words, as they should be, so that there is one.")
    canvas.showPage()
    canvas.setFont("Shifted", 10)
    canvas.drawString(10, 400, "It is said in plain words that crystals walk at night.")
    canvas.save()
    (warning,) = parse_pdf(buffer.getvalue(), "odd.pdf", IngestOptions()).warnings
    assert warning.startswith("fonts that name other characters than they show on 1 of 2 pages (2)")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("\u05c1\u05b8\u05e9\u05dc\u05b9\u05d5\u05dd \u05d9\u05d5\u05dd", "שָׁלוֹם יום"),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "שָׁלוֹם"),
        ("\u064e\u0643\u064e\u062a\u064e\u0628", "كَتَبَ"),
        ("no marks at all", "no marks at all"),
    ],
)
def test_marks_of_right_to_left_scripts_stand_behind_their_letters(page: str, text: str) -> None:
    parsed = assemble_pages([page], {})
    assert parsed.text == unicodedata.normalize("NFC", text)
