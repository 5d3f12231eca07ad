"""Calendars, contact cards, Org, presentations and drawings of OpenDocument, and what is named."""

from __future__ import annotations

import io
import zipfile

import pytest

from app.core.errors import Encrypted, UnsupportedType
from app.core.types import ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.parsers.office import in_reading_order


def _read(content: str | bytes, filename: str) -> ParsedDocument:
    data = content.encode() if isinstance(content, str) else content
    return DirectParser(IngestOptions()).parse(data, filename)


CALENDAR = """BEGIN:VCALENDAR\r
VERSION:2.0\r
X-WR-CALNAME:Yard\r
BEGIN:VTIMEZONE\r
TZID:Europe/Oslo\r
END:VTIMEZONE\r
BEGIN:VEVENT\r
UID:1\r
SUMMARY:Inspection of the crane\r
DTSTART;TZID=Europe/Oslo:20260614T090000\r
DTEND;VALUE=DATE:20260615\r
DUE:20260614T070000Z\r
LOCATION:Quay 3\\, north end\r
DESCRIPTION:Bring the log\r
  book\\nof the crane.\r
ORGANIZER;CN=Siv Moe:mailto:siv@senn.example\r
BEGIN:VALARM\r
TRIGGER:-PT15M\r
END:VALARM\r
END:VEVENT\r
END:VCALENDAR\r
"""


def test_a_calendar_is_read_entry_by_entry() -> None:
    parsed = _read(CALENDAR, "crane.ics")
    assert parsed.title == "Yard"
    assert parsed.text == (
        "Inspection of the crane\n\nStart: 2026-06-14 09:00 (Europe/Oslo)\nEnd: 2026-06-15\n"
        "Due: 2026-06-14 07:00 UTC\nLocation: Quay 3, north end\n"
        "Description: Bring the log book of the crane.\nOrganizer: siv@senn.example"
    )


CARDS = """BEGIN:VCARD
VERSION:3.0
N:Moe;Siv;;;
FN:Siv Moe
ORG:Senn Yard;Cranes
TEL;TYPE=WORK,VOICE:+47 22 85 37 00
item1.EMAIL;type=INTERNET:siv@senn.example
ADR;TYPE=home:;;Quay 3;Senn;;4410;Norway
BDAY:1971-03-14
PHOTO;ENCODING=b:AAAA
END:VCARD
BEGIN:VCARD
VERSION:2.1
FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Ola V=C3=
=ADk
TEL;CELL:4416
END:VCARD
"""


def test_contact_cards_keep_their_labels() -> None:
    assert _read(CARDS, "people.vcf").text == (
        "Siv Moe\n\nOrganisation: Senn Yard, Cranes\nTelephone (work, voice): +47 22 85 37 00\n"
        "E-mail (internet): siv@senn.example\nAddress (home): Quay 3, Senn, 4410, Norway\n"
        "Birthday: 1971-03-14\n\nOla V\u00edk\n\nTelephone (cell): 4416"
    )


ORG = """#+TITLE: Yard notes
#+AUTHOR: Siv Moe
# a comment
* TODO Order rope :buy:
  DEADLINE: <2025-05-12 Mon> SCHEDULED: <2025-05-01 Thu>
  :PROPERTIES:
  :SUPPLIER: Nordal
  :END:
  Forty metres of the *thick* kind, see [[https://x.example][the shop]],
  or [[rope]] by <2025-06-01>.
** Stock
| Part | Stock |
|------+-------|
| Bolt | 410 |
- oak :: 3 tonnes
- =key= in the box
  1. first
#+BEGIN_SRC sh
ls *a* | wc
#+END_SRC
"""


def test_org_keeps_labels_dates_and_tables() -> None:
    parsed = _read(ORG, "yard.org")
    assert (parsed.title, parsed.authors) == ("Yard notes", ("Siv Moe",))
    assert [(one.level, one.title) for one in parsed.headings] == [
        (1, "TODO Order rope"),
        (2, "Stock"),
    ]
    assert parsed.text == (
        "TODO Order rope\n\nDeadline: 2025-05-12 Mon\nScheduled: 2025-05-01 Thu\n"
        "Supplier: Nordal\n\nForty metres of the thick kind, see the shop,\nor rope by 2025-06-01."
        "\n\nStock\n\nPart | Stock\nPart: Bolt | Stock: 410\n\noak: 3 tonnes\n\n- key in the box\n"
        "  1. first\n\nls *a* | wc"
    )


