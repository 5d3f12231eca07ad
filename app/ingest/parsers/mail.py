"""Read mail: single messages, mailboxes, and pages that browsers save as a message (MHTML)."""

from __future__ import annotations

import codecs
import email
import email.errors
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from email.header import decode_header, make_header
from email.message import Message as AnyMessage
from email.policy import Compat32
from typing import TypeAlias

from app.core.errors import Encrypted, InputError, TooLarge, Unreadable
from app.core.types import FileType, ParsedDocument
from app.ingest.names import display_name
from app.ingest.options import IngestOptions
from app.ingest.parsers.blocks import Block, Inner, write
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.html import parse_html
from app.ingest.parsers.rtf import parse_rtf
from app.ingest.parsers.sniffing import decode, identify

Message: TypeAlias = "AnyMessage[str, str]"
MOST_PARTS = 1_000
"""Of one message; what is behind them is named as not read."""
_MOST_BOUNDARIES = 100_000
DEEPEST = 10
"""Of messages attached to one another."""
_MOST_MESSAGES = 10_000
_MOST_NAMED = 20
"""Parts that the receipt names one by one."""
LONGEST_HEADER = 20_000
_LONGEST_NOTE = 300
_FULL_LINE = 50
"""Characters: a shorter line ends where its writer wanted, a longer one where the program broke."""
FIELDS = ("From", "To", "Cc", "Date")
_FORMS = "text/plain", "text/html", "text/rtf"
"""Of a text that is no file."""
_SIGNATURES = frozenset(
    {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}
)
_WORD = re.compile(r"\w+")
_SAME = 0.5
"""Share of the words of one form of a text that another has, if both say the same."""
_QUOTED = re.compile(r"(?:>[ \t]?)+")
_ITEM = re.compile(r"([-*+\u2022]|\d{1,2}[.)])[ \t]+(\S.*)\Z")
_SET_APART = re.compile(r"\t|\S {2,}\S|\A[ \t]")
"""Columns or indented text, whose lines stay lines."""
_NAMED = re.compile(r'"([^"<>]+)"\s*<|([^",;<>\s][^",;<>]{0,80}?)\s{0,9}<')
"""Names before addresses."""
_YEAR = re.compile(r"\b(?:19[7-9]\d|20\d\d)\b")
_FROM_LINE = re.compile(rb"(?:\A|(?<=\n))From [^\r\n]*\d{4}[^\r\n]*\r?\n")
"""Where a message of a mailbox begins (RFC 4155, appendix A)."""
_FROM_ESCAPED = re.compile(rb"^>(?=>*From )", re.MULTILINE)


def parse_email(content: bytes, filename: str, options: IngestOptions) -> ParsedDocument:
    """Return a message: its subject, who wrote when to whom, one body, and what is attached.

    Attached files of formats that are read, and attached messages, follow under a heading with
    their name; a warning names the others.

    Raises:
        Encrypted: Its content is encrypted.
        Unreadable: Its parts lie too deep within one another.
    """
    return parse_message(message_of(content, filename), "email", filename, options)


def parse_message(
    message: Message,
    kind: FileType,
    filename: str,
    options: IngestOptions,
    unread: Sequence[str] = (),
) -> ParsedDocument:
    """Return a message of a format; `unread` is what its warning names besides.

    Raises:
        Encrypted: Its content is encrypted.
        Unreadable: Its parts lie too deep within one another.
    """
    reader = _Reader(filename, options)
    for what in unread:
        reader.leave_out(what)
    subject = header(message, "Subject")
    blocks = list(reader.message(message, subject, 1))
    dated = _YEAR.search(header(message, "Date"))
    return write(
        blocks,
        kind,
        title=subject or None,
        authors=_names(message),
        year=int(dated[0]) if dated else None,
        warnings=reader.warnings(),
    )


