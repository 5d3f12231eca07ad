"""Mail: headers are decoded, one body is read, quotes are quotes, attachments follow under their names."""

from __future__ import annotations

import base64
from email.message import EmailMessage

import pytest

from app.core.errors import Encrypted
from app.core.types import ParsedDocument
from app.ingest.metadata import describe
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from tests.fakes import files


def read(content: bytes, name: str = "mail.eml") -> ParsedDocument:
    return DirectParser(IngestOptions()).parse(content, name)


def kinds(parsed: ParsedDocument) -> list[tuple[str, str]]:
    return [(kind, parsed.text[start:end]) for kind, start, end in parsed.blocks]


def mail(body: str = "The pier is open.", subject: str = "Pier") -> EmailMessage:
    message = EmailMessage()
    message["From"] = '"Holt, Samir" <samir@example.org>'
    message["To"] = "Dora Pell <dora@example.org>"
    message["Date"] = "Wed, 12 Feb 2025 09:15:00 +0100"
    message["Subject"] = subject
    message.set_content(body)
    return message


def test_headers_are_decoded_and_one_body_is_read() -> None:
    message = mail("Im Lager in Lübeck stehen 1240 Paletten.\n", "Grüße vom Lager")
    message.add_alternative(
        "<p>Im Lager in <b>Lübeck</b> stehen 1240 Paletten.</p>", subtype="html"
    )
    parsed = read(message.as_bytes())
    assert parsed.text == (
        "Grüße vom Lager\n\n"
        'From: "Holt, Samir" <samir@example.org>\n'
        "To: Dora Pell <dora@example.org>\n"
        "Date: Wed, 12 Feb 2025 09:15:00 +0100\n\n"
        "Im Lager in Lübeck stehen 1240 Paletten."
    )
    facts = describe(parsed, "mail.eml")
    assert (facts.title, facts.authors, facts.year) == ("Grüße vom Lager", ("Holt, Samir",), 2025)
    assert parsed.warnings == ()


def test_a_plain_form_that_only_names_the_other_gives_way_to_it() -> None:
    message = mail("This message is in HTML. Open it in another program.\n", "Booking")
    message.add_alternative("<p>Your cabin is <b>number 14</b> on the upper deck.</p>", "html")
    assert read(message.as_bytes()).text.endswith("Your cabin is number 14 on the upper deck.")


def test_bytes_beyond_ascii_in_a_header_are_read() -> None:
    parsed = read("From: Jörg <j@example.org>\nSubject: Grüße\n\nHallo.".encode())
    assert parsed.text.startswith("Grüße\n\nFrom: Jörg <j@example.org>")


def test_html_alone_is_read_as_a_page() -> None:
    message = mail()
    message.set_content(
        "<h2>Tides</h2><table><tr><th>Pier</th><th>Depth</th></tr><tr><td>East</td><td>4 m</td></tr>"
        "</table><blockquote>As you said.</blockquote>",
        subtype="html",
    )
    parsed = read(message.as_bytes())
    assert "Pier: East | Depth: 4 m" in parsed.text
    assert ("quote", "As you said.") in kinds(parsed)
    assert [(one.level, one.title) for one in parsed.headings] == [(1, "Pier"), (3, "Tides")]


def test_lines_of_a_paragraph_flow_and_quoted_replies_are_quotes() -> None:
    body = (
        "the hall is ours from Thursday on, and the key lies with the\n"
        "warden. We bring:\n\n- a projector\n- two\n\n"
        "On Tue, Dora wrote:\n"
        "> the budget is 7,500 in all, of which we have to give back the\n"
        "> 5,000 by August.\n"
        ">\n> > Can we pay the deposit?\n\n-- \nSamir\nHarbour office\n"
    )
    parsed = read(mail(body).as_bytes())
    assert "key lies with the warden. We bring:\n\n- a projector\n- two\n\nOn Tue" in parsed.text
    assert [pair for pair in kinds(parsed) if pair[0] == "quote"] == [
        ("quote", "the budget is 7,500 in all, of which we have to give back the 5,000 by August."),
        ("quote", "Can we pay the deposit?"),
    ]
    assert parsed.text.endswith("--\nSamir\nHarbour office")


