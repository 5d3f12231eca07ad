"""Hostile mails: parts without end or bottom, headers that take the square of their length."""

from __future__ import annotations

from tests.fakes.compound import attachment, make_msg
from tests.fakes.hostile.model import WORDS, HostileFile, hostile

_HEAD = b"From: a@b.example\nSubject: tides\nMIME-Version: 1.0\n"
_TEXT = b"Content-Type: text/plain\n\n" + WORDS.encode() + b"\n"


def _mixed(depth: int) -> bytes:
    opened = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(depth)
    )
    return _HEAD + opened + _TEXT


def _attached(depth: int, kind: bytes) -> bytes:
    inner = _HEAD + _TEXT
    for _ in range(depth):
        inner = _HEAD + b"Content-Type: " + kind + b"\n\n" + inner
    return inner


def _header(header: bytes) -> bytes:
    return header + b"\n" + _TEXT


def _outlook(depth: int) -> bytes:
    """Return messages attached to one another as files."""
    message = make_msg({0x1000001F: WORDS})
    for _ in range(depth):
        message = make_msg({0x1000001F: "."}, (), [attachment({0x37010102: message})])
    return message


def _more_tables_than_bytes() -> bytes:
    message = _outlook(0)
    return message[:44] + b"\xff\xff\xff\x7f" + message[48:]


MAILS: tuple[HostileFile, ...] = (
    hostile("outlook-in-outlook.msg", lambda: _outlook(60), "indexed", "unreadable"),
    hostile("more-tables-than-bytes.msg", _more_tables_than_bytes, "unreadable"),
    hostile("twenty-thousand-deep.eml", lambda: _mixed(20_000), "unreadable"),
    hostile("five-hundred-deep.eml", lambda: _mixed(500), "indexed", "unreadable"),
    hostile(
        "messages-in-messages.eml",
        lambda: _attached(300, b"message/rfc822"),
        "indexed",
        "unreadable",
    ),
    hostile(
        "files-in-files.eml",
        lambda: _attached(300, b'application/octet-stream; name="a.eml"'),
        "indexed",
    ),
    hostile(
        "mailboxes-in-mailboxes.mbox",
        lambda: (
            b"From a Mon Jan  1 00:00:00 2024\n"
            + _attached(50, b'application/octet-stream; name="a.eml"')
        ),
        "indexed",
    ),
    hostile(
        "thousands-of-parts.eml",
        lambda: (
            _HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n" + (b"--b\n" + _TEXT) * 5_000
        ),
        "indexed",
    ),
    hostile(
        "a-million-parts.eml",
        lambda: _HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n" * 1_000_000,
        "too_large",
    ),
    hostile(
        "parameters.eml",
        lambda: _header(b"Content-Type: text/plain" + b'; a*0="b"' * 90_000),
        "indexed",
    ),
    hostile("comments.eml", lambda: _header(b"From: " + b"(" * 900_000), "indexed"),
    hostile("addresses.eml", lambda: _header(b"To: " + b"<a@b," * 300_000), "indexed"),
    hostile("words.eml", lambda: _header(b"Subject: " + b"=?utf-8?q?a?= " * 90_000), "indexed"),
    hostile(
        "no-encoding.eml",
        lambda: _header(b"Subject: =?x-none?b?////?= =?utf-8?b?/?= \xff\xfe"),
        "indexed",
    ),
    hostile("quote-marks.eml", lambda: _HEAD + b"\n" + b">" * 900_000 + WORDS.encode(), "indexed"),
    hostile(
        "half-base64.eml",
        lambda: _HEAD + b"Content-Transfer-Encoding: base64\n\n" + b"A" * 8_001,
        "indexed",
    ),
    hostile(
        "climbing.eml",
        lambda: (
            _HEAD
            + b'Content-Disposition: attachment; filename="../../tmp/documind-escaped"\n\n'
            + WORDS.encode()
        ),
        "indexed",
    ),
    hostile("no-message.mbox", WORDS.encode, "unreadable"),
    hostile("too-many.mbox", lambda: b"From a Mon Jan  1 00:00:00 2024\n\n" * 20_000, "too_large"),
    hostile("no-page.mhtml", lambda: _HEAD + _TEXT, "unreadable"),
)
