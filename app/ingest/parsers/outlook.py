"""Read messages of Outlook (MSG): streams of a compound file, by olefile, as a mail message.

[MS-OXMSG] says where each property lies, [MS-OXPROPS] what its number means.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.message import Message as AnyMessage
from email.utils import format_datetime

from app.core.errors import InputError, Unreadable
from app.core.types import ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers.mail import (
    DEEPEST,
    FIELDS,
    LONGEST_HEADER,
    MOST_PARTS,
    Message,
    header,
    message_of,
    parse_message,
)
from app.ingest.parsers.sniffing import DAMAGES, compound_file, decode

Path = tuple[str, ...]
"""Of a stream or storage, in lower case, as olefile compares them."""

# Numbers of properties.
_CLASS, _SUBJECT, _SUBJECT_PREFIX, _SUBJECT_REST = 0x001A, 0x0037, 0x003D, 0x0E1D
_HEADERS, _SENT, _DELIVERED = 0x007D, 0x0039, 0x0E06
_WRITERS = ((0x0042, 0x5D02, 0x0065), (0x0C1A, 0x5D01, 0x0C1F))
"""Name, Internet address and other address: of whom it is from, and of who sent it for them."""
_RECIPIENT = 0x3001, 0x39FE, 0x3003
_RECIPIENT_KIND, _SHOWN = 0x0C15, {"To": (1, 0x0E04), "Cc": (2, 0x0E03)}
"""The kind of a recipient by header, and the property that names all of the kind."""
_PLAIN, _HTML, _RTF = 0x1000, 0x1013, 0x1009
_CODE_PAGES = 0x3FFD, 0x3FDE
"""Of the message's strings, and of its HTML."""
_DATA, _METHOD, _MIME, _NAMES = 0x3701, 0x3705, 0x370E, (0x3707, 0x3704, 0x3001)

_HEAD, _HEAD_INSIDE, _HEAD_OF_PART = 32, 24, 8
"""Bytes before the properties of a message, one within another, and of what else it holds."""
_INTEGER, _TIME, _TEXT, _BYTES_TEXT, _BINARY, _OBJECT = 0x0003, 0x0040, 0x001F, 0x001E, 0x0102, 0xD
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_LABELS = {
    932: "shift_jis",
    936: "gbk",
    949: "euc-kr",
    950: "big5",
    874: "windows-874",
    **{page: f"windows-{page}" for page in range(1250, 1259)},
    **{28590 + part: f"iso-8859-{part}" for part in range(1, 17)},
    20127: "us-ascii",
    20866: "koi8-r",
    21866: "koi8-u",
    866: "ibm866",
    54936: "gb18030",
    50220: "iso-2022-jp",
    51932: "euc-jp",
    51949: "euc-kr",
    65001: "utf-8",
}
"""Encodings by the number that Windows gives their code page."""
_RTF_BEGINS = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript "
    rb"\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
"""What compressed text may refer to before it has any itself ([MS-OXRTFCP], section 2.1.2.1)."""
_PACKED = b"LZFu"
_WINDOW = 4096
_PROPERTIES = "__properties_version1.0"


def parse_msg(content: bytes, filename: str, options: IngestOptions) -> ParsedDocument:
    """Return a message of Outlook, read as an EML is.

    Raises:
        Encrypted: Its content is encrypted.
        Unreadable: It is damaged, or its parts lie too deep within one another.
    """
    try:
        message, unread = _File(content).message((), 1)
    except DAMAGES as exc:
        raise Unreadable(
            f"{filename!r} is a damaged message of Outlook; save it again, or save it as EML"
        ) from exc
    except RecursionError as exc:
        raise Unreadable(
            f"{filename!r} is nested too deeply; save the message that you need as a file and send"
            " that"
        ) from exc
    return parse_message(message, "msg", filename, options, unread)


