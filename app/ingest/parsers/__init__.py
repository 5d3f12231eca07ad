"""Parse files in this process: recognise the format, then call its parser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.core.cancel import CancelToken
from app.core.errors import TooLarge, Unreadable
from app.core.types import PageBoxes, PageText, ParsedDocument
from app.ingest.names import IngestOptions
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.sniffing import identify

READER_VERSION = "6"
"""Of parsers, metadata and sections: another one makes something else of the same bytes, and a
file sent again is read again."""


class DirectParser:
    """Parses in this process, without limits: for the child process, and for our own text."""

    def __init__(self, options: IngestOptions) -> None:
        self._options = options

    def parse(
        self, content: bytes | Path, filename: str, cancel: CancelToken | None = None
    ) -> ParsedDocument:
        if cancel is not None:
            cancel.raise_if_cancelled()
        data = _read(content, filename, self._options.max_file_bytes)
        parsed = FORMATS[identify(data, filename)].parse(data, filename, self._options)
        if len(parsed.text) > self._options.max_characters:
            raise TooLarge(
                f"{filename!r} holds {len(parsed.text):,} characters; at most"
                f" {self._options.max_characters:,} are read:"
                " split it and send the parts"
            )
        if not parsed.text or parsed.text.isspace():
            raise Unreadable(
                f"{filename!r} holds no readable text; check that it is the right file"
            )
        return parsed

    def page_boxes(self, content: bytes | Path, pages: Sequence[PageText]) -> tuple[PageBoxes, ...]:
        from app.ingest.parsers.pdf_boxes import find_boxes  # noqa: PLC0415  # loads PDFium

        return find_boxes(_read(content, "the original", self._options.max_file_bytes), pages)


def _read(content: bytes | Path, filename: str, limit: int) -> bytes:
    if isinstance(content, Path):
        try:
            if content.stat().st_size > limit:
                raise TooLarge(
                    f"{filename!r} is larger than {limit:,} bytes; raise MAX_FILE_SIZE_MB or split"
                    " it"
                )
            return content.read_bytes()
        except OSError as exc:
            raise Unreadable(
                f"{filename!r} cannot be read ({exc.strerror}); check that it exists and may be"
                " read"
            ) from exc
    if len(content) > limit:
        raise TooLarge(
            f"{filename!r} is larger than {limit:,} bytes; raise MAX_FILE_SIZE_MB or split it"
        )
    return content
