"""Read rich text (RTF) by striprtf: paragraphs, headings by their outline level, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from striprtf.striprtf import rtf_to_text

from app.core.errors import Unreadable
from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Cell, lowered, raised, write
from app.ingest.parsers.headings import find_headings

_HEADING = "\ufde0"
"""A noncharacter in front of a heading, with its level behind it."""
_OUTLINE = re.compile(r"\\outlinelevel([0-8])(?!\d) ?")
_FONT = re.compile(r"\\f(\d{1,5})(?!\d)[^;]{0,300}?\\fcharset(\d{1,3})")
_NOTE = "{\\footnote"
_BRACE = re.compile(r"[{}]")
_ROW = re.compile(r"\\(?:nest)?row(?![a-z])")
_PARAGRAPH = re.compile(r"\\(?:par|line)(?![a-z])")
_HIDDEN = re.compile(r"\{[^{}]*\\v(?![a-z0-9])[^{}]*\}")
_STRUCK = re.compile(r"\{[^{}]*\\striked?1?(?![a-z0-9])[^{}]*\}")
_SHIFTED = re.compile(r"\{([^{}]*)\\(super|sub)(?![a-z0-9]) ?([^{}\\]*)\}")
_ABOUT = re.compile(r"\{\\(title|author)\b ?([^{}]{0,1000})\}")
_YEAR = re.compile(r"\{\\creatim\\yr(\d{4})")
_UNREAD = (("\\pict", "pictures"), ("\\annotation", "comments"), ("\\objdata", "embedded objects"))


def parse_rtf(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return rich text without hidden parts, which count as stripped, and struck-through ones."""
    whole = content.decode("cp1252", "replace")
    source = _HIDDEN.sub("", whole)
    hidden = len(whole) - len(source)
    source, struck = _STRUCK.subn("", source)
    source = _with_notes(_SHIFTED.sub(_shifted, source))
    about = dict(_ABOUT.findall(source))
    try:
        text = rtf_to_text(_prepared(source), errors="replace")
        title, author = (
            rtf_to_text(f"{{\\rtf1 {about.get(key, '')}}}", errors="replace").strip()
            for key in ("title", "author")
        )
    except (ValueError, LookupError, TypeError, OverflowError) as exc:
        raise Unreadable(
            f"{filename!r} is damaged rich text ({type(exc).__name__}); open it in a word processor"
            " and save it again"
        ) from exc
    year = _YEAR.search(source)
    warnings = ["struck-through text is left out"] if struck else []
    unread = [name for mark, name in _UNREAD if mark in source]
    parsed = write(
        _blocks(text),
        "rtf",
        title=title or None,
        authors=[author] if author else [],
        year=int(year[1]) if year else None,
        warnings=[*warnings, *([f"{' and '.join(unread)} are not read"] if unread else [])],
        hidden=hidden,
    )
    if parsed.headings:
        return parsed
    return replace(parsed, headings=tuple(find_headings(parsed.text, isolated_caps=True)))


def _shifted(found: re.Match[str]) -> str:
    mark = raised if found[2] == "super" else lowered
    return f"{{{found[1]} {mark(found[3])}}}" if found[1] else mark(found[3])


def _with_notes(source: str) -> str:
    """Return the source with its footnotes as paragraphs behind everything else."""
    parts: list[str] = []
    notes: list[str] = []
    at = 0
    while (start := source.find(_NOTE, at)) >= 0:
        depth, end = 0, len(source)
        for brace in _BRACE.finditer(source, start):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                end = brace.end()
                break
        parts.append(source[at:start])
        notes.append(f"{{{source[start + len(_NOTE) : end]}")
        at = end
    if not notes:
        return source
    body, last, rest = "".join([*parts, source[at:]]).rpartition("}")
    return "\\par\\pard ".join([body, *notes]) + last + rest


def _prepared(source: str) -> str:
    """Return the source as the library reads it in one pass, with headings marked.

    It looks for links and fonts by expressions that take the square of a line's length, and ends a
    row at each paragraph of a cell.
    """
    source = source.replace("{\\field", "{\\fld")
    if (start := source.find("{\\fonttbl")) >= 0:
        depth = 0
        end = len(source)
        for brace in _BRACE.finditer(source, start):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                end = brace.end()
                break
        fonts = _FONT.findall(source[start:end])
        table = "".join(f"{{\\f{font}\\fcharset{kind} x;}}\n" for font, kind in fonts)
        source = f"{source[:start]}{{\\fonttbl{table}}}{source[end:]}"
    rows = _ROW.split(source)
    for at, row in enumerate(rows[:-1]):
        begin = max(row.find("\\trowd"), 0)
        rows[at] = row[:begin] + _PARAGRAPH.sub(" ", row[begin:])
    return _OUTLINE.sub(lambda one: f"{one[0]}{_HEADING}{int(one[1]) + 1}", "\\row ".join(rows))


def _blocks(text: str) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for line in [*text.split("\n"), ""]:
        if line.rstrip().endswith("|"):
            rows.append([Cell(cell.strip()) for cell in line.rstrip()[:-1].split("|")])
            continue
        if rows:
            yield Block("table", rows=rows)
            rows = []
        _, mark, heading = line.rpartition(_HEADING)
        if mark:
            yield Block("heading", heading[1:], level=int(heading[:1] or 1))
        else:
            yield Block("paragraph", line)