def parse_mailbox(content: bytes, filename: str, options: IngestOptions) -> ParsedDocument:
    """Return the messages of a mailbox, a section each.

    Raises:
        TooLarge: It has more messages than one document can show.
        Unreadable: No message begins in it.
    """
    starts = [found.span() for found in _FROM_LINE.finditer(content)]
    if not starts:
        raise Unreadable(
            f"{filename!r} holds no message: no line begins with 'From ' and a date; export the"
            " mailbox again, or save single messages as .eml"
        )
    if len(starts) > _MOST_MESSAGES:
        raise TooLarge(
            f"{filename!r} holds {len(starts):,} messages; at most {_MOST_MESSAGES:,} are read:"
            " split it by year and send the parts"
        )
    reader = _Reader(filename, options)
    blocks: list[Block | Inner] = []
    for (_, begin), (end, _) in zip(starts, [*starts[1:], (len(content), 0)], strict=True):
        try:
            message = message_of(_FROM_ESCAPED.sub(b"", content[begin:end]), filename)
            subject = header(message, "Subject") or "(no subject)"
            title = ", ".join(filter(None, (subject, header(message, "Date"))))
            blocks += reader.message(message, title, 1)
        except InputError as exc:
            reader.leave_out(f"a message ({_first(exc)})")
    return write(blocks, "mbox", warnings=reader.warnings())


