"""Plain text, and everything that is read as it: source code, CSV, JSON."""

from __future__ import annotations

from app.core.normalisation import normalise
from app.core.types import ParsedDocument
from app.ingest.parsers.encoding import decode
from app.ingest.parsers.headings import find_headings
from app.ingest.parsers.sniffing import MEDIA_TYPES


def parse_plain(content: bytes) -> ParsedDocument:
    """Return the text as written, with numbered, capital and well-known headings.

    Raises:
        UnsupportedType: The bytes are not text.
    """
    source, warnings = decode(content)
    text, stripped = normalise(source.replace("\f", "\n\n"))
    return ParsedDocument(
        text=text,
        media_type=MEDIA_TYPES["text"],
        headings=tuple(find_headings(text, isolated_caps=True)),
        warnings=warnings,
        stripped_characters=stripped,
    )
