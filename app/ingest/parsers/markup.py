"""Read reStructuredText by docutils, whose HTML is read like a page, AsciiDoc and Org by lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from docutils.parsers.rst import Directive, Parser, directives, roles, states
from docutils.parsers.rst.languages import en

from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Cell, write
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.formulas import formula
from app.ingest.parsers.html import parse_fragment
from app.ingest.parsers.plain import parse_plain
from app.ingest.parsers.sniffing import decode

_LONGEST = 1_000_000
"""Characters: docutils reads 35 thousand a second."""
_MOST_MARKS = 200
"""Of one paragraph, which takes the square of them."""
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "halt_level": 6,
    "report_level": 5,
    "line_length_limit": _LONGEST,
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "embed_stylesheet": False,
    "stylesheet_path": None,
    "initial_header_level": 2,
    "output_encoding": "unicode",
}
_DIRECTIVE = re.compile(r"^[ \t]*\.\. (?:\|[^|\n]+\| )?([\w:+-]{1,60})::", re.MULTILINE)
_WITHOUT_TEXT = frozenset(
    "contents toctree index highlight module currentmodule py:module py:currentmodule"
    " default-domain default-role tabularcolumns sectionauthor codeauthor meta".split()
)
_CODE = frozenset({"code", "code-block", "sourcecode"})
"""Those of Sphinx have options that docutils refuses."""
_CHANGES = frozenset({"versionadded", "versionchanged", "versionremoved", "deprecated"})
_FROM_ELSEWHERE = re.compile(
    r"include|csv-table|raw|image|figure|auto\w+|literalinclude|graphviz\Z"
)
_TARGET = re.compile(r"[ \t]*<[^<>]*>\Z")
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")


class _Inliner(states.Inliner):
    """Reads marks in paragraphs that a person writes, and unknown roles as their text."""

    def parse(
        self, text: str, lineno: int, memo: SimpleNamespace, parent: nodes.Element
    ) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if sum(map(text.count, "*`|_")) > _MOST_MARKS:
            return [nodes.Text(text)], []
        return super().parse(text, lineno, memo, parent)

    def interpreted(
        self, rawsource: str, text: str, role: str, lineno: int
    ) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        known, _ = roles.role(role, self.language, lineno, self.reporter)
        if role and known is None:
            label = _TARGET.sub("", nodes.unescape(text)).lstrip("!")
            label = label.rpartition(".")[2] if label.startswith("~") else label
            return [nodes.Text(label)], []
        return super().interpreted(rawsource, text, role, lineno)


for _name, _value in vars(states.Inliner).items():  # which reads patterns of its own class only
    if not _name.startswith("__") and _name not in vars(_Inliner):
        setattr(_Inliner, _name, _value)


class _Unknown(Directive):
    """A directive of another program, such as Sphinx: its arguments, then its content."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = defaultdict(
        lambda: str, name=str
    )

    def run(self) -> list[nodes.Node]:
        if self.name.lower() in _WITHOUT_TEXT:
            return []
        if self.name.lower() in _CODE:
            return [nodes.literal_block("", "\n".join(self.content))]
        held = nodes.container()
        if self.arguments:
            what = f"{self.name}: " if self.name in _CHANGES else ""
            held += nodes.paragraph("", what + self.arguments[0])
        self.state.nested_parse(self.content, self.content_offset, held)
        return held.children


