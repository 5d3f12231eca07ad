"""Detect a file's type by its bytes; the extension only tells text types apart."""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePosixPath

from app.core.errors import Encrypted, Unreadable, UnsupportedType
from app.core.types import FileType
from app.ingest.parsers.encoding import is_text
from app.ingest.parsers.formats import FORMATS, accepted

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
