"""What is printed is read by a real engine, in a process of its own, and found where it stands."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from app.core.errors import Unreadable
from app.core.types import PageText
from app.ingest.options import IngestOptions, find_engine
from app.ingest.sandbox import SandboxedParser

LINES = (
    "The lighthouse keeper was paid",
    "in oil and rope until 1871.",
    "Invoice 40-7731: 1,250.00",
)
ENGINES = [engine for engine in ("rapidocr", find_engine("tesseract")) if engine]


def printed(turn: int = 0) -> Image.Image:
    picture = Image.new("L", (1000, 600), 255)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=40)
    for at, line in enumerate(LINES):
        draw.text((80, 100 + 90 * at), line, 0, font)
    return picture.rotate(turn, fillcolor=255)


def pdf() -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(500, 300), invariant=1)
    canvas.drawImage(ImageReader(printed(turn=1)), 0, 0, 500, 300)
    canvas.save()
    return buffer.getvalue()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_scan_is_read_and_its_words_are_where_they_stand(engine: str) -> None:
    options = IngestOptions(ocr_engine=engine)
    with SandboxedParser(options.of_recogniser()) as recogniser, SandboxedParser(options) as parser:
        assert parser.parse(pdf(), "scan.pdf").unread == (1,)
        words = recogniser.page_words(pdf(), 1)
        parsed = parser.parse(pdf(), "scan.pdf", words=[words])
        assert parsed.text.split() == " ".join(LINES).split()
        at = parsed.text.index("lighthouse")
        (boxes,) = parser.page_boxes(
            pdf(), [PageText(1, parsed.text, at, at + len("lighthouse"))], [words]
        )
        ((left, top, right, bottom),) = boxes.rects
        assert 60 < left < 95
        assert 40 < top < bottom < 85
        assert 140 < right < 220


@pytest.mark.parametrize("engine", ENGINES)
def test_an_image_is_read(engine: str) -> None:
    buffer = io.BytesIO()
    printed().save(buffer, "WEBP")
    options = IngestOptions(ocr_engine=engine)
    with SandboxedParser(options.of_recogniser()) as recogniser:
        words = recogniser.page_words(buffer.getvalue(), 1)
    assert [" ".join(word.text for word in line) for line in words.lines] == list(LINES)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_page_has_no_words(engine: str) -> None:
    buffer = io.BytesIO()
    Image.new("L", (600, 400), 255).save(buffer, "PNG")
    options = IngestOptions(ocr_engine=engine)
    with SandboxedParser(options.of_recogniser()) as recogniser:
        assert recogniser.page_words(buffer.getvalue(), 1).lines == ()


def test_a_language_that_is_not_installed_is_told() -> None:
    if not (engine := find_engine("tesseract")):
        return
    buffer = io.BytesIO()
    printed().save(buffer, "PNG")
    options = IngestOptions(ocr_engine=engine, ocr_languages="xyz")
    with (
        SandboxedParser(options.of_recogniser()) as recogniser,
        pytest.raises(Unreadable, match="OCR_LANGUAGES"),
    ):
        recogniser.page_words(buffer.getvalue(), 1)