def test_attachments_follow_under_their_names_and_others_are_named() -> None:
    message = mail()
    message.add_attachment(
        files.make_docx(), maintype="application", subtype="msword", filename="tides.docx"
    )
    message.add_attachment(
        b"\x89PNG" + bytes(99), maintype="image", subtype="png", filename="pier.png"
    )
    message.add_attachment(
        b"PK\x03\x04" + bytes(99), maintype="application", subtype="zip", filename="a.zip"
    )
    message.add_attachment(mail("The lock is shut.", "Lock"))
    parsed = read(message.as_bytes())
    own = DirectParser(IngestOptions()).parse(files.make_docx(), "tides.docx")
    at = parsed.text.index(own.text)
    assert parsed.text[:at].endswith("The pier is open.\n\nAttachment: tides.docx\n\n")
    assert [one.title for one in parsed.headings if one.level <= 2] == [
        "Pier",
        "Attachment: tides.docx",
        "Attached message: Lock",
    ]
    assert all(
        parsed.text[one.start : one.end].split() == one.title.split() for one in parsed.headings
    )
    assert [(a.start + at, a.end + at, a.level + 2) for a in own.headings] == [
        (one.start, one.end, one.level) for one in parsed.headings if one.level > 2
    ]
    assert parsed.text.endswith("The lock is shut.")
    assert parsed.warnings == (
        "not read: 'pier.png' (image/png), 'a.zip' is a damaged ZIP container",
    )


def test_base64_never_stands_in_the_text_and_encrypted_mail_is_named() -> None:
    broken = (
        b"Subject: x\nContent-Transfer-Encoding: base64\n\n" + base64.b64encode(b"words " * 30)[:-3]
    )
    parsed = read(broken)
    assert "d29yZHM" not in parsed.text
    assert parsed.warnings == ("not read: a part of the text (its base64 is damaged)",)
    with pytest.raises(Encrypted, match="save its text"):
        read(b"Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nabc")


def test_each_message_of_a_mailbox_is_a_section() -> None:
    one, two = mail("From here on we row.\nEnd."), mail("The lock is shut.", "Lock")
    box = b"".join(
        b"From samir Wed Feb 12 09:15:00 2025\n"
        + part.as_bytes(unixfrom=False).replace(b"\nFrom here", b"\n>From here")
        + b"\n"
        for part in (one, two)
    )
    parsed = read(box, "all.mbox")
    assert [one.title for one in parsed.headings] == [
        "Pier, Wed, 12 Feb 2025 09:15:00 +0100",
        "Lock, Wed, 12 Feb 2025 09:15:00 +0100",
    ]
    assert "\n\nFrom here on we row.\nEnd.\n\nLock," in parsed.text


def test_the_page_of_a_web_archive_is_read_in_its_encoding() -> None:
    def archive(charset: bytes, page: bytes) -> bytes:
        return (
            b"From: <Saved by Blink>\nSubject: =?utf-8?Q?S=C3=B8by?=\nMIME-Version: 1.0\n"
            b'Content-Type: multipart/related; type="text/html"; boundary="--B"\n\n----B\n'
            b"Content-Type: image/png\nContent-Transfer-Encoding: base64\n\naaaa\n----B\n"
            b"Content-Type: text/html"
            + charset
            + b"\nContent-Transfer-Encoding: quoted-printable\n\n"
            + page
            + b"\n----B--\n"
        )

    for charset, page in (
        (b"", b"<p>The lighthouse of S=C3=B8by is 22 metres high.</p>"),
        (b"; charset=windows-1252", b"<p>The lighthouse of S=F8by is 22 metres high.</p>"),
        (b"", b"<meta charset=3Diso-8859-1><p>The lighthouse of S=F8by is 22 metres high.</p>"),
    ):
        parsed = read(archive(charset, page), "page.mhtml")
        assert parsed.text == "The lighthouse of Søby is 22 metres high."
        assert parsed.title == "Søby"
