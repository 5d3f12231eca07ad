"""The sections of a wiki page: marked while markup is removed, then put together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from app.core.types import Heading

_HEADING = re.compile(r"^=[^\n]*$", re.MULTILINE)

_BLANK = re.compile(r"[ \t]*\n[ \t]*\n\s*")

_LEVEL_MARK = "\ue000"
"""A private-use character, which article text does not hold and `normalise` keeps; `assemble`
takes it out again."""


def mark_headings(text: str) -> str:
    """Return text with its heading lines as blocks that `assemble` knows."""
    return _HEADING.sub(_heading_text, text)


def _heading_text(match: re.Match[str]) -> str:
    """Return a heading line as `assemble` knows it, any other line as it is."""
    line = match[0].rstrip(" \t")
    lead, trail = len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("="))
    level = min(lead, trail, 6, (len(line) - 1) // 2)
    title = line[level : len(line) - level].strip(" \t")
    return f"\n\n{_LEVEL_MARK}{level}{title}\n\n" if level and title else match[0]


def assemble(text: str) -> tuple[str, list[Heading]]:
    """Join paragraphs by a blank line, drop empty headings, note heading places."""
    pieces: list[str] = []
    headings: list[Heading] = []
    length = 0
    for level, block in _without_empty_sections(
        [block for block in _BLANK.split(text.strip()) if block.strip()]
    ):
        if pieces:
            length += 2
        if level:
            headings.append(Heading(length, length + len(block), level, block))
        pieces.append(block)
        length += len(block)
    return "\n\n".join(pieces), headings


def _without_empty_sections(blocks: list[str]) -> Iterator[tuple[int, str]]:
    marked = [_level_of(block.strip()) for block in blocks]
    marked.append((1, ""))
    for (level, block), (next_level, _) in pairwise(marked):
        empty = level and next_level and next_level <= level
        if block and not empty and block.strip("-* \n"):
            yield level, block


def _level_of(block: str) -> tuple[int, str]:
    if block.startswith(_LEVEL_MARK):
        title = block[2:].replace("\n", " ").strip()
        return (int(block[1]), title) if title else (0, "")
    return 0, block
