"""Puts a document together block by block, keeping offsets of headings exact."""

from __future__ import annotations

from app.core.normalisation import normalise
from app.core.types import Heading


class TextBuilder:
    """Collects blocks of text; normalises each on entry, so offsets stay valid."""

    def __init__(self) -> None:
        """Start out empty."""
        self._parts: list[str] = []
        self._length = 0
        self.headings: list[Heading] = []
        self.stripped = 0
        """Invisible characters removed so far."""

    @property
    def length(self) -> int:
        """Characters so far."""
        return self._length

    @property
    def text(self) -> str:
        """Everything added so far."""
        return "".join(self._parts)

    def add(self, text: str, *, gap: str = "\n\n", level: int | None = None) -> None:
        """Append a block after `gap`; blank blocks are dropped, margins trimmed.

        Args:
            text: Any text.
            gap: What separates it from the block before.
            level: Makes the block a heading of this level, from 1.
        """
        clean, stripped = normalise(text)
        self.stripped += stripped
        clean = clean.strip()
        if not clean:
            return
        if self._length:
            self._append(gap)
        if level is not None:
            self.headings.append(
                Heading(self._length, self._length + len(clean), level, " ".join(clean.split()))
            )
        self._append(clean)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
