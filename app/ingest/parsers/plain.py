"""Plain text, and everything that is read as it, such as logs and settings."""

from __future__ import annotations

from app.core.normalisation import normalise
from app.core.types import ParsedDocument
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.headings import find_headings
from app.ingest.parsers.sniffing import (
    decode,
    encoded_data,
    without_encoded,
    without_terminal_codes,
)


def parse_plain(content: bytes, *_: object) -> ParsedDocument:
    """Return the text as written, with numbered, capital and well-known headings."""
    source, warnings = decode(content)
    source, encoded = without_encoded(without_terminal_codes(source).replace("\f", "\n\n"))
    text, stripped = normalise(source)
    return ParsedDocument(
        text=text,
        media_type=FORMATS["text"].media_type,
        headings=tuple(find_headings(text, isolated_caps=True)),
        warnings=(*warnings, *encoded_data(encoded)),
        stripped_characters=stripped,
    )
