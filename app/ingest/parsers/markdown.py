"""Markdown by markdown-it-py: it becomes HTML, whose blocks are read like those of a page."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from app.core.labels import found_labels
from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, write
from app.ingest.parsers.formulas import formula
from app.ingest.parsers.html import parse_fragment
from app.ingest.parsers.sniffing import decode

_FRONT_MATTER = re.compile(
    r"\A(?:(?P<yaml>---)|(?P<toml>\+\+\+))[ \t]*\n(?P<fields>.{0,65536}?\n)"
    r"(?(yaml)(?:---|\.\.\.)|\+\+\+)[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
_WIKI_LINK = re.compile(r"!?\[\[(?:[^\[\]|\n`]{1,200}\|)?([^\[\]|\n`]{1,200})\]\]")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DIALECTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\A\[!([^\W\d_]+)\][+-]?[ \t]*"), lambda one: f"{one[1].capitalize()}: "),
    (re.compile(r"\A\[([ xX])\](?=[ \t])"), lambda one: "\u2610" if one[1] == " " else "\u2612"),
    (re.compile(r"\A([^\W\d_][\w /()-]{0,59}?)::(?=[ \t]+\S)"), lambda one: f"{one[1]}:"),
    (re.compile(r"([\[(])([^\W\d_][\w -]{0,59})::(?=[ \t])"), lambda one: f"{one[1]}{one[2]}:"),
    (re.compile(r"(?<![=\w])==(?=\S)([^=\n]{1,500})(?<=\S)==(?![=\w])"), lambda one: one[1]),
    (re.compile(r"(?:\A|[ \t])\^(?=[\w-]*[^\W\d_])[A-Za-z0-9-]{3,}\Z"), lambda _: ""),
)
"""Marks of other dialects (Obsidian, GitHub): callouts, tasks, fields, marked text, names of
blocks."""
_ASIDE = re.compile(r"%%[^%\n]*%%")
"""What Obsidian does not show."""
_DEEPEST = 60
"""Of blocks within one another; markdown-it skips what is deeper."""
_FULL_LINE = 50
"""Characters: a shorter line of the source is one by intent, such as that of an address."""
_LONGEST_PARAGRAPH = 20_000
_MOST_FIELDS = 200
_OF_THE_DOCUMENT = frozenset({"title", "author", "authors"})
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")


def parse_markdown(content: bytes, filename: str = "the file", *_: object) -> ParsedDocument:
    """Return Markdown as its readers see it: headings, lists, labelled tables, code as written.

    Fields of its front matter (YAML or TOML) stand first, one a line, and are labels too. Comments
    count as stripped characters.

    Raises:
        UnsupportedType: The bytes are not text.
        Unreadable: Its HTML passes the bounds of `parse_html`.
    """
    source, warnings = decode(content)
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    values, body = front_matter(source)
    fields = list(islice(_flat(values or {}, ""), _MOST_FIELDS))
    tokens = _markdown().parse(body)
    hidden = sum(_prepared(token) for token in tokens)
    if max((token.level for token in tokens), default=0) >= _DEEPEST - 1:
        warnings = (*warnings, f"blocks more than {_DEEPEST} deep within one another are not read")
    renderer = _markdown().renderer
    page = parse_fragment(renderer.render(tokens, _markdown().options, {}), filename)
    known = {key.lower(): value for key, value in fields}
    year = _YEAR.search(known.get("date", "") or known.get("year", ""))
    others = (field for field in fields if field[0].lower() not in _OF_THE_DOCUMENT)
    shown = [Block("field", value, mark=key) for key, value in others]
    authors = known.get("author") or known.get("authors") or ""
    own = {k: v for k, v in (values or {}).items() if str(k).lower() not in _OF_THE_DOCUMENT}
    tags = next((own.pop(key) for key in list(own) if str(key).lower() == "tags"), None)
    parsed = write(
        [*shown, *page.blocks],
        "markdown",
        title=known.get("title") or None,
        authors=[name for name in map(str.strip, authors.split(",")) if name],
        year=int(year[1]) if year else None,
        warnings=(*warnings, *page.warnings),
        hidden=page.hidden + hidden,
    )
    return replace(parsed, labels=found_labels(tags, own))


def front_matter(source: str) -> tuple[dict[Any, object] | None, str]:
    """Return the values of a front matter (YAML or TOML) and the text behind it.

    None and the whole text where there is none, such as text between rules.
    """
    front = _FRONT_MATTER.match(source)
    values = _values(front) if front else None
    return (values, source[front.end() :]) if front and values is not None else (None, source)


@cache
def _markdown() -> MarkdownIt:
    """Return the reader of CommonMark with the extensions that people write."""
    markdown = MarkdownIt("commonmark", {"maxNesting": _DEEPEST})
    markdown.enable(["table", "strikethrough"])
    markdown.use(footnote_plugin).use(deflist_plugin)
    markdown.core.ruler.before("inline", "long", _leave_long)
    markdown.use(dollarmath_plugin, allow_digits=False, allow_space=False, renderer=_formula)
    return markdown


def _prepared(token: Token) -> int:
    """Change what HTML would lose: alternative texts, links of wikis, lines that are no prose.

    Returns how many characters of comments the token holds.
    """
    hidden = length = 0
    for one in (token, *(token.children or ())):
        if one.type in ("html_block", "html_inline"):
            comments = _COMMENT.findall(one.content)
            hidden += sum(len("".join(comment.split())) for comment in comments)
        elif one.type == "image":
            one.type = "text"
        elif one.type == "text":
            asides = _ASIDE.findall(one.content)
            hidden += sum(len("".join(aside.split())) for aside in asides)
            one.content = _ASIDE.sub("", _WIKI_LINK.sub(r"\1", one.content))
            for pattern, shown in _DIALECTS:
                one.content = pattern.sub(shown, one.content)
        elif one.type == "softbreak" and length < _FULL_LINE:
            one.type = "hardbreak"
        length = length + len(one.content) if one.type in ("text", "code_inline") else length
        length = 0 if one.type.endswith("break") else length
    return hidden


def _leave_long(state: StateCore) -> None:
    """Leave paragraphs as they are that no person writes: marks in them cost seconds each."""
    for token in state.tokens:
        if token.type == "inline" and len(token.content) > _LONGEST_PARAGRAPH:
            token.type = "text"


def _formula(tex: str, _: Mapping[str, object]) -> str:
    return formula(tex).replace("&", "&amp;").replace("<", "&lt;")


def _values(front: re.Match[str]) -> dict[Any, object] | None:
    try:
        read = tomllib.loads if front["toml"] else yaml.safe_load
        values = read(front["fields"])
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _flat(values: Mapping[Any, object], above: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{above}{key}"
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flat(value, f"{name} ", depth + 1)
        elif isinstance(value, list):
            plain = [str(item) for item in value if not isinstance(item, dict | list)]
            yield name, ", ".join(plain[:_MOST_FIELDS])
        elif value is not None:
            yield name, str(value)
