"""Parse files in this process: recognise the format, then call its parser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.cancel import CancelToken
from app.core.errors import TooLarge, Unreadable
from app.core.types import Highlight, Listing, PageBoxes, PageText, PageWords, ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.sniffing import identify, pdf_start

if TYPE_CHECKING:
    from app.ingest.ocr import Recognise

READER_VERSION = "11"
"""Of parsers, metadata and sections: another one makes something else of the same bytes, and a
file sent again is read again."""


class DirectParser:
    """Parses in this process, without limits: for the child process, and for our own text."""

    def __init__(self, options: IngestOptions, recognise: Recognise | None = None) -> None:
        self._options = options
        self._recognise = recognise

    def parse(
        self,
        content: bytes | Path,
        filename: str,
        cancel: CancelToken | None = None,
        words: Sequence[PageWords] = (),
    ) -> ParsedDocument:
        if cancel is not None:
            cancel.raise_if_cancelled()
        data = _read(content, filename, self._options.max_file_bytes)
        parsed = FORMATS[identify(data, filename)].parse(data, filename, self._options, words)
        if len(parsed.text) > self._options.max_characters:
            raise TooLarge(
                f"{filename!r} holds {len(parsed.text):,} characters; at most"
                f" {self._options.max_characters:,} are read:"
                " split it and send the parts"
            )
        if (not parsed.text or parsed.text.isspace()) and not (parsed.unread or words):
            seen = f" ({'; '.join(parsed.warnings)})" if parsed.warnings else ""
            raise Unreadable(
                f"{filename!r} holds no readable text{seen}; check that it is the right file"
            )
        return parsed

    def addresses(self, content: bytes, base: str) -> Listing:
        from app.ingest.parsers.listings import addresses_in  # noqa: PLC0415  # loads XML

        return addresses_in(content, base)

    def page_boxes(
        self, content: bytes | Path, pages: Sequence[PageText], words: Sequence[PageWords] = ()
    ) -> tuple[PageBoxes, ...]:
        from app.ingest.parsers.pdf_boxes import find_boxes  # noqa: PLC0415  # loads PDFium

        data = _read(content, "the original", self._options.max_file_bytes)
        return find_boxes(data, pages, words)

    def highlighted(
        self,
        content: bytes | Path,
        highlights: Sequence[Highlight],
        words: Sequence[PageWords] = (),
    ) -> bytes:
        from app.ingest.parsers.pdf_highlights import highlighted  # noqa: PLC0415  # loads PDFium

        data = _read(content, "the original", self._options.max_file_bytes)
        return highlighted(data, highlights, words)

    def page_words(
        self, content: bytes | Path, number: int, cancel: CancelToken | None = None
    ) -> PageWords:
        from app.ingest import ocr  # noqa: PLC0415  # loads PDFium

        if cancel is not None:
            cancel.raise_if_cancelled()
        data = _read(content, "the original", self._options.max_file_bytes)
        read = self._recognise or ocr.recognise
        if (start := pdf_start(data)) >= 0:
            return ocr.words_of_page(data[start:], number, self._options, read)
        from app.ingest.parsers.images import print_image  # noqa: PLC0415  # loads Pillow

        picture, size = print_image(data, number)
        return ocr.words_of_picture(picture, number, size, self._options, read)


def _read(content: bytes | Path, filename: str, limit: int) -> bytes:
    try:
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        if size > limit:
            raise TooLarge(
                f"{filename!r} is larger than {limit:,} bytes; raise MAX_FILE_SIZE_MB or split it"
            )
        return content.read_bytes() if isinstance(content, Path) else content
    except OSError as exc:
        raise Unreadable(
            f"{filename!r} cannot be read ({exc.strerror}); check that it exists and may be read"
        ) from exc
