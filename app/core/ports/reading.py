"""Files and dumps to text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from app.core.cancel import CancelToken
from app.core.types import (
    PageBoxes,
    PageText,
    ParsedDocument,
    RawDocument,
)


@runtime_checkable
class DocumentSource(Protocol):
    """A stream of documents in constant memory."""

    def __iter__(self) -> Iterator[RawDocument]:
        """Yield documents in a stable order."""
        ...


@runtime_checkable
class Parser(Protocol):
    """Bytes to text with structure."""

    def parse(
        self, content: bytes | Path, filename: str, cancel: CancelToken | None = None
    ) -> ParsedDocument:
        """Return the parsed document; the name is a hint, the content decides.

        Args:
            content: The bytes, or the file that holds them.
            filename: What people call it.
            cancel: Of a client that waits for the text.

        Raises:
            Cancelled: `cancel` was cancelled.
            Busy: A parse could not begin in time.
            UnsupportedType: No parser for this content.
            Encrypted, NoTextLayer, Unreadable, TooLarge: What is wrong with the file.
        """
        ...


@runtime_checkable
class PageLocator(Protocol):
    """Stored text back to places on the pages of the original."""

    def page_boxes(self, content: bytes | Path, pages: Sequence[PageText]) -> tuple[PageBoxes, ...]:
        """Return the rectangles of each span on its page, in the order given.

        Raises:
            UnsupportedType: The original has no pages (only PDFs have).
            Unreadable: The original cannot be opened any more.
        """
        ...
