"""What every Parser promises, on the direct one and through the child process."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from app.core.errors import (
    DocuMindError,
    Encrypted,
    InvalidInput,
    NoTextLayer,
    TooLarge,
    Unreadable,
    UnsupportedType,
)
from app.core.normalisation import normalise
from app.core.ports import Parser
from app.core.types import Highlight, Listing, PageText
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.parsers.formats import FORMATS, type_of
from app.ingest.sandbox import SandboxedParser
from tests.fakes import files
from tests.fakes.office import make_odf, make_pptx, make_xls, make_xlsx, said, shape, table

OPTIONS = IngestOptions(max_file_bytes=5_000_000, max_pages=50, max_characters=100_000)


@pytest.fixture(scope="module", params=["direct", "sandboxed"])
def parser(request: pytest.FixtureRequest) -> Iterator[DirectParser | SandboxedParser]:
    if request.param == "direct":
        yield DirectParser(OPTIONS)
        return
    with SandboxedParser(OPTIONS) as sandboxed:
        yield sandboxed


def test_addresses_of_a_feed_are_listed(parser: Parser) -> None:
    feed = b"<rss><channel><item><link>/a</link></item></channel></rss>"
    assert parser.addresses(feed, "https://example.org/feed") == Listing(("https://example.org/a",))
    index = b"<sitemapindex><sitemap><loc>https://example.org/b</loc></sitemap></sitemapindex>"
    assert parser.addresses(index, "x") == Listing(("https://example.org/b",), of_sitemaps=True)


ODS_ROW = (
    "<table:table-row><table:table-cell><text:p>Fee</text:p></table:table-cell></table:table-row>"
)
GOOD = [
    ("paper.pdf", files.make_pdf(), "application/pdf"),
    (
        "tides.docx",
        files.make_docx(),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("bogs.html", files.HTML, "text/html"),
    ("bees.md", files.MARKDOWN, "text/markdown"),
    ("tides.eml", files.MAIL, "message/rfc822"),
    ("tides.mbox", b"From a Wed Feb 12 09:15:00 2025\n" + files.MAIL, "application/mbox"),
    ("tides.mhtml", files.MAIL.replace(b"/plain", b"/html"), "application/x-mimearchive"),
    ("tides.epub", files.make_epub(), "application/epub+zip"),
    ("tides.rtf", b"{\\rtf1 \\outlinelevel1 Tides\\par Noon.}", "application/rtf"),
    (
        "tides.ipynb",
        b'{"cells": [{"cell_type": "markdown", "source": "# Tides"}]}',
        "application/x-ipynb+json",
    ),
    ("tides.srt", b"1\n00:00:01,000 --> 00:00:02,000\nNoon.\n", "text/vtt"),
    ("plain.txt", b"Just a line.\r\nAnd another one.", "text/plain"),
    ("code.py", b"def f() -> int:\n\treturn 1\n", "text/x-source"),
    ("tides.rst", b"Tides\n=====\n\nNoon.\n", "text/x-rst"),
    ("tides.adoc", b"= Tides\n\nNoon.\n", "text/asciidoc"),
    ("tides.tex", b"\\section{Tides} Noon $x^2$.", "text/x-tex"),
    ("table.csv", b"name,age\nann,3\n", "text/csv"),
    (
        "fees.xlsx",
        make_xlsx({"Fees": table(("Name", "Fee"), ("Ann", 3))}),
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    (
        "talk.pptx",
        make_pptx([shape(said("Tides"), kind="title"), "", shape(said("End"))]),
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    (
        "rules.odt",
        make_odf("text", "<text:h>Mooring</text:h><text:p>Moor twice.</text:p>"),
        "application/vnd.oasis.opendocument.text",
    ),
    (
        "fees.ods",
        make_odf("spreadsheet", f"<table:table>{ODS_ROW}</table:table>"),
        "application/vnd.oasis.opendocument.spreadsheet",
    ),
    ("fees.xls", make_xls([("Name", "Fee"), ("Ann", 3)]), "application/vnd.ms-excel"),
    ("data.json", b'{"a": [1, 2]}', "application/json"),
    ("data.yaml", b"a: [1, 2]  # why\nb:\n  c: d\n", "application/yaml"),
    ("data.xml", b"<a><b>x</b><c d='e'/></a>", "application/xml"),
]


@pytest.mark.parametrize(("name", "content", "media_type"), GOOD, ids=[name for name, _, _ in GOOD])
def test_text_is_in_normal_form_and_structure_lies_within_it(
    parser: Parser, name: str, content: bytes, media_type: str
) -> None:
    parsed = parser.parse(content, name)
    assert parsed.media_type == media_type
    assert normalise(parsed.text) == (parsed.text, 0)
    assert "\r" not in parsed.text
    for heading in parsed.headings:
        assert " ".join(parsed.text[heading.start : heading.end].split()) == heading.title
    for before, after in pairwise(parsed.pages):
        assert before.end <= after.start
        assert after.number == before.number + 1
    assert all(0 <= page.start <= page.end <= len(parsed.text) for page in parsed.pages)


@pytest.mark.parametrize(("name", "content", "media_type"), GOOD, ids=[name for name, _, _ in GOOD])
def test_a_wrong_name_or_a_path_change_nothing_for_binary_kinds(
    parser: Parser, name: str, content: bytes, media_type: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(content)
    assert parser.parse(path, name) == parser.parse(content, name)
    if not FORMATS[type_of(media_type)].is_text:
        assert parser.parse(content, "holiday.jpg").text == parser.parse(content, name).text


BAD: list[tuple[str, bytes, type[DocuMindError]]] = [
    ("empty.txt", b"", Unreadable),
    ("blank.txt", b" \n\t \n", Unreadable),
    ("nothing.html", b"<html><body><script>x</script></body></html>", Unreadable),
    ("program.pdf", b"MZ\x90\x00" + bytes(500), UnsupportedType),
    ("linux.txt", b"\x7fELF" + bytes(500), UnsupportedType),
    ("picture.md", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, UnsupportedType),
    ("old.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), UnsupportedType),
    (
        "secret.docx",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le"),
        Encrypted,
    ),
    ("rich.rtf", b"{\\rtf1\\u99999999 hello}", Unreadable),
    ("book.epub", files.make_epub()[:-400], Unreadable),
    ("cells.ipynb", b'{"cells": 1}', Unreadable),
    ("film.srt", b"words", Unreadable),
    ("broken.pdf", b"%PDF-1.7\n" + b"junk " * 50, Unreadable),
    ("broken.docx", b"PK\x03\x04" + b"junk" * 50, Unreadable),
    ("bomb.docx", files.make_zip_bomb(), TooLarge),
    ("secret.pdf", files.make_pdf(password="sesame"), Encrypted),
    ("scan.pdf", files.make_scan(), NoTextLayer),
    ("long.pdf", files.make_pdf([["A page with some words on it."]] * 51), TooLarge),
    ("long.txt", b"word " * 25_000, TooLarge),
    ("large.txt", b"x" * 5_000_001, TooLarge),
]


@pytest.mark.parametrize(("name", "content", "error"), BAD, ids=[name for name, _, _ in BAD])
def test_bad_files_end_in_their_error_with_the_name_and_a_cure(
    parser: Parser, name: str, content: bytes, error: type[DocuMindError]
) -> None:
    with pytest.raises(error) as caught:
        parser.parse(content, name)
    assert type(caught.value) is error
    assert repr(name) in caught.value.message
    assert ";" in caught.value.message or ":" in caught.value.message


def test_a_missing_file_is_unreadable(parser: Parser, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read"):
        parser.parse(tmp_path / "gone.txt", "gone.txt")


def test_boxes_enclose_the_span_line_by_line(parser: Parser) -> None:
    content = files.make_pdf()
    parsed = parser.parse(content, "paper.pdf")
    page = parsed.pages[1]
    text = parsed.text[page.start : page.end]
    start = text.index("cooled from forty")
    end = text.index("once per second") + len("once per second")
    [boxes] = parser.page_boxes(content, [PageText(2, text, start, end)])
    assert boxes.page == 2
    assert (boxes.width, boxes.height) == pytest.approx((595.28, 841.89), abs=0.01)
    assert len(boxes.rects) == 2
    first, second = boxes.rects
    # Lines 2 and 3 of the page: baselines at 780 - 16 * row points from the bottom, 12 point type.
    assert first[1] < 841.89 - 764 < first[3]
    assert second[1] < 841.89 - 748 < second[3]
    assert (
        first[0] > 150 > 75 > second[0]
    )  # the span starts within its first line and takes the second from its beginning
    assert parser.page_boxes(content, []) == ()


def _annotations(content: bytes, page: int) -> list[tuple[str, list[tuple[float, ...]]]]:
    """Return note and rectangles (left, bottom, right, top) of a page's annotations."""
    document = pypdfium2.PdfDocument(content)
    found: list[tuple[str, list[tuple[float, ...]]]] = []
    for at in range(pdfium.FPDFPage_GetAnnotCount(opened := document[page - 1])):
        annotation = pdfium.FPDFPage_GetAnnot(opened, at)
        note = (ctypes.c_ushort * 200)()
        pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", note, 400)
        said = bytes(note).decode("utf-16-le").split("\0")[0]
        quads: list[tuple[float, ...]] = []
        for one in range(pdfium.FPDFAnnot_CountAttachmentPoints(annotation)):
            quad = pdfium.FS_QUADPOINTSF()
            pdfium.FPDFAnnot_GetAttachmentPoints(annotation, one, quad)
            quads.append((quad.x1, quad.y3, quad.x2, quad.y1))
        found.append((said, quads))
    document.close()
    return found