def parse_mhtml(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return the page of a web archive, read as HTML.

    Raises:
        Unreadable: There is no page in it.
    """
    message = message_of(content, filename)
    pages = [part for part in message.walk() if part.get_content_type() == "text/html"]
    start = str(message.get_param("start") or "")
    pages.sort(key=lambda part: not start or part["Content-ID"] != start)
    if not pages:
        raise Unreadable(
            f"{filename!r} holds no HTML page; open it in a browser and save it as HTML or PDF"
        )
    parsed = _html(pages[0], filename)
    frames = (f"{len(pages) - 1} frames of the page are not read",) if len(pages) > 1 else ()
    return write(
        [Inner(parsed, 0)],
        "mhtml",
        title=parsed.title or header(message, "Subject") or None,
        authors=parsed.authors,
        year=parsed.year,
        warnings=(*parsed.warnings, *frames),
    )


class _Bounded(Compat32):
    """Cuts headers: parameters and addresses take the square of their length.

    The library's newer policy reads each header by a grammar, which costs more still and ends in
    foreign errors on headers that spam has.
    """

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:LONGEST_HEADER]


def message_of(content: bytes, filename: str) -> Message:
    """Return the bytes of a mail with its parts.

    Raises:
        TooLarge: It has too many of them.
        Unreadable: They lie too deep within one another.
    """
    if content.count(b"\n--") > _MOST_BOUNDARIES:
        raise TooLarge(
            f"{filename!r} has more than {_MOST_BOUNDARIES:,} parts; save the parts that you need"
            " as files and send those"
        )
    try:
        return email.message_from_bytes(content, policy=_Bounded())
    except RecursionError as exc:
        raise _too_deep(filename) from exc


def _too_deep(filename: str) -> Unreadable:
    return Unreadable(
        f"{filename!r} has parts too deep within one another; save the part that you need as a"
        " file and send that"
    )


def header(message: Message, name: str) -> str:
    """Return a header on one line, its encoded words read."""
    return _decoded(
        next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    )


def _decoded(raw: str) -> str:
    raw = str(raw)
    if not raw.isascii():  # bytes of the file, which the parser keeps as surrogates
        raw, _ = decode(raw.encode("utf-8", "surrogateescape"))
    with suppress(LookupError, ValueError, email.errors.MessageError):  # shown as it is
        raw = str(make_header(decode_header(raw)))
    return " ".join(raw.split())


def _names(message: Message) -> list[str]:
    sender = header(message, "From")
    return [quoted or bare for quoted, bare in _NAMED.findall(sender)] or [sender]


class _Reader:
    """Yields the blocks of messages, and counts what it leaves out."""

    def __init__(self, filename: str, options: IngestOptions) -> None:
        self._filename = filename
        self._options = options
        self._unread: Counter[str] = Counter()
        self._notes: list[str] = []

    def warnings(self) -> list[str]:
        named = [
            f"{count} times {what}" if count > 1 else what for what, count in self._unread.items()
        ]
        more = len(named) - _MOST_NAMED
        tail = [f"{more} more"] if more > 0 else []
        unread = ["not read: " + ", ".join([*named[:_MOST_NAMED], *tail])] if named else []
        return [*dict.fromkeys(self._notes[:_MOST_NAMED]), *unread]

    def leave_out(self, what: str) -> None:
        self._unread[what] += 1

    def message(self, message: Message, title: str, level: int) -> Iterator[Block | Inner]:
        yield Block("heading", title, level=level)
        for name in FIELDS:
            if value := header(message, name):
                yield Block("field", value, mark=name)
        left = [MOST_PARTS]
        try:
            yield from self._part(message, level, left)
        except RecursionError as exc:
            raise _too_deep(self._filename) from exc

    def _part(self, part: Message, level: int, left: list[int]) -> Iterator[Block | Inner]:
        left[0] -= 1
        if left[0] < 0:
            self.leave_out(f"parts behind the first {MOST_PARTS:,}")
            return
        kind = part.get_content_type()
        if kind == "multipart/encrypted" or "enveloped-data" in str(part.get_param("smime-type")):
            raise Encrypted(
                f"{self._filename!r} is encrypted; open it in your mail program and save its text"
            )
        inside = _inside(part)
        if kind == "message/rfc822" and inside:
            yield from self._attached(inside[0], level)
        elif inside:
            for one in self._alternatives(inside) if kind == "multipart/alternative" else inside:
                yield from self._part(one, level, left)
        elif kind in _SIGNATURES:
            return
        elif kind.startswith("multipart/"):  # its boundary never comes
            yield from _plain(str(part.get_payload()))
        elif part.get_filename() or kind not in _FORMS:
            yield from self._attachment(part, kind, level)
        else:
            yield from self._text(part, kind, level)

    def _alternatives(self, parts: Sequence[Message]) -> list[Message]:
        """Return the one of several forms of a text to read, and files that only another form has.

        The plain form, unless it has less than half of the words of the other: then it only says
        that there is another.
        """
        plain, page = (
            next(
                (part for part in parts if any(_is_text(leaf, kind) for leaf in part.walk())), None
            )
            for kind in ("text/plain", "text/html")
        )
        chosen = plain or page
        if plain is not None and page is not None and plain is not page:
            own, others = self._words_in(plain, "text/plain"), self._words_in(page, "text/html")
            if len(own & others) < _SAME * len(others):
                chosen = page
        if chosen is None:
            return list(parts)
        rest = (leaf for other in parts if other is not chosen for leaf in other.walk())
        return [chosen, *(leaf for leaf in rest if leaf.get_filename())]

    def _words_in(self, part: Message, kind: str) -> set[str]:
        """Return the words of the first text of a kind in a part; none if it cannot be read."""
        leaf = next(leaf for leaf in part.walk() if _is_text(leaf, kind))
        try:
            if kind == "text/html":
                return _words(_html(leaf, self._filename).text)
            content = leaf.get_payload(decode=True)
            text, _ = decode(
                content if isinstance(content, bytes) else b"", leaf.get_content_charset()
            )
        except InputError:
            return set()
        return _words(text)

    def _text(self, part: Message, kind: str, level: int) -> Iterator[Block | Inner]:
        content = self._content(part, "a part of the text")
        if content is None:
            return
        try:
            if kind == "text/html":
                page = _html(part, self._filename)
                self._notes += page.warnings
                yield Inner(page, level)
            elif kind == "text/rtf":
                yield Inner(parse_rtf(content, self._filename), level)
            else:
                text, warnings = decode(content, part.get_content_charset())
                self._notes += warnings
                yield from _plain(text)
        except InputError as exc:
            self.leave_out(f"a part of the text ({_first(exc)})")

    def _attached(self, message: Message, level: int) -> Iterator[Block | Inner]:
        if level > DEEPEST:
            self.leave_out(f"messages attached more than {DEEPEST} deep")
            return
        title = f"Attached message: {header(message, 'Subject')}"
        yield from self.message(message, title, level + 1)

    def _attachment(self, part: Message, kind: str, level: int) -> Iterator[Block | Inner]:
        name = _decoded(part.get_filename() or "")
        name = display_name(name or f"unnamed{mimetypes.guess_extension(kind) or ''}")
        if kind.startswith(("image/", "audio/", "video/")):
            self.leave_out(f"{name!r} ({kind})")
        elif (content := self._content(part, repr(name))) is not None:
            try:
                format_ = identify(content, name)
                if format_ == "email":
                    yield from self._attached(message_of(content, name), level)
                    return
                read = FORMATS[format_].parse(content, name, self._options)
            except InputError as exc:
                reason = _first(exc)
                self.leave_out(reason if repr(name) in exc.message else f"{name!r} ({reason})")
                return
            self._notes += (f"{name!r}: {warning}"[:_LONGEST_NOTE] for warning in read.warnings)
            yield Block("heading", f"Attachment: {name}", level=level + 1)
            yield Inner(read, level + 1)

    def _content(self, part: Message, what: str) -> bytes | None:
        """Return a part's bytes; None where their encoding is broken or there are none."""
        content = part.get_payload(decode=True)
        damage = email.errors.InvalidBase64LengthDefect
        if any(isinstance(one, damage) for one in part.defects):
            self.leave_out(f"{what} (its base64 is damaged)")
            return None
        return content if isinstance(content, bytes) and content.strip() else None


def _first(error: InputError) -> str:
    """Return what is wrong, without what to do."""
    return error.message.partition(";")[0]


def _inside(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [one for one in payload if not isinstance(one, str)] if isinstance(payload, list) else []


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _is_text(part: Message, kind: str) -> bool:
    is_body = part.get_content_type() == kind and not part.get_filename()
    return is_body and bool(str(part.get_payload()).strip())


def _html(part: Message, filename: str) -> ParsedDocument:
    """Return an HTML part as read; the encoding of its header wins over that of the page."""
    content = part.get_payload(decode=True)
    content = content if isinstance(content, bytes) else b""
    if charset := part.get_content_charset():
        text, _ = decode(content, charset)
        content = codecs.BOM_UTF8 + text.encode()
    return parse_html(content, filename)


def _plain(text: str) -> Iterator[Block]:
    """Yield the paragraphs of a plain text; those of a quoted reply are quotes without marks."""
    lines: list[str] = []
    depth = 0
    for raw in [*text.splitlines(), ""]:
        quoted = _QUOTED.match(raw)
        line = raw[quoted.end() :] if quoted else raw
        deep = quoted[0].count(">") if quoted else 0
        item = None if deep or (lines and len(lines[-1]) >= _FULL_LINE) else _ITEM.match(line)
        if lines and (deep != depth or item or not line.strip()):
            yield Block("quote" if depth else "paragraph", _flowed(lines))
            lines = []
        depth = deep
        if item:
            yield Block("item", item[2], mark=item[1])
        elif line.strip():
            lines.append(line)


def _flowed(lines: Sequence[str]) -> str:
    """Return a paragraph without the line ends that a program set."""
    text = before = ""
    for line in lines:
        flows = len(before) >= _FULL_LINE and not (
            _SET_APART.search(before) or _SET_APART.search(line)
        )
        text += f"{'' if not text else ' ' if flows else chr(10)}{line.rstrip()}"
        before = line
    return text