class _File:
    """The streams of a compound file; all of them together are no longer than the file."""

    def __init__(self, content: bytes) -> None:
        self._file = compound_file(content)
        self._left = len(content)
        self._inside: dict[Path, list[str]] = defaultdict(list)
        for path in self._file.listdir(streams=True, storages=True):
            *above, name = (part.lower() for part in path)
            self._inside[tuple(above)].append(name)

    def inside(self, path: Path, begins: str) -> list[Path]:
        """Return what lies in a storage under names that begin so, in their order."""
        names = sorted(name for name in self._inside.get(path, ()) if name.startswith(begins))
        return [(*path, name) for name in names]

    def has(self, path: Path) -> bool:
        return path[-1] in self._inside.get(path[:-1], ())

    def read(self, path: Path) -> bytes:
        """Return a stream, empty where there is none; each is read once.

        Raises:
            ValueError: Streams share their bytes.
        """
        if not self.has(path):
            return b""
        self._left -= self._file.get_size(list(path))
        if self._left < 0:
            raise ValueError("streams lie over one another")
        return bytes(self._file.openstream(list(path)).read())

    def message(self, path: Path, depth: int) -> tuple[Message, list[str]]:
        """Return the message in a storage, and what of it is not read."""
        own = _Properties(self, path, _HEAD_INSIDE if path else _HEAD)
        if not path and not own.known:
            raise ValueError("no properties")
        message: Message = AnyMessage()
        for name, value in own.headers():
            message[name] = value[:LONGEST_HEADER]
        kind = own.text(_CLASS).lower()
        if kind.startswith("ipm.note.smime") and not kind.endswith("multipartsigned"):
            message.add_header(
                "Content-Type", "application/pkcs7-mime", smime_type="enveloped-data"
            )
            return message, []
        if depth > DEEPEST + 1:  # named as not read
            return message, []
        parts: list[Message] = []
        forms = [form for form in (own.body(_PLAIN, "plain"), own.body(_HTML, "html")) if form]
        if not forms and (packed := own.content(_RTF)):
            forms = [_part("text/rtf", _unpacked(packed))]
        if len(forms) > 1:
            parts.append(_holder("multipart/alternative", forms))
        else:
            parts += forms
        unread: list[str] = []
        attached = self.inside(path, "__attach_version1.0_#")
        for at in attached[:MOST_PARTS]:
            part, lost = self._attachment(at, depth, own)
            parts += [part] if part is not None else []
            unread += lost
        if len(attached) > MOST_PARTS:
            unread.append(f"attachments behind the first {MOST_PARTS:,}")
        _hold(message, "multipart/mixed", parts)
        return message, unread

    def _attachment(
        self, path: Path, depth: int, message: _Properties
    ) -> tuple[Message | None, list[str]]:
        own = _Properties(self, path, _HEAD_OF_PART, message.code_page)
        named = next(filter(None, map(own.text, _NAMES)), "unnamed")
        inside = (*path, _stream(_DATA, _OBJECT))
        if self.has((*inside, _PROPERTIES)):
            found, unread = self.message(inside, depth + 1)
            return _holder("message/rfc822", [found]), unread
        mime = own.text(_MIME).lower()
        content = own.content(_DATA)
        if not content:
            return None, [f"{named!r} (it lies elsewhere, or within another program's object)"]
        if mime == "multipart/signed":  # the message itself, as it was sent
            return message_of(content, named), []
        is_shown = mime.startswith(("image/", "audio/", "video/"))
        part = _part(mime if is_shown else "application/octet-stream", content)
        part.add_header("Content-Disposition", "attachment", filename=named)
        return part, []


def _stream(number: int, kind: int) -> str:
    return f"__substg1.0_{number:04x}{kind:04x}"


