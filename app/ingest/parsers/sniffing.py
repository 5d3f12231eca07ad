"""Detect a file's type by its bytes; the extension only tells text types apart."""

from __future__ import annotations

import codecs
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

import webencodings

from app.core.errors import Encrypted, Unreadable, UnsupportedType
from app.core.types import FileType
from app.ingest.parsers.formats import FORMATS, accepted

if TYPE_CHECKING:
    from olefile import OleFileIO

# Bytes to text: is it text at all, and in which encoding.

_BOMS = (  # UTF-32 before UTF-16: its little-endian mark starts with the other's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Bytes that plain text of any 8-bit encoding hardly ever holds; tab, line ends, form feed,
# backspace and escape are allowed.
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"
_MAX_CONTROL_SHARE = 0.01
_UTF16_SAMPLE_BYTES = 4096
_DETECT_SAMPLE_BYTES = 65_536
_TERMINAL_CODES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])|(.)\x08(?=\1)|_\x08"
)
"""Colours and titles of terminals (ECMA-48), and the overstriking of manual pages."""

_TYPOGRAPHY = frozenset(
    "\u2018\u2019\u201a\u201c\u201d\u201e\u2013\u2014\u2026\u20ac\u00a3\u00ab\u00bb\u00a7"
    "\u00b0\u00b1\u00b2\u00b3\u00b5\u00b7\u00bd\u00d7\u00a0\u00a9\u00ae\u2022\u00bf\u00a1"
)
_BETWEEN_LETTERS = frozenset("\u2019\u00b7")
_BEFORE_NO_LETTER = frozenset("\u00a9\u00ae\u00b2\u00b3\u00bd\u00d7\u00a3")
_ALPHABETS = (
    *(
        ("cp1252", letters)
        for letters in "äöüßé àâçéèêëîïôùûœæ áéíóúñü åäöé æøåé ãõáéíóúâêôàç àèéìòù".split()
    ),
    ("cp1250", "ąćęłńóśźż"),
    ("cp1250", "áčďéěíňóřšťúůýžľĺäôŕ"),
    ("cp1250", "áéíóöőúüű"),
    ("cp1250", "ăâîşţ"),
    ("cp1250", "čćđšž"),
    ("cp1254", "çğ\u0131İöşüâ"),
    ("cp1257", "ąčęėįšųūž"),
    ("cp1257", "āčēģīķļņšūž"),
    ("cp1257", "äõöüšž"),
    ("cp1252", "áðéíóúýþæö"),  # behind Turkish, whose letters are the same bytes
    ("cp1255", "".join(map(chr, range(0x5D0, 0x5EB)))),  # before Cyrillic: the same bytes
    ("cp1251", "".join(map(chr, range(0x430, 0x460))) + "ґ"),
    ("cp1253", "".join(map(chr, range(0x3AC, 0x3CF)))),
    ("cp1256", "".join(map(chr, range(0x621, 0x653))) + "پچگ\u060c\u061f"),
)
"""Code pages of Windows with the lower-case letters beyond ASCII of a language."""
_CODE_PAGES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cp1252": ("cp1252", "cp850", "mac_roman"),
        "cp1250": ("cp1250", "iso8859_2", "cp852"),
        "cp1251": ("cp1251", "koi8_r", "cp866", "iso8859_5", "mac_cyrillic"),
        "cp1253": ("cp1253", "iso8859_7", "cp737"),
        "cp1254": ("cp1254", "cp857"),
        "cp1255": ("cp1255", "cp862"),
        "cp1257": ("cp1257", "iso8859_13", "cp775"),
    }
)
"""Others for the same letters, of ISO, DOS, Unix and old Macintoshes."""
_EASTERN = ["euc_jp", "cp932", "gb18030", "big5", "cp949", "cp874"]
_LEAST_LETTERS = 0.9
"""Share of the characters beyond ASCII that a language writes, in a text of it."""