def parse_rst(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return reStructuredText with its headings, lists, tables, code and notes.

    Directives and roles of Sphinx give their text. Nothing is included from elsewhere. What is too
    long or too deep for docutils is read as plain text, with a warning.

    Raises:
        UnsupportedType: The bytes are not text.
        Unreadable: It passes the bounds of the HTML reader.
    """
    source, warnings = decode(content)
    if len(source) > _LONGEST:
        return _as_text(content, "too long")
    used = set(_DIRECTIVE.findall(source))
    for name in used:
        if name.lower() not in en.directives or name.lower() in _WITHOUT_TEXT | _CODE:
            directives.register_directive(name.lower(), _Unknown)
    try:
        tree = publish_doctree(
            source, parser=Parser(inliner=_Inliner()), settings_overrides=_SETTINGS
        )
        authors = [one.astext() for one in tree.findall(nodes.author)]
        date = next((one.astext() for one in tree.findall(nodes.date)), "")
        for inline in list(tree.findall(nodes.math)):
            inline.replace_self(nodes.Text(formula(inline.astext())))
        for block in list(tree.findall(nodes.math_block)):
            block.replace_self(nodes.paragraph("", formula(block.astext())))
        page = publish_from_doctree(tree, writer="html5", settings_overrides=_SETTINGS)
    except RecursionError:
        return _as_text(content, "too deep within itself")
    read = parse_fragment(page, filename)
    unread = sorted(name for name in used if _FROM_ELSEWHERE.match(name))
    year = _YEAR.search(date)
    warnings = (*warnings, *read.warnings)
    if unread:
        left_out = f"what directives take from elsewhere is not read: {', '.join(unread)}"
        warnings = (*warnings, left_out)
    return write(
        read.blocks,
        "rst",
        title=str(tree.get("title") or "") or None,
        authors=authors,
        year=int(year[1]) if year else None,
        warnings=warnings,
        hidden=read.hidden,
    )


def _as_text(content: bytes, why: str) -> ParsedDocument:
    plain = parse_plain(content)
    note = f"it is {why} to be read as reStructuredText, and was read as plain text"
    return replace(plain, media_type=FORMATS["rst"].media_type, warnings=(*plain.warnings, note))


_ASCIIDOC_BLOCK = re.compile(
    r"^(?P<fence>-{4,40}|\.{4,40}|\+{4,40}|/{4,40}|`{3,40})\w*\n(?P<code>.*?)^(?P=fence)[ \t]*$"
    r"|^\|===[ \t]*\n(?P<table>.*?)^\|===[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_ASCIIDOC_LINE = re.compile(
    r"(?P<level>={1,6}) +(?P<title>\S.*)|(?P<mark>[*-]{1,5}|\.{1,5}|\d{1,3}\.) +(?P<item>\S.*)"
    r"|(?P<unseen>//(?!/).*|\[[^\[\]]*\]|:[\w!-]+:.*|(?:image|include|toc)::.*|\+|[_=*]{4,}|--|)"
    r"|\.(?P<caption>[^\s.].*)|(?P<label>(?!image|include|toc)\S(?:.{0,58}?\S)??):{2,4}"
    r"(?:[ \t]+(?P<value>\S.*))?"
)
_ASCIIDOC_MARK = re.compile(r"(?<!\w)([*_`+]{1,2})(\S(?:[^\n*_`+]{0,200}\S)?)\1(?!\w)")
_ASCIIDOC_LINK = re.compile(
    r"(?:link:|https?://|xref:)[^\s\[\]]{1,300}\[([^\[\]]{1,200})\]"
    r"|<<[^<>,]{1,100},([^<>]{1,200})>>"
)


def parse_asciidoc(content: bytes, *_: object) -> ParsedDocument:
    """Return AsciiDoc with its headings, lists, tables and code."""
    source, warnings = decode(content)
    blocks = list(_asciidoc(source))
    first = next((one for one in blocks if one.kind == "heading" and one.level == 1), None)
    included = ("what it includes is not read",) if "\ninclude::" in source else ()
    return write(
        blocks, "asciidoc", title=first.text if first else None, warnings=(*warnings, *included)
    )


def _asciidoc(source: str) -> Iterator[Block]:
    at = 0
    for found in _ASCIIDOC_BLOCK.finditer(source):
        yield from _asciidoc_lines(source[at : found.start()])
        at = found.end()
        if found["table"] is not None:
            yield Block("table", rows=_asciidoc_rows(found["table"]))
        elif not found["fence"].startswith("/"):
            yield Block("code", found["code"])
    yield from _asciidoc_lines(source[at:])


def _asciidoc_rows(table: str) -> list[list[Cell]]:
    """Return rows of as many cells as the first line has, on the same line or one each."""
    lines = [line.split("|")[1:] for line in table.splitlines() if "|" in line]
    cells = [Cell(_without_marks(cell.strip())) for line in lines for cell in line]
    width = len(lines[0]) if lines else 1
    return [cells[at : at + width] for at in range(0, len(cells), width)]


def _asciidoc_lines(source: str) -> Iterator[Block]:
    held: list[str] = []
    label = ""
    for line in [*source.splitlines(), ""]:
        found = _ASCIIDOC_LINE.fullmatch(line.rstrip())
        if found is None:
            held.append(line.strip())
            continue
        if label and not held and found["unseen"] == "":
            continue  # the value of a label may stand below a blank line
        said = _without_marks("\n".join(held))
        yield Block("field", said, mark=label) if label else Block("paragraph", said)
        held, label = [], ""
        if found["label"]:
            label = _without_marks(found["label"])
            held += [found["value"]] if found["value"] else []
            continue
        text = _without_marks(found["title"] or found["item"] or found["caption"] or "")
        if found["title"]:
            yield Block("heading", text, level=len(found["level"]))
        elif found["item"]:
            number = found["mark"] if found["mark"][0].isdigit() else ""
            yield Block("item", text, mark=number, level=0 if number else len(found["mark"]) - 1)
        else:
            yield Block("caption", text)


def _without_marks(text: str) -> str:
    text = _ASCIIDOC_LINK.sub(lambda found: found[1] or found[2], text)
    return _ASCIIDOC_MARK.sub(r"\2", text)


# Org (https://orgmode.org/worg/org-syntax.html).

_ORG_LINE = re.compile(
    r"(?P<stars>\*{1,20})[ \t]+(?P<title>\S.*?)(?:[ \t]+(?P<tags>:[\w@#%:]+:))?"
    r"|[ \t]*\|(?P<row>.*)"
    r"|[ \t]*#\+(?P<key>[\w-]+):[ \t]*(?P<said>.*)"
    r"|[ \t]*(?P<unseen>\#(?:[ \t].*)?|:(?:PROPERTIES|LOGBOOK|END):|-{5,}|)"
    r"|[ \t]*:(?P<label>[\w-]+):[ \t]+(?P<value>\S.*)"
    r"|[ \t]*(?P<planned>(?:(?:DEADLINE|SCHEDULED|CLOSED):[ \t]*[<\[][^<>\[\]]*[>\]][ \t]*)+)"
    r"|(?P<indent>[ \t]*)(?P<mark>[-+]|\d{1,6}[.)])[ \t]+(?:(?P<term>\S.*?)[ \t]+::[ \t]+)?"
    r"(?P<item>\S.*)"
)
_ORG_BLOCK = re.compile(
    r"^[ \t]*#\+begin_(?P<kind>\w+)[^\n]*\n(?P<held>.*?)^[ \t]*#\+end_(?P=kind)[ \t]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_ORG_CODE = frozenset({"src", "example", "export"})
_ORG_PLAN = re.compile(r"([A-Z]+):[ \t]*[<\[]([^<>\[\]]*)[>\]]")
_ORG_STAMP = re.compile(r"[<\[](\d{4}-\d\d-\d\d[^<>\[\]\n]{0,40})[>\]]")
_ORG_LINK = re.compile(r"\[\[([^\[\]\n]{1,500})\](?:\[([^\[\]\n]{1,500})\])?\]")
_ORG_MARK = re.compile(r"(?<![\w*/_=~+])([*/_=~])(\S(?:[^\n]{0,200}?\S)?)\1(?![\w*/_=~])")
_ORG_RULE = re.compile(r"[-+| \t:]*")
_INDENT = 2


def parse_org(content: bytes, *_: object) -> ParsedDocument:
    """Return Org with its headings, properties, dates, lists, tables and code."""
    source, warnings = decode(content)
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    said: dict[str, str] = {}
    blocks: list[Block] = []
    at = 0
    for found in _ORG_BLOCK.finditer(source):
        blocks += _org_lines(source[at : found.start()], said)
        at = found.end()
        kind, held = found["kind"].lower(), found["held"]
        if kind in _ORG_CODE:
            blocks.append(Block("code", held))
        elif kind != "comment":
            blocks.append(Block("quote", _org_text(held.strip())))
    blocks += _org_lines(source[at:], said)
    year = _YEAR.search(said.get("date", ""))
    return write(
        blocks,
        "org",
        title=said.get("title") or None,
        authors=[said["author"]] if said.get("author") else [],
        year=int(year[1]) if year else None,
        warnings=warnings,
    )


def _org_lines(source: str, said: dict[str, str]) -> Iterator[Block]:
    """Yield what lines say; settings of the file go into `said`."""
    held: list[str] = []
    rows: list[list[Cell]] = []
    for line in [*source.split("\n"), ""]:
        found = _ORG_LINE.fullmatch(line.rstrip())
        if rows and (found is None or found["row"] is None):
            yield Block("table", rows=rows)
            rows = []
        if found is None:
            held.append(line.strip())
            continue
        yield Block("paragraph", _org_text("\n".join(held)))
        held = []
        if found["row"] is not None:
            if not _ORG_RULE.fullmatch(found["row"]):
                cells = found["row"].strip().removesuffix("|").split("|")
                rows.append([Cell(_org_text(cell.strip())) for cell in cells])
        elif found["key"]:
            said.setdefault(found["key"].lower(), found["said"])
        else:
            yield from _org_block(found)


def _org_block(found: re.Match[str]) -> Iterator[Block]:
    if found["title"]:
        yield Block("heading", _org_text(found["title"]), level=len(found["stars"]))
    elif found["label"]:
        yield Block("field", _org_text(found["value"]), mark=found["label"].capitalize())
    elif found["planned"]:
        for name, moment in _ORG_PLAN.findall(found["planned"]):
            yield Block("field", moment, mark=name.capitalize())
    elif found["item"]:
        yield _org_item(found)


def _org_item(found: re.Match[str]) -> Block:
    text = _org_text(found["item"])
    if found["term"]:
        return Block("field", text, mark=_org_text(found["term"]))
    mark = found["mark"] if found["mark"][0].isdigit() else "-"
    return Block("item", text, mark=mark, level=len(found["indent"].expandtabs()) // _INDENT)


def _org_text(text: str) -> str:
    text = _ORG_LINK.sub(lambda found: found[2] or found[1], text)
    return _ORG_MARK.sub(r"\2", _ORG_STAMP.sub(r"\1", text))