class _Properties:
    """The properties of a message, an attachment or a recipient."""

    def __init__(self, file: _File, path: Path, head: int, code_page: int = 0) -> None:
        self._file, self._path = file, path
        listed = file.read((*path, _PROPERTIES))[head:]
        whole = len(listed) - len(listed) % 16
        self.known = {tag: value for tag, _, value in struct.iter_unpack("<II8s", listed[:whole])}
        self._page, self._html_page = (self.number(one) or code_page for one in _CODE_PAGES)
        self.code_page = self._page or self._html_page

    def number(self, number: int) -> int:
        """Return an integer, 0 where there is none."""
        return int.from_bytes(self.known.get(number << 16 | _INTEGER, b"")[:4], "little")

    def content(self, number: int) -> bytes:
        return self._file.read((*self._path, _stream(number, _BINARY)))

    def text(self, number: int) -> str:
        """Return a string, empty where there is none."""
        wide = self._file.read((*self._path, _stream(number, _TEXT)))
        if wide:
            return wide.decode("utf-16-le", "replace").strip("\0")
        if narrow := self._file.read((*self._path, _stream(number, _BYTES_TEXT))).strip(b"\0"):
            with suppress(InputError):  # binary data, no text
                return decode(narrow, _LABELS.get(self.code_page))[0]
        return ""

    def body(self, number: int, form: str) -> Message | None:
        """Return a form of the text as a part of a mail, None where it says nothing."""
        if content := self.content(number).strip(b"\0"):  # HTML as it was sent
            return _part(f"text/{form}", content, _LABELS.get(self._html_page))
        text = self.text(number)
        return _part(f"text/{form}", text.encode(), "utf-8") if text.strip() else None

    def headers(self) -> Iterator[tuple[str, str]]:
        """Yield subject, writer, recipients and date: as they were sent, else as stored."""
        subject = self.text(_SUBJECT) or self.text(_SUBJECT_PREFIX) + self.text(_SUBJECT_REST)
        yield "Subject", subject
        sent = message_of(self.text(_HEADERS).encode(), "headers")
        stored = {"From": self._writer(), **self._recipients(), "Date": self._date()}
        for name in FIELDS:
            yield name, header(sent, name) or stored[name]

    def address(self, name: int, internet: int, other: int) -> str:
        """Return a person as mail names one: `Dora Pell <dora@example.org>`."""
        shown = " ".join(self.text(name).split()).strip("'\"")
        reached = next((one for one in map(self.text, (internet, other)) if "@" in one), "").strip()
        if not shown or not reached or shown == reached:
            return shown or reached
        quoted = f'"{shown}"' if any(sign in shown for sign in ",;<>@") else shown
        return f"{quoted} <{reached}>"

    def _writer(self) -> str:
        return next(filter(None, (self.address(*one) for one in _WRITERS)), "")

    def _recipients(self) -> dict[str, str]:
        people: dict[int, list[str]] = defaultdict(list)
        for path in self._file.inside(self._path, "__recip_version1.0_#")[:MOST_PARTS]:
            one = _Properties(self._file, path, _HEAD_OF_PART, self.code_page)
            people[one.number(_RECIPIENT_KIND)].append(one.address(*_RECIPIENT))
        return {
            name: ", ".join(filter(None, people[kind])) or self.text(all_of_it)
            for name, (kind, all_of_it) in _SHOWN.items()
        }

    def _date(self) -> str:
        """Return when it was sent, else when it came, as mail writes it."""
        for number in (_SENT, _DELIVERED):
            ticks = int.from_bytes(self.known.get(number << 16 | _TIME, b""), "little")
            if ticks:
                return format_datetime(_EPOCH + timedelta(microseconds=ticks // 10))
        return ""


def _part(kind: str, content: bytes, charset: str | None = None) -> Message:
    part: Message = AnyMessage()
    part.add_header("Content-Type", kind, **({"charset": charset} if charset else {}))
    part.set_payload(content)
    return part


def _holder(kind: str, parts: list[Message]) -> Message:
    holder: Message = AnyMessage()
    _hold(holder, kind, parts)
    return holder


def _hold(message: Message, kind: str, parts: list[Message]) -> None:
    message["Content-Type"] = kind
    payload: list[Message | str] = [*parts]
    message.set_payload(payload)


def _unpacked(packed: bytes) -> bytes:
    """Return rich text that Outlook compressed ([MS-OXRTFCP]), as far as it goes."""
    _, size, kind = struct.unpack_from("<II4s", packed)
    if kind != _PACKED:
        return packed[16 : 16 + size]
    text = bytearray(_RTF_BEGINS)
    whole, at = len(text) + size, 16
    while at < len(packed) and len(text) < whole:
        control, at = packed[at], at + 1
        for bit in range(8):
            if not control >> bit & 1:
                text += packed[at : at + 1]
                at += 1
                continue
            back = int.from_bytes(packed[at : at + 2], "big")
            at += 2
            distance = (len(text) - (back >> 4)) % _WINDOW
            if not distance or distance > len(text):  # its end
                at = len(packed)
                break
            for _ in range((back & 15) + 2):
                text.append(text[-distance])
    return bytes(text[len(_RTF_BEGINS) : whole])