def is_text(content: bytes) -> bool:
    """Return whether bytes can be text: a mark, UTF-16's NULs, or hardly any control bytes."""
    if any(content.startswith(bom) for bom, _ in _BOMS) or _utf16_without_mark(content):
        return True
    controls = len(content) - len(content.translate(None, _CONTROL))
    return controls <= len(content) * _MAX_CONTROL_SHARE


def decode(
    content: bytes, declared: str | None = None, prose: Callable[[], bytes] | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return the text and warnings about what had to be assumed.

    Tried in order: byte-order mark, UTF-16 without a mark, UTF-8 (also with a few bytes that are
    damaged, which are shown as U+FFFD), the declared encoding by the WHATWG's table of labels, then
    a guess with a warning. Nothing is dropped silently.

    Args:
        content: The file.
        declared: What the file itself says, for example in an HTML `meta`; used when UTF-8 does not
            fit.
        prose: Gives the content without markup, to guess from.

    Raises:
        UnsupportedType: The bytes are not text.
    """
    for bom, marked in _BOMS:
        if content.startswith(bom):
            return _decode_with_warning(content[len(bom) :], marked)
    if not is_text(content):
        raise UnsupportedType(f"the content is binary, not text; send {accepted()}")
    utf16 = _utf16_without_mark(content)
    if utf16 is not None:
        return _decode_with_warning(content, utf16)
    try:
        return content.decode(), ()
    except UnicodeDecodeError:
        text = content.decode(errors="replace")
    damaged = text.count("\ufffd")
    if len(content) - len(text) > 2 * damaged:  # more sequences of several bytes fit than do not
        return text, (_damaged(damaged, "UTF-8"),)
    if declared is not None and (known := webencodings.lookup(declared)) is not None:
        return _decode_with_warning(content, known.codec_info.name)
    guess = _guess(content if prose is None else prose())
    text, warnings = _decode_with_warning(content, guess)
    return text, (f"the encoding is not declared and not UTF-8; read as {guess}", *warnings)


def without_terminal_codes(text: str) -> str:
    """Return what a terminal shows of a log or manual page."""
    return _TERMINAL_CODES.sub("", text) if "\x1b" in text or "\x08" in text else text


# Encoded data within text, which no reader reads.

_ENCODED = re.compile(
    r"-----BEGIN [A-Z0-9 ]{1,60}-----(?:[^-]++|-(?!----))*+-----END [A-Z0-9 ]{1,60}-----"
    r"|data:[\w.+-]{1,80}/[\w.+-]{1,80}(?:;[\w=.+-]{1,80}){0,9};base64,"
    r"(?:\s*+[A-Za-z0-9+/=_%-]{40,}+)*"
    r"[A-Za-z0-9+/=_%-]*+"
    r"|(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{60,}+={0,2}(?:\s++[A-Za-z0-9+/_-]{60,}+={0,2})*+"
    r"(?:\s++[A-Za-z0-9+/_-]{2,59}+={0,2}(?!\S))?"
    r"|^.*\ufffd.*\ufffd.*\ufffd.*$",
    re.MULTILINE,
)
"""Text encodings of RFC 7468, data URLs of RFC 2397, lines of base64 (RFC 4648), binary lines."""
_LONG_RUN = 400
_HEX = re.compile(r"[0-9a-fA-F]+\Z")


def without_encoded(text: str) -> tuple[str, int]:
    """Return a text without base64, hexadecimal and binary data; how many characters that was."""
    if len(text) < _SHORTEST_RUN and "\ufffd" not in text:
        return text, 0
    left = _ENCODED.sub(_kept, text)
    return left, len(text) - len(left)


def encoded_data(characters: int) -> tuple[str, ...]:
    """Return the warning about what `without_encoded` left out."""
    return (f"encoded data is left out ({characters:,} characters)",) if characters else ()


def _kept(found: re.Match[str]) -> str:
    """Return what stays of a run: nothing of data, all of a long name, path or line of signs."""
    run = found[0]
    if run.startswith(("-----BEGIN", "data:")):
        return ""
    if "\ufffd" in run:
        return "" if run.count("\ufffd") * 5 > len(run) else run
    *words, tail = run.split()
    is_short = bool(words) and len(tail) < _SHORTEST_RUN
    is_tail = is_short and tail[-1] != "=" and not _is_encoded(tail, 0.0)
    body = "".join(words if is_tail else [*words, tail])
    if not _is_encoded(body, 0.01 if len(body) > _LONG_RUN else 0.05):
        return run
    return run[run.rindex(tail) - 1 :] if is_tail else ""


def _is_encoded(run: str, share: float) -> bool:
    """Return whether a run mixes digits and both cases as encoded data does, each over a share."""
    digits, upper = sum(map(str.isdigit, run)), sum(map(str.isupper, run))
    lower = sum(map(str.islower, run))
    if len(run) > _LONG_RUN and _HEX.match(run):
        return digits * 3 > len(run)
    return digits > share * len(run) and min(upper, lower) > 4 * share * len(run)


_SHORTEST_RUN = 60


def _damaged(count: int, encoding: str) -> str:
    return f"{count} characters are damaged ({encoding}) and shown as U+FFFD"


def _decode_with_warning(content: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    try:
        return content.decode(encoding), ()
    except UnicodeDecodeError:
        text = content.decode(encoding, "replace")
        return text, (_damaged(text.count("\ufffd"), encoding),)


def _utf16_without_mark(content: bytes) -> str | None:
    """Return the UTF-16 codec if nearly every second byte is NUL, and few others are."""
    sample = content[:_UTF16_SAMPLE_BYTES]
    pairs = len(sample) // 2
    if pairs < 2 or len(content) % 2:
        return None
    even, odd = sample[0::2].count(0) / pairs, sample[1::2].count(0) / pairs
    if odd > 0.4 and even < 0.05:
        return "utf-16-le"
    if even > 0.4 and odd < 0.05:
        return "utf-16-be"
    return None


def _guess(content: bytes) -> str:
    """Return the code page in which most characters are letters of one language.

    Of the same letters the page of Windows wins. Where no language fits, Chinese,
    Japanese, Korean and Thai are left to charset-normalizer.
    """
    sample = content[:_DETECT_SAMPLE_BYTES]
    best, most = "cp1252", 0.0
    for windows, letters in _ALPHABETS:
        for encoding in _CODE_PAGES.get(windows, (windows,)):
            text = sample.decode(encoding, "replace")
            share = _share_of_letters(text, frozenset(letters))
            if share > most:
                best, most = encoding, share
    if most >= _LEAST_LETTERS:
        return best
    import charset_normalizer  # noqa: PLC0415 - 40 ms that only undeclared legacy files need to pay

    found = charset_normalizer.from_bytes(sample, cp_isolation=_EASTERN).best()
    return found.encoding if found is not None else best


def _share_of_letters(text: str, letters: frozenset[str]) -> float:
    """Return the share of the characters beyond ASCII that a language's text would hold there."""
    total = fit = 0
    padded = f" {text} "
    for before, character, after in zip(padded, padded[1:], padded[2:], strict=False):
        if character < "\x80":
            continue
        total += 1
        if character in _TYPOGRAPHY:
            inside = after.isalpha() and (before.isalpha() or character in _BEFORE_NO_LETTER)
            fit += not inside or character in _BETWEEN_LETTERS
        elif character in letters:
            fit += not before.isupper() or not before.isalpha() or not after.isupper()
        elif character.lower() in letters:
            fit += not before.islower()
    return fit / total if total else 0.0


_MAGIC_WINDOW_BYTES = 1024
"""PDF readers accept a header that starts within the first kilobyte (ISO 32000-1, annex H, note
13)."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_GIF = (b"GIF87a", b"GIF89a")
_FOREIGN = (  # signatures that get a name in the message; other binaries are refused without one
    *((signature, "a GIF image") for signature in _GIF),
    (b"\x7fELF", "a Linux program"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"Rar!", "a RAR archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"ZIM\x04", "a ZIM archive"),
    (b"MZ", "a Windows program"),
)


_PDF_HEADER = re.compile(rb"(?:\A|(?<=[\r\n]))%PDF-\d")


def pdf_start(content: bytes) -> int:
    """Return where a PDF begins: behind the head of a download, say; -1 where there is none.

    A text about PDFs does not end as one.
    """
    if (at := content.find(b"%PDF-", 0, _MAGIC_WINDOW_BYTES)) >= 0:
        return at
    tail = content[-_MAGIC_WINDOW_BYTES:]
    found = _PDF_HEADER.search(content) if b"%%EOF" in tail and b"startxref" in tail else None
    return found.start() if found else -1


def protected(filename: str) -> Encrypted:
    return Encrypted(
        f"{filename!r} is protected by a password; save a copy without one and send that"
    )


def identify(content: bytes, filename: str) -> FileType:
    """Return the format of a whole file; its name only tells kinds of text apart.

    Raises:
        Unreadable: The file is empty.
        Encrypted: A password-protected Office document.
        UnsupportedType: Any other kind of content, named where it is known.
    """
    if not content.strip(b"\0 \t\r\n\f"):
        raise Unreadable(f"{filename!r} is empty: it has no content")
    head = content[:_MAGIC_WINDOW_BYTES]
    suffix = PurePosixPath(filename.lower()).suffix
    for name, one in FORMATS.items():
        if one.magic and content.startswith(one.magic):
            if name == "webp" and content[8:12] != b"WEBP":
                continue  # a container of sound or video too
            return name
    if content.startswith(b"MM\0*"):  # the other byte order
        return "tiff"
    if b"%PDF-" in head or (suffix == ".pdf" and pdf_start(content) > 0):
        return "pdf"
    if content.startswith(b"PK\x03\x04"):
        return _identify_zip(content, filename)
    if content.startswith(_OLE):
        return _identify_ole(content, filename)
    if content.startswith(_GIF) or not is_text(content):  # a damaged image is no text
        named = (name for signature, name in _FOREIGN if content.startswith(signature))
        what = next(named, "binary content of an unknown kind")
        raise UnsupportedType(f"{filename!r} is {what}; send {accepted()}")
    return _identify_text(content, suffix)


_OLD = (
    ("WordDocument", "an old Word document (DOC)", "DOCX"),
    ("PowerPoint Document", "an old presentation (PPT)", "PPTX"),
)
"""Streams of formats that are not read, and what to save them as."""


def _identify_ole(content: bytes, filename: str) -> FileType:
    """Return the format in a compound file ([MS-CFB]), by the names of its streams."""

    def has(stream: str) -> bool:
        return f"{stream}\0".encode("utf-16-le") in content

    message = FORMATS["msg"].ole_stream
    if has(message) and message in _top(content):  # first: any other may be attached to it
        return "msg"
    if "EncryptedPackage".encode("utf-16-le") in content:
        raise protected(filename)
    for stream, named, better in _OLD:  # first: a workbook may lie within them
        if has(stream):
            raise UnsupportedType(f"{filename!r} is {named}; save it as {better} or PDF")
    for name, one in FORMATS.items():
        if one.ole_stream and has(one.ole_stream):
            return name
    raise UnsupportedType(
        f"{filename!r} is an old Office file; save it as DOCX, XLSX or PDF and send that"
    )


DAMAGES = OSError, ValueError, LookupError, TypeError, OverflowError, struct.error
"""What a damaged compound file ends in."""


def compound_file(content: bytes) -> OleFileIO:
    """Return the streams in a compound file.

    Raises:
        DAMAGES: It is damaged.
    """
    from olefile import OleFileIO  # noqa: PLC0415 - only old formats need it

    (shift,), (tables,) = (
        struct.unpack_from("<H", content, 30),
        struct.unpack_from("<I", content, 44),
    )
    if tables << shift > len(content):  # a loop of tables would be read round and round
        raise ValueError("it has more tables than bytes")
    return OleFileIO(io.BytesIO(content))


def _top(content: bytes) -> set[str]:
    """Return the names of the streams at the top of a compound file; none of a damaged one."""
    try:
        return {path[0] for path in compound_file(content).listdir()}
    except DAMAGES:
        return set()


_IS_ENCRYPTED = 1
"""Bit of an entry's flags (APPNOTE.TXT 6.3.10, section 4.4.4)."""
_APPLE = ("Index/", "Index.zip", "index.xml.gz", "index.apxl")
_OTHER_ZIPS = (
    ("Index", (".key",), "a presentation of Keynote", "PPTX or PDF"),
    ("Index", (".pages",), "a document of Pages", "DOCX or PDF"),
    ("Index", (".numbers",), "a workbook of Numbers", "XLSX or PDF"),
    *((part, (), "a document of Keynote, Pages or Numbers", "PDF") for part in _APPLE),
    ("FixedDoc", (), "an XPS document", "PDF"),
    ("Documents/1/", (), "an XPS document", "PDF"),
    ("Payload/", (".odf", ".odb", ".odc"), "an OpenDocument file of another kind", "PDF"),
    ("visio/", (), "a drawing of Visio", "PDF"),
)
"""Containers of other programs: how a part begins, or the extension; name, what to save it as."""


def _identify_zip(content: bytes, filename: str) -> FileType:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(one.flag_bits & _IS_ENCRYPTED for one in archive.infolist()):
                raise protected(filename)
            names = set(archive.namelist())
            told = archive.open("mimetype").read(100) if "mimetype" in names else b""
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, RuntimeError),
        *(NotImplementedError, ValueError, OSError),
    ) as exc:
        raise Unreadable(
            f"{filename!r} is a damaged ZIP container; upload it again or save it again first"
        ) from exc
    for name, one in FORMATS.items():
        if one.zip_part == "mimetype":
            if told.strip().removesuffix(b"-template") == one.media_type.encode():
                return name
        elif one.zip_part and any(part.startswith(one.zip_part) for part in names):
            return name
    suffix = PurePosixPath(filename.lower()).suffix
    for part, suffixes, named, better in _OTHER_ZIPS:
        if suffix in suffixes or (not suffixes and any(name.startswith(part) for name in names)):
            raise UnsupportedType(f"{filename!r} is {named}; save it as {better} and send that")
    raise UnsupportedType(f"{filename!r} is a ZIP archive; unpack it and send {accepted()}")