_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{of}:1.0"'
    for name, of in (
        *((one, one) for one in "office text table style presentation meta".split()),
        *(("draw", "drawing"), ("svg", "svg-compatible")),
    )
)


def _box(text: str, x: int, y: int, kind: str = "") -> str:
    said = f' presentation:class="{kind}"' if kind else ""
    return (
        f'<draw:frame{said} svg:x="{x}cm" svg:y="{y}cm" svg:width="4cm" svg:height="1cm">'
        f"<draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"
    )


PAGE = (
    _box("Step 2", 1, 5)
    + _box("Step 1", 1, 3)
    + _box("Beside", 8, 4)
    + _box("Emptying", 1, 1, "title")
    + '<draw:custom-shape svg:x="1cm" svg:y="8cm" svg:width="4cm" svg:height="1cm">'
    "<text:p>Shape</text:p></draw:custom-shape>"
    "<presentation:notes><draw:frame><draw:text-box><text:p>Say it.</text:p></draw:text-box>"
    "</draw:frame></presentation:notes>"
)


def _flat(kind: str, body: str, page: str) -> str:
    return (
        f'<?xml version="1.0"?>\n<office:document {_NAMES}'
        f' office:mimetype="application/vnd.oasis.opendocument.{kind}"><office:body>'
        f"<office:{body}>{page}</office:{body}></office:body></office:document>"
    )


def _zipped(kind: str, body: str, page: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        content = _flat(kind, body, page).replace("office:document ", "office:document-content ")
        archive.writestr(
            "content.xml", content.replace("office:document>", "office:document-content>")
        )
    return out.getvalue()


@pytest.mark.parametrize("made", [_flat, _zipped])
@pytest.mark.parametrize(
    ("kind", "body"), [("presentation", "presentation"), ("graphics", "drawing")]
)
def test_pages_of_opendocument(made: object, kind: str, body: str) -> None:
    page = f'<draw:page draw:name="p1">{PAGE}</draw:page>'
    parsed = _read(made(kind, body, page), f"lock.{kind[:3]}")  # type: ignore[operator]
    assert parsed.text == "Emptying\n\nStep 1\n\nStep 2\n\nShape\n\nBeside\n\nNotes: Say it."
    assert [page.number for page in parsed.pages] == [1]


def test_a_flat_text_is_read() -> None:
    source = _flat("text", "text", "<text:h>Eels</text:h><text:p>In September.</text:p>")
    assert _read(source, "eels.fodt").text == "Eels\n\nIn September."
    assert _read(source, "eels.xml").media_type.endswith("opendocument.text")


def test_shapes_are_read_by_columns_below_a_banner() -> None:
    places = {
        "right 2": (6, 4, 9, 5), "left 2": (1, 4.2, 4, 5), "banner": (1, 0, 9, 1),
        "left 1": (1, 2, 4, 3), "right 1": (6, 2.2, 9, 3),
    }  # fmt: skip
    assert in_reading_order(list(places.items())) == [
        "banner", "left 1", "left 2", "right 1", "right 2"
    ]  # fmt: skip
    assert in_reading_order([("b", (0, 9, 1, 10)), ("a", None)]) == ["b", "a"]


def _archive(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "filename", "said"),
    [
        (_archive("Index/Document.iwa"), "talk.key", "a presentation of Keynote; save it as PPTX"),
        (_archive("Index/Document.iwa"), "letter.pages", "a document of Pages; save it as DOCX"),
        (_archive("Index.zip"), "sums.numbers", "a workbook of Numbers; save it as XLSX"),
        (_archive("Index/Document.iwa"), "x.bin", "Keynote, Pages or Numbers; save it as PDF"),
        (_archive("FixedDocSeq.fdseq"), "bill.xps", "an XPS document; save it as PDF"),
        (_archive("a.txt"), "a.zip", "a ZIP archive; unpack it"),
    ],
)
def test_containers_of_other_programs_are_named(content: bytes, filename: str, said: str) -> None:
    with pytest.raises(UnsupportedType, match=said):
        _read(content, filename)


def test_an_archive_with_a_password_is_named() -> None:
    content = bytearray(_archive("xl/workbook.xml"))
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + at] |= 1
    with pytest.raises(Encrypted, match="password"):
        _read(bytes(content), "wages.xlsx")
