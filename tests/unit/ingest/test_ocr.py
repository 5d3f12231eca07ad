"""Pages that are pictures: which are read, what becomes of their words, and where those stand."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from app.core.errors import NoTextLayer, TooLarge, Unreadable, UnsupportedType
from app.core.types import PageText, PageWords, Word
from app.ingest.ocr import text_layer
from app.ingest.options import IngestOptions, find_engine
from app.ingest.parsers import DirectParser
from app.ingest.parsers.pdf import texts_of_words
from tests.fakes.ocr import GrayReader, gray, image, scanned

PROSE = "It is said in plain words that crystals walk at night. " * 4
READS = IngestOptions(ocr_engine="a reader")
TEXTS = ("The keeper rows at dawn\nand lights the lamp.", "Nothing else is known.")


def reader(options: IngestOptions = READS) -> DirectParser:
    return DirectParser(options, GrayReader(TEXTS))


def test_a_scan_is_accepted_and_read_page_by_page() -> None:
    content, parser = scanned(0, 1), reader()
    first = parser.parse(content, "scan.pdf")
    assert (first.text.strip(), first.unread, first.recognised) == ("", (1, 2), 0)
    (warning,) = first.warnings
    assert "OCR reads them in the background" in warning
    words = [parser.page_words(content, number) for number in first.unread]
    assert (words[0].width, words[0].height) == (400, 500)
    half = parser.parse(content, "scan.pdf", words=words[:1])
    assert (half.unread, half.recognised) == ((2,), 1)
    whole = parser.parse(content, "scan.pdf", words=words)
    assert whole.text == "The keeper rows at dawn\nand lights the lamp.\nNothing else is known."
    assert [page.number for page in whole.pages] == [1, 2]
    assert (whole.unread, whole.recognised) == ((), 2)
    assert whole.warnings == ("the text is read by OCR on 2 of 2 pages (1-2)",)


def test_only_pages_that_need_it_are_read_and_all_with_always() -> None:
    content = scanned(PROSE, 0, PROSE)
    parsed = reader().parse(content, "report.pdf")
    assert parsed.unread == (2,)
    assert parsed.text.count("crystals walk") == 8
    assert reader(replace(READS, ocr="always")).parse(content, "report.pdf").unread == (1, 2, 3)
    for options in (replace(READS, ocr="off"), IngestOptions()):
        (warning,) = reader(options).parse(content, "report.pdf").warnings
        assert "make setup EXTRAS=ocr" in warning


def test_without_ocr_a_scan_is_refused_with_the_ways_to_it() -> None:
    for content in (scanned(0, 1), image(0)):
        with pytest.raises((NoTextLayer, UnsupportedType)) as caught:
            DirectParser(IngestOptions()).parse(content, "scan")
        for way in ("make setup EXTRAS=ocr", "pip install 'documind-server[ocr]'", "tesseract"):
            assert way in caught.value.message


def test_a_page_without_words_keeps_the_text_that_it_has() -> None:
    content = scanned(PROSE, 50)
    words = reader().page_words(content, 2)
    assert words == PageWords(2, 400, 500)
    parsed = reader().parse(content, "report.pdf", words=[words])
    assert (parsed.unread, parsed.recognised, parsed.warnings) == ((), 0, ())
    empty = reader().parse(scanned(50), "photo.pdf", words=[replace(words, page=1)])
    assert (empty.text, empty.unread) == ("", ())


def test_boxes_of_recognised_words_are_where_the_picture_has_them() -> None:
    content, parser = scanned(PROSE, 0), reader()
    words = parser.page_words(content, 2)
    text = texts_of_words([words])[2].replace("\n", " ")
    at = text.index("rows")
    pages = [PageText(2, text, at, at + 4), PageText(1, PROSE, 0, 2)]
    recognised, drawn = parser.page_boxes(content, pages, [words])
    assert (recognised.page, recognised.width, recognised.height) == (2, 400, 500)
    ((left, top, right, bottom),) = recognised.rects
    assert (left, top, right, bottom) == pytest.approx((140, 40, 190, 55), abs=1)
    assert drawn.page == 1
    assert drawn.rects


def test_rows_and_columns_are_found_as_in_any_pdf() -> None:
    def line(top: float, *cells: tuple[str, float]) -> tuple[Word, ...]:
        return tuple(Word(text, left, top, left + 6 * len(text), top + 10) for text, left in cells)

    rows = [
        line(20, ("Pump", 20), ("Flow", 120), ("Power", 220), ("Year", 320)),
        line(40, ("Alpha", 20), ("40", 120), ("7.5", 220), ("1998", 320)),
        line(60, ("Beta", 20), ("25", 120), ("5.1", 220), ("2003", 320)),
    ]
    text = texts_of_words([PageWords(1, 400, 500, tuple(rows))])[1]
    assert "Pump: Beta | Flow: 25 | Power: 5.1 | Year: 2003" in text


@pytest.mark.parametrize("said", ["Straße", "Владивосток", "東京都", "a\u0007b", "😀x", "שלום"])
def test_words_of_every_script_are_kept(said: str) -> None:
    page = PageWords(1, 200, 100, ((Word(said, 10, 10, 90, 30),),))
    shown = texts_of_words([page])[1]
    expected = said.replace("\u0007", "\ufffd").replace("😀", "\ufffd")
    assert shown.replace("\x02", "\ufffd") in (expected, expected[::-1])
    with text_layer([page]) as layer:
        assert layer[0].get_size() == (200, 100)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_an_image_is_a_page(kind: str, tmp_path: Path) -> None:
    content = image(1, kind)
    (tmp_path / "photo").write_bytes(content)
    first = reader().parse(tmp_path / "photo", "photo")
    assert (first.unread, first.media_type) == ((1,), f"image/{kind.lower()}")
    words = reader().page_words(tmp_path / "photo", 1)
    assert (words.width, words.height) == (14.4, 18.0)  # at 200 dpi
    assert reader().parse(content, "photo", words=[words]).text == TEXTS[1]


def test_frames_of_a_tiff_are_pages_and_a_photo_is_turned_upright() -> None:
    content = image(0, "TIFF", save_all=True, append_images=[gray(1)], dpi=(100, 100))
    assert reader().parse(content, "fax.tiff").unread == (1, 2)
    assert reader().page_words(content, 2).width == pytest.approx(28.8)
    turned = Image.Exif()
    turned[0x0112] = 6
    words = reader().page_words(image(1, "JPEG", exif=turned), 1)
    assert (words.width, words.height) == (18.0, 14.4)


@pytest.mark.parametrize("mode", ["1", "P", "RGBA", "LA", "CMYK", "I;16", "I", "F"])
def test_every_kind_of_pixels_is_printed(mode: str) -> None:
    buffer = io.BytesIO()
    kind = "TIFF" if mode in ("CMYK", "I;16", "I", "F") else "PNG"
    base = Image.new("RGB", (30, 20), (200, 10, 10))
    (base.convert("L").convert("I").convert(mode) if mode == "I;16" else base.convert(mode)).save(
        buffer, kind
    )
    assert reader().page_words(buffer.getvalue(), 1).page == 1


def test_damaged_and_huge_images_are_refused() -> None:
    for content in (image(0)[:-30], image(0)[:40], b"\x89PNG\r\n\x1a\n" + bytes(range(256))):
        with pytest.raises(Unreadable, match="damaged image"):
            reader().parse(content, "photo.png")
    buffer = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(buffer, "PNG")
    with pytest.raises(TooLarge, match="30000 x 30000 pixels"):
        reader().parse(buffer.getvalue(), "bomb.png")
    many = image(0, "TIFF", save_all=True, append_images=[gray(1)] * 3)
    with pytest.raises(TooLarge, match="4 pages"):
        reader(replace(READS, max_pages=3)).parse(many, "fax.tiff")
    with pytest.raises(Unreadable):
        reader().page_words(image(0), 2)
    with pytest.raises(Unreadable, match="page 9 cannot be printed"):
        reader().page_words(scanned(0), 9)


def test_the_engine_that_is_installed_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_engine("tesseract") == str(program)
    assert find_engine("auto") in ("rapidocr", str(program))
    monkeypatch.setenv("PATH", "")
    assert find_engine("tesseract") == ""
    assert find_engine("rapidocr") in ("rapidocr", "")