_FLAT = re.compile(rb"<office:document\s[^>]*office:mimetype\s*=\s*[\"']([\w./+-]{1,100})")
"""The root of an OpenDocument file that is one XML file."""
_FLAT_WINDOW_BYTES = 16_384


def _identify_text(content: bytes, suffix: str) -> FileType:
    if flat := _FLAT.search(content, 0, _FLAT_WINDOW_BYTES):
        told = flat[1].removesuffix(b"-template").decode()
        for name, one in FORMATS.items():
            if one.zip_part == "mimetype" and one.media_type == told:
                return name
    texts = (name for name, one in FORMATS.items() if one.is_text and suffix in one.suffixes)
    named: FileType = next(texts, "text")
    head = content[:2048].replace(b"\0", b"").lower().lstrip(b"\xef\xbb\xbf\xfe\xff \t\r\n")
    if named == "xml":
        return "html" if re.search(rb"<html[\s>]", head) else "xml"
    if named in ("text", "html"):
        is_page = head.startswith(b"<") and (b"<html" in head or b"<body" in head)
        if is_page or head.startswith(b"<!doctype html"):
            return "html"
        if named == "text" and suffix not in FORMATS["text"].suffixes:
            named = "xml" if head.startswith(b"<?xml") else "json" if _is_json(content) else "text"
        return "text" if named == "html" and b"<" not in head else named
    return named


def _is_json(content: bytes) -> bool:
    """Return whether a file without a known extension is an object or a list of JSON."""
    ends = content.strip()
    if not (ends.startswith((b"{", b"[")) and ends.endswith((b"}", b"]"))):
        return False
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True