def test_a_copy_has_its_spans_highlighted_where_their_boxes_are(parser: Parser) -> None:
    content = files.make_pdf()
    parsed = parser.parse(content, "paper.pdf")
    page = parsed.pages[1]
    text = parsed.text[page.start : page.end]
    start = text.index("cooled from forty")
    span = PageText(2, text, start, text.index("once per second") + len("once per second"))
    copy = parser.highlighted(content, [Highlight((span,), "it cooled \u2192 supported")])
    [(note, quads)] = _annotations(copy, 2)
    assert note == "it cooled \u2192 supported"
    [boxes] = parser.page_boxes(content, [span])
    shown = [
        (left, boxes.height - top, right, boxes.height - bottom)
        for left, bottom, right, top in quads
    ]
    for one, rect in zip(shown, boxes.rects, strict=True):
        assert one == pytest.approx(rect, abs=0.05)
    assert _annotations(copy, 1) == []
    read_again = parser.parse(copy, "copy.pdf").text  # with the note, as any annotation is read
    assert read_again.startswith(parsed.text)
    assert content == files.make_pdf()


_SIGNED = b"""%PDF-1.7
1 0 obj<</Type/Catalog/Pages 2 0 R/AcroForm<</SigFlags 3/Fields[4 0 R]>>>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Annots[4 0 R]>>endobj
4 0 obj<</Type/Annot/Subtype/Widget/FT/Sig/T(s)/Rect[0 0 0 0]/P 3 0 R/V<</Type/Sig
/Filter/Adobe.PPKLite/SubFilter/adbe.pkcs7.detached/Contents<00>/ByteRange[0 1 2 3]>>>>endobj
trailer<</Root 1 0 R/Size 5>>
%%EOF
"""


def test_an_encrypted_or_signed_pdf_is_not_marked(parser: Parser) -> None:
    locked = Canvas(buffer := io.BytesIO(), encrypt=StandardEncryption("", "owner"))
    locked.drawString(72, 700, "Only the owner may change this.")
    locked.save()
    with pytest.raises(InvalidInput, match="encrypted"):
        parser.highlighted(buffer.getvalue(), [Highlight((), "")])
    with pytest.raises(InvalidInput, match="signed"):
        parser.highlighted(_SIGNED, [Highlight((), "")])
    with pytest.raises(UnsupportedType, match="PDF"):
        parser.highlighted(b"plain words", [Highlight((PageText(1, "p", 0, 1),), "")])


def test_boxes_of_something_without_pages_are_refused(parser: Parser) -> None:
    with pytest.raises(UnsupportedType, match="PDF"):
        parser.page_boxes(b"plain words", [PageText(1, "plain words", 0, 5)])
    with pytest.raises(Unreadable, match="page"):
        parser.page_boxes(files.make_pdf(), [PageText(9, "x", 0, 1)])
