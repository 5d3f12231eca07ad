"""Markdown: kept as readable text, marks that only format removed, headings found."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.core.normalisation import normalise
from app.core.types import Heading, ParsedDocument
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.html import table_lines
from app.ingest.parsers.sniffing import decode

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_MATTER_FIELD = re.compile(
    r"^(title|authors?|date|year)[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE
)
_FRONT_MATTER_ITEM = re.compile(r"^[ \t]*-[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_ATX = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*\Z")
_SETEXT = re.compile(r"[ ]{0,3}(=+|-+)[ \t]*\Z")
# Matches are bounded, and what is matched holds no other opening mark: one without an end must
# not scan the rest of its line each time.
_TARGET = r"\((?:[^()\n]{1,2000}+|\([^()\n]{0,2000}+\)){0,20}+\)"
"""Of a link, with pairs of brackets as in .../Heron_(bird)."""
_IMAGE = re.compile(rf"!\[([^\[\]\n]{{0,500}}+)\]{_TARGET}")
_LINK = re.compile(rf"\[([^\[\]\n]{{1,500}}+)\]{_TARGET}|<(https?://[^<>\s]{{1,2000}}+)>")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.{1,500}?)(?<=\S)\1")
_TABLE_RULE = re.compile(r"[ ]{0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
"""The line under a table's head (GitHub Flavored Markdown, section 4.10)."""
_CELL_END = re.compile(r"(?<!\\)\|")
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")


def parse_markdown(content: bytes, *_: object) -> ParsedDocument:
    """Return Markdown as readable text, without marks, comments and front matter.

    Heading, link and bold marks. Lists, quotes and code stay as written; the cells of a table get
    the labels of their columns. Comments are invisible to readers and count as stripped characters.

    Raises:
        UnsupportedType: The bytes are not text.
    """
    source, warnings = decode(content)
    text, stripped = normalise(source)
    front = _FRONT_MATTER.match(text)
    fields = _read_front_matter(front[1]) if front else {}
    body = text[front.end() :] if front else text
    body, hidden = _drop_comments(body)
    lines, headings = _read_lines(list(_with_labels(body.split("\n"))))
    year = _YEAR.search(fields.get("date", "") or fields.get("year", ""))
    return ParsedDocument(
        text="\n".join(lines),
        media_type=FORMATS["markdown"].media_type,
        headings=tuple(headings),
        title=fields.get("title") or None,
        authors=tuple(
            name.strip()
            for name in fields.get("author", fields.get("authors", "")).split("\n")
            if name.strip()
        ),
        year=int(year[1]) if year else None,
        warnings=warnings,
        stripped_characters=stripped + hidden,
    )


def _read_front_matter(block: str) -> dict[str, str]:
    """Return title, author (one a line) and date of a YAML header of simple values and lists."""
    fields: dict[str, str] = {}
    for match in _FRONT_MATTER_FIELD.finditer(block):
        value = match[2]
        if not value:
            following = block[match.end() :]
            listed = re.match(r"(?:\n[ \t]*-[^\n]*)+", following)
            value = "\n".join(_FRONT_MATTER_ITEM.findall(listed[0])) if listed else ""
        elif value.startswith("["):
            value = value.strip("[]").replace(",", "\n")
        fields[match[1].lower()] = "\n".join(
            item.strip().strip("\"'") for item in value.split("\n")
        )
    return fields


def _drop_comments(text: str) -> tuple[str, int]:
    hidden = sum(len("".join(comment.split())) for comment in _COMMENT.findall(text))
    return (_COMMENT.sub("", text), hidden) if hidden else (text, 0)


def _with_labels(source: list[str]) -> Iterator[str]:
    """Yield lines; of a table outside of code one line a row, its cells labelled."""
    fence, at = "", 0
    while at < len(source):
        line = source[at]
        fence = _fence_after(line, fence)
        if fence or not _begins_table(source, at):
            yield line
            at += 1
            continue
        rows = [_cells(line)]
        at += 2
        while at < len(source) and "|" in source[at]:
            rows.append(_cells(source[at]))
            at += 1
        yield from table_lines(rows, header=True)


def _begins_table(source: list[str], at: int) -> bool:
    """Return whether a line is the head of a table: as many cells as the rule below it."""
    if "|" not in source[at] or at + 1 == len(source):
        return False
    rule = source[at + 1]
    return (
        "|" in rule
        and _TABLE_RULE.match(rule) is not None
        and len(_cells(rule)) == len(_cells(source[at]))
    )


def _cells(line: str) -> list[str]:
    """Return the cells of a table's row, escaped bars as they are read."""
    inner = line.strip().removeprefix("|")
    cells = _CELL_END.split(inner)
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [cell.replace("\\|", "|").strip() for cell in cells]


def _fence_after(line: str, fence: str) -> str:
    """Return the mark of the code block that is open behind a line; empty outside of code."""
    mark = _FENCE.match(line)
    if not fence:
        return mark[1] if mark else ""
    ends = mark is not None and mark[1].startswith(fence) and not line.strip(" `~")
    return "" if ends else fence


def _read_lines(source: list[str]) -> tuple[list[str], list[Heading]]:
    lines: list[str] = []
    headings: list[Heading] = []
    position = 0
    fence = ""
    for line in source:
        level, shown = 0, line
        inside, fence = bool(fence), _fence_after(line, fence)
        if not (inside or fence):
            atx = _ATX.match(line)
            underline = _SETEXT.match(line)
            if atx:
                level, shown = len(atx[1]), _readable(atx[2])
            elif (
                underline
                and lines
                and _can_be_title(lines[-1])
                and (not headings or headings[-1].end < position - 1)
            ):
                previous = lines[-1].strip()
                start = position - 1 - len(lines[-1].lstrip())
                headings.append(
                    Heading(
                        start, start + len(previous), 1 if underline[1][0] == "=" else 2, previous
                    )
                )
                continue
            else:
                shown = _readable(line)
        if level and shown:
            headings.append(Heading(position, position + len(shown), level, shown))
        lines.append(shown)
        position += len(shown) + 1
    return lines, headings


def _can_be_title(line: str) -> bool:
    return (
        bool(line.strip())
        and not line.lstrip().startswith(("-", "*", "+", ">", "|", "#"))
        and len(line) <= 120
    )


def _readable(line: str) -> str:
    if "[" in line or "<" in line:
        line = _IMAGE.sub(r"\1", line)
        line = _LINK.sub(lambda m: m[1] or m[2], line)
    return _STRONG.sub(r"\2", line) if "**" in line or "__" in line else line
