"""Messages of Outlook are read as mail is: who wrote when to whom, one body, what is attached."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from app.core.errors import Encrypted, Unreadable
from app.core.types import ParsedDocument
from app.ingest.metadata import describe
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.parsers.sniffing import identify
from tests.fakes import files
from tests.fakes.compound import (
    Properties,
    Tree,
    attached_message,
    attachment,
    make_compound,
    make_msg,
)
from tests.unit.ingest.test_mail import mail
from tests.unit.ingest.test_mail import read as read_mail

SUBJECT, SENDER, SENDER_REACHED = 0x0037001F, 0x0C1A001F, 0x5D01001F
SENT, HEADERS, CLASS = 0x00390040, 0x007D001F, 0x001A001F
PLAIN, HTML, RTF = 0x1000001F, 0x10130102, 0x10090102
NAME, REACHED, EXCHANGE, KIND = 0x3001001F, 0x39FE001F, 0x3003001F, 0x0C150003
DATA, LONG_NAME, MIME = 0x37010102, 0x3707001F, 0x370E001F
MESSAGE: Mapping[int, str | bytes | int | datetime] = {
    SUBJECT: "Grüße vom Lager",
    SENDER: "Holt, Samir",
    SENDER_REACHED: "samir@example.org",
    SENT: datetime(2025, 2, 12, 8, 15, tzinfo=UTC),
    PLAIN: "Im Lager in Lübeck stehen 1240 Paletten.\r\n",
}
PEOPLE: list[Properties] = [
    {NAME: "Dora Pell", REACHED: "dora@example.org", EXCHANGE: "/o=Port/cn=dora", KIND: 1},
    {NAME: "'kim@example.org'", EXCHANGE: "kim@example.org", KIND: 1},
    {NAME: "Harbour office", EXCHANGE: "/o=Port/cn=office", KIND: 2},
]


def read(content: bytes, name: str = "mail.msg") -> ParsedDocument:
    return DirectParser(IngestOptions()).parse(content, name)


def body(parsed: ParsedDocument) -> str:
    return parsed.text.partition("+0000\n\n")[2]


def test_a_message_reads_as_the_same_mail_does() -> None:
    content = make_msg(MESSAGE, PEOPLE)
    parsed = read(content)
    assert identify(content, "mail") == "msg"
    assert parsed.text == (
        "Grüße vom Lager\n\n"
        'From: "Holt, Samir" <samir@example.org>\n'
        "To: Dora Pell <dora@example.org>, kim@example.org\n"
        "Cc: Harbour office\n"
        "Date: Wed, 12 Feb 2025 08:15:00 +0000\n\n"
        "Im Lager in Lübeck stehen 1240 Paletten."
    )
    facts = describe(parsed, "mail.msg")
    assert (facts.title, facts.authors, facts.year) == ("Grüße vom Lager", ("Holt, Samir",), 2025)
    assert parsed.warnings == ()
    message = mail("Im Lager in Lübeck stehen 1240 Paletten.\n", "Grüße vom Lager")
    message.replace_header("To", "Dora Pell <dora@example.org>, kim@example.org")
    message["Cc"] = "Harbour office"
    message.replace_header("Date", "Wed, 12 Feb 2025 08:15:00 +0000")
    same = read_mail(message.as_bytes())
    assert (parsed.blocks, parsed.headings) == (same.blocks, same.headings)


def test_the_headers_of_its_way_win_and_names_stand_in_for_recipients() -> None:
    headers = "Date: Wed, 12 Feb 2025 09:15:00 +0100\r\nFrom: S. Holt <s@example.org>\r\n\r\n"
    parsed = read(make_msg({**MESSAGE, HEADERS: headers, 0x0E04001F: "Dora Pell; Kim"}))
    assert "From: S. Holt <s@example.org>\nTo: Dora Pell; Kim\n" in parsed.text
    assert "Date: Wed, 12 Feb 2025 09:15:00 +0100" in parsed.text


def test_strings_of_a_code_page_are_read() -> None:
    page: Properties = {0x3FFD0003: 1251, 0x0037001E: "Весть".encode("cp1251")}
    parsed = read(make_msg({**page, 0x1000001E: "Ждём 4 лодки.\0".encode("cp1251")}))
    assert parsed.text == "Весть\n\nЖдём 4 лодки."


def test_html_is_read_where_there_is_no_plain_text_that_says_as_much() -> None:
    page = "<p>Søby: the <b>pier</b> is open from 1 May to 9 September.</p>".encode("cp1252")
    without = {tag: value for tag, value in MESSAGE.items() if tag != PLAIN}
    for more in ({}, {PLAIN: "Open it in another program."}):
        parsed = read(make_msg({**without, **more, HTML: page, 0x3FDE0003: 1252}))
        assert body(parsed) == "Søby: the pier is open from 1 May to 9 September."
    assert body(read(make_msg({**MESSAGE, HTML: b"<p>Im Lager in L&uuml;beck</p>"}))) == (
        "Im Lager in Lübeck stehen 1240 Paletten."
    )


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (  # [MS-OXRTFCP], section 4.1.1
            "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c0900206277"
            "05b06c647d0a800fa0",
            "hello world",
        ),
        (  # section 4.1.2: a reference into what it writes itself
            "1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0",
            "WXYZWXYZWXYZWXYZWXYZ",
        ),
        ((struct.pack("<II4sI", 29, 17, b"MELA", 0) + rb"{\rtf1 The pier.}").hex(), "The pier."),
    ],
)
def test_compressed_rich_text_is_read_where_there_is_nothing_else(packed: str, text: str) -> None:
    parsed = read(make_msg({SUBJECT: "Pier", RTF: bytes.fromhex(packed)}))
    assert parsed.text == f"Pier\n\n{text}"


def test_attached_files_and_messages_follow_and_others_are_named() -> None:
    deepest = attached_message({SUBJECT: "Key", PLAIN: "It lies with the warden."})
    content = make_msg(
        MESSAGE,
        PEOPLE,
        [
            attachment({DATA: files.make_docx(), LONG_NAME: "tides.docx"}),
            attachment({DATA: b"\x89PNG" + bytes(99), LONG_NAME: "pier.png", MIME: "image/png"}),
            attached_message({SUBJECT: "Lock", PLAIN: "The lock is shut."}, (), [deepest]),
            attachment({LONG_NAME: "plan.xls", 0x37050003: 2}),
        ],
    )
    parsed = read(content)
    titles = [(one.level, one.title) for one in parsed.headings if "ttach" in one.title]
    assert titles == [
        (2, "Attachment: tides.docx"),
        (2, "Attached message: Lock"),
        (3, "Attached message: Key"),
    ]
    own = DirectParser(IngestOptions()).parse(files.make_docx(), "tides.docx")
    assert f"Attachment: tides.docx\n\n{own.text}\n\nAttached message: Lock" in parsed.text
    assert parsed.text.endswith(
        "The lock is shut.\n\nAttached message: Key\n\nIt lies with the warden."
    )
    assert parsed.warnings == (
        "not read: 'plan.xls' (it lies elsewhere, or within another program's object),"
        " 'pier.png' (image/png)",
    )


def test_a_message_in_a_mail_and_a_signed_one_are_read() -> None:
    outer = mail()
    outer.add_attachment(
        make_msg({SUBJECT: "Lock", PLAIN: "The lock is shut."}),
        maintype="application",
        subtype="vnd.ms-outlook",
        filename="lock.msg",
    )
    assert read_mail(outer.as_bytes()).text.endswith(
        "Attachment: lock.msg\n\nLock\n\nThe lock is shut."
    )
    signed = (
        b'Content-Type: multipart/signed; boundary="B"\n\n--B\nContent-Type: text/plain\n\n'
        b"The pier is open.\n--B\nContent-Type: application/pkcs7-signature\n\nabc\n--B--\n"
    )
    part = attachment({DATA: signed, LONG_NAME: "smime.p7m", MIME: "multipart/signed"})
    kind = {CLASS: "IPM.Note.SMIME.MultipartSigned", SUBJECT: "Pier"}
    assert read(make_msg(kind, (), [part])).text == "Pier\n\nThe pier is open."
    with pytest.raises(Encrypted, match="save its text"):
        read(make_msg({CLASS: "IPM.Note.SMIME", SUBJECT: "Pier"}, (), [part]))


def test_what_is_attached_does_not_tell_the_format() -> None:
    office = {"WordDocument": b"x" * 5000, "EncryptedPackage": b"x"}
    old = attachment({DATA: make_compound(office), LONG_NAME: "old.doc"})
    parsed = read(make_msg(MESSAGE, (), [old]))
    assert parsed.media_type == "application/vnd.ms-outlook"
    assert parsed.warnings == ("not read: 'old.doc' is protected by a password",)
    message = {"__properties_version1.0": bytes(32)}
    book: Tree = {"Workbook": b"x" * 5000, "MBD0001": message}
    assert identify(make_compound(book), "a.xls") == "xls"


def test_hostile_messages_end_in_a_clear_error() -> None:
    content = make_msg(MESSAGE, PEOPLE)
    entry = content.index("__substg1.0_1000001F".encode("utf-16-le"))

    def with_bytes(at: int, new: bytes) -> bytes:
        return content[:at] + new + content[at + len(new) :]

    for damaged in (
        content[:-600],
        with_bytes(44, struct.pack("<I", 1 << 20)),  # more tables than bytes
        with_bytes(entry + 120, struct.pack("<I", 1 << 31)),  # a stream longer than the file
    ):
        with pytest.raises(Unreadable, match="damaged message of Outlook"):
            read(damaged)


def test_streams_that_share_their_bytes_do_not_make_a_small_file_a_long_text() -> None:
    page, short = b"<p>The pier is open.</p>" * 3_000, b"The pier is open. " * 300
    small: Properties = {DATA: short, LONG_NAME: "a.txt"}
    content = bytearray(make_msg({**MESSAGE, HTML: page}, (), [attachment(small)] * 4))
    long = content.index("__substg1.0_10130102".encode("utf-16-le"))
    name = "__substg1.0_37010102".encode("utf-16-le")
    at = content.index(name)
    while at >= 0:  # start and size are those of the page
        content[at + 116 : at + 124] = content[long + 116 : long + 124]
        at = content.find(name, at + 1)
    with pytest.raises(Unreadable, match="damaged"):
        read(bytes(content))


def test_messages_attached_too_deep_are_named() -> None:
    tree = attached_message({SUBJECT: "Last", PLAIN: "The end."})
    for _ in range(11):
        tree = attached_message({SUBJECT: "Next", PLAIN: "More."}, (), [tree])
    parsed = read(make_msg(MESSAGE, (), [tree]))
    assert parsed.text.count("Attached message: Next\n\nMore.") == 10
    assert parsed.warnings == ("not read: messages attached more than 10 deep",)
