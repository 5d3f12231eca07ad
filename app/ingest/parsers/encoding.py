"""Bytes to text: is it text at all, and in which encoding."""

from __future__ import annotations

import codecs

from app.core.errors import UnsupportedType
from app.ingest.parsers.formats import accepted

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
    """Return whether bytes can be text.

    A byte-order mark, UTF-16 by its pattern of NULs, or hardly any control bytes.
    """
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
    """Return the UTF-16 codec if the NUL bytes show one.

    In western text nearly every second byte is NUL, and hardly any of the others.
    """
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
