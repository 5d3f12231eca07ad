"""Read plain text, everything that is read as it (logs, settings), and source code as written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from app.core.normalisation import normalise
from app.core.types import BlockSpan, Heading, ParsedDocument
from app.ingest.parsers.drawn_tables import with_rows
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.headings import find_headings
from app.ingest.parsers.sniffing import (
    decode,
    encoded_data,
    without_encoded,
    without_terminal_codes,
)


def parse_plain(content: bytes, *_: object) -> ParsedDocument:
    """Return the text as written, with numbered, capital and well-known headings.

    Tables that are drawn with signs are rows with labels.
    """
    source, warnings = decode(content)
    source, encoded = without_encoded(without_terminal_codes(source).replace("\f", "\n\n"))
    text, stripped = normalise(with_rows(source))
    return ParsedDocument(
        text=text,
        media_type=FORMATS["text"].media_type,
        headings=tuple(find_headings(text, isolated_caps=True)),
        warnings=(*warnings, *encoded_data(encoded)),
        stripped_characters=stripped,
    )


# Source code: sections begin at functions and classes, lines stay whole.

_BRACES = (
    r"(?:(?:export|default|public|private|protected|internal|static|abstract|final|sealed|async|pub"
    r"(?:\([a-z]+\))?|unsafe|open|data|override|inline|extern|constexpr|partial)[ ]+){0,6}"
    r"(?:function\*?|func|fun|fn|class|interface|struct|enum|trait|impl|object|record|namespace"
    r"|module|protocol|extension|type|contract|union)\b[^\n;]*"
    r"|(?!(?:else|return|new|throw|case|if|for|while|switch)\b)"
    r"[A-Za-z_][\w:<>*&,\[\] ]{0,120}[ *&]"
    r"[A-Za-z_~][\w:~]*\([^\n;]*\{[^\n]*"
)
"""Declarations of languages with braces, at the beginning of a line."""
_FAMILIES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        suffix: re.compile(pattern, re.MULTILINE)
        for suffixes, pattern in (
            (".py .pyi", r"^(?:async def|def|class)\b[^\n]*"),
            (".rb .ex .exs .jl", r"^(?:def|defmodule|class|module|function|struct)\b[^\n]*"),
            (".sh .bash .zsh", r"^(?:function[ ]+[\w-]|[\w-]{1,80}[ ]?\(\))[^\n]*"),
            (".sql", r"^(?i:create)\b[^\n]*"),
            (".lua", r"^(?:local[ ]+)?function\b[^\n]*"),
            (".r", r"^[\w.]{1,60}[ ]*(?:<-|=)[ ]*function\b[^\n]*"),
            (".pl .pm", r"^(?:sub|package)\b[^\n]*"),
        )
        for suffix in suffixes.split()
    }
)
_WITH_BRACES = re.compile(f"^(?:{_BRACES})", re.MULTILINE)
_LONGEST_NAME = 200
_MOST_SECTIONS = 5_000


def parse_code(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return source code, byte for byte but for its normal form."""
    source, warnings = decode(content)
    text, stripped = normalise(source)
    family = _FAMILIES.get(PurePosixPath(filename.lower()).suffix, _WITH_BRACES)
    headings = []
    for found in family.finditer(text):
        title = found[0].rstrip()[:_LONGEST_NAME].rstrip()
        end = found.start() + len(title)
        headings.append(Heading(found.start(), end, 1, " ".join(title.split())))
    lines = []
    at = 0
    for line in text.split("\n"):
        if line.strip():
            lines.append(BlockSpan("line", at, at + len(line)))
        at += len(line) + 1
    return ParsedDocument(
        text=text,
        media_type=FORMATS["code"].media_type,
        headings=tuple(headings[:_MOST_SECTIONS]),
        blocks=tuple(lines),
        warnings=warnings,
        stripped_characters=stripped,
    )
