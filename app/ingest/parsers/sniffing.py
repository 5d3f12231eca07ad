"""Detect a file's type by its bytes; the extension only tells text types apart."""

from __future__ import annotations

import codecs
import io
import zipfile
from pathlib import PurePosixPath

from app.core.errors import Encrypted, Unreadable, UnsupportedType
from app.core.types import FileType
from app.ingest.parsers.formats import FORMATS, accepted

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
_LATIN_HIGH_SHARE = 0.4
"""With fewer high bytes than this, the letters are Latin: accents and quotes, where detectors
only guess. Others pass 0.6."""


def is_text(content: bytes) -> bool:
    """Return whether bytes can be text: a mark, UTF-16's NULs, or hardly any control bytes."""
    if any(content.startswith(bom) for bom, _ in _BOMS) or _utf16_without_mark(content):
        return True
    return (
        len(content) - len(content.translate(None, _CONTROL)) <= len(content) * _MAX_CONTROL_SHARE
    )


def decode(content: bytes, declared: str | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the text and warnings about what had to be assumed.

    Tried in order: byte-order mark, UTF-8, UTF-16 without a mark, the declared encoding, then a
    guess with a warning (charset-normalizer, or Windows-1252 for text that is mostly ASCII).
    Nothing is dropped silently.

    Args:
        content: The file.
        declared: What the file itself says, for example in an HTML `meta`; used when UTF-8 does not
            fit.

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
    for encoding in ("utf-8", declared):
        if encoding is None:
            continue
        try:
            return content.decode(encoding), ()
        except (UnicodeDecodeError, LookupError):
            continue
    guess = _guess(content)
    text, warnings = _decode_with_warning(content, guess)
    return text, (f"the encoding is not declared and not UTF-8; read as {guess}", *warnings)


def _decode_with_warning(content: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    try:
        return content.decode(encoding), ()
    except UnicodeDecodeError:
        text = content.decode(encoding, "replace")
        return text, (
            f"{text.count(chr(0xFFFD))} characters are damaged ({encoding}) and shown as U+FFFD",
        )


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
    high = sum(map(content.count, (bytes([b]) for b in range(128, 256))))
    if high < len(content) * _LATIN_HIGH_SHARE:
        return "cp1252"
    import charset_normalizer  # noqa: PLC0415 - 40 ms that only undeclared legacy files need to pay

    best = charset_normalizer.from_bytes(content[:_DETECT_SAMPLE_BYTES]).best()
    return best.encoding if best is not None else "cp1252"


_MAGIC_WINDOW_BYTES = 1024
"""PDF readers accept a header that starts within the first kilobyte (ISO 32000-1, annex H, note
13)."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_IMAGES = (  # refused also where text follows: a damaged image is no text
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
)
_FOREIGN = (  # signatures that get a name in the message; other binaries are refused without one
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


def identify(content: bytes, filename: str) -> FileType:
    """Return the format of a file.

    Args:
        content: The whole file.
        filename: Its name; only tells kinds of text apart.

    Raises:
        Unreadable: The file is empty.
        Encrypted: A password-protected Office document.
        UnsupportedType: Any other kind of content, named where it is known.
    """
    if not content.strip(b"\0 \t\r\n\f"):
        raise Unreadable(f"{filename!r} is empty: it has no content")
    head = content[:_MAGIC_WINDOW_BYTES]
    for name, one in FORMATS.items():
        if one.magic and one.magic in head:
            return name
    if content.startswith(b"PK\x03\x04"):
        return _identify_zip(content, filename)
    if content.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in content:
            raise Encrypted(
                f"{filename!r} is protected by a password; save a copy without one and send that"
            )
        raise UnsupportedType(
            f"{filename!r} is an old Office file; save it as DOCX or PDF and send that"
        )
    if content.startswith(b"{\\rtf"):
        raise UnsupportedType(
            f"{filename!r} is rich text (RTF); save it as DOCX or PDF and send that"
        )
    image = _named(content, _IMAGES)
    if image or not is_text(content):
        named = image or _named(content, _FOREIGN) or "binary content of an unknown kind"
        raise UnsupportedType(f"{filename!r} is {named}; send {accepted()}")
    return _identify_text(content, PurePosixPath(filename.lower()).suffix)


def _named(content: bytes, signatures: tuple[tuple[bytes, str], ...]) -> str | None:
    return next((name for magic, name in signatures if content.startswith(magic)), None)


def _identify_zip(content: bytes, filename: str) -> FileType:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as exc:
        raise Unreadable(
            f"{filename!r} is a damaged ZIP container; upload it again or save it again first"
        ) from exc
    for name, one in FORMATS.items():
        if one.zip_part in names:
            return name
    known = {
        "xl/workbook.xml": "a spreadsheet (XLSX)",
        "ppt/presentation.xml": "a presentation (PPTX)",
    }
    named = next((label for part, label in known.items() if part in names), "a ZIP archive")
    raise UnsupportedType(f"{filename!r} is {named}; send {accepted()}")


def _identify_text(content: bytes, suffix: str) -> FileType:
    texts = (name for name, one in FORMATS.items() if one.is_text and suffix in one.suffixes)
    named: FileType = next(texts, "text")
    head = content[:2048].replace(b"\0", b"").lower().lstrip(b"\xef\xbb\xbf\xfe\xff \t\r\n")
    if named in ("text", "html"):
        if head.startswith((b"<!doctype html", b"<html")) or (
            head.startswith(b"<") and (b"<html" in head or b"<body" in head)
        ):
            return "html"
        return "html" if named == "html" and b"<" in head else "text"
    return named
