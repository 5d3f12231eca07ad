"""Convert wikitext to blocks, fast.

Markup is removed innermost first by passes of compiled expressions, each linear and at most a
hundred of them; then lines become blocks. Brackets without an end are shown by MediaWiki as they
stand; here they are left out.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from functools import partial

from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Cell, lowered, raised, write
from app.ingest.parsers.templates import BAR, FIELD, LABEL_END, LINE, template_text

_PRIVATE = re.compile("[\ue000-\ue0ff\ufdd0-\ufdd2]")
"""Characters that mean something to us between here and the blocks."""
_SAVED = "\ue000"
"""Stands before and behind the number of a piece of code."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ELEMENTS = (
    "ref|references|math|chem|ce|nowiki|pre|syntaxhighlight|source|gallery|timeline|imagemap|score"
    "|graph|hiero|templatedata|categorytree|inputbox|section|mapframe|maplink|templatestyles"
    "|indicator|s|del|strike"
)
_OPEN = re.compile(rf"<({_ELEMENTS})\b((?:[^<>/]|/(?!>))*+)(/?)>", re.IGNORECASE)
"""An attribute may hold a slash, so the opening tag ends at the first '/>' or '>'."""
_CLOSE = re.compile(rf"</({_ELEMENTS})\s*+>", re.IGNORECASE)
_LITERAL = str.maketrans({char: f"&#{ord(char)};" for char in "&<>[]{}'=*#:;_-|!"})
_RAISED = re.compile(r"<(su[bp])\b[^<>]*+>((?:[^<]|<(?!/?su[bp]\b))*+)</\1\s*+>", re.IGNORECASE)

_TEMPLATE = re.compile(r"\{\{([^{}]*)\}\}")
_BRACED_TEMPLATE = re.compile(r"\{\{((?:[^{}]|\{(?!\{)|\}(?!\}))*+)\}\}")
"""With single braces in its text."""
_PARAMETER = re.compile(r"\{\{\{[^{}]*\}\}\}")
_PLAIN_LINK = re.compile(r"\[\[([^\[\]{}]*)\]\]")
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_BRACKETS_IN_LINK = re.compile(r"(?<!\[)\[([^\[\]]*)\](?!\])")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftp|irc|news|mailto):|//)[^\s\[\]]*+[ \t]*+([^\[\]\n]*+)\]", re.IGNORECASE
)
_VARIANT = re.compile(r"-\{([^{}]*)\}-")
_MOST_PASSES = 100
"""Templates and links are nested no deeper than this; MediaWiki itself expands 100 levels."""
_FILE_PREFIXES = frozenset(
    "file image category media datei bild kategorie fichier archivo imagen categoría catégorie"
    " fil plik immagine ficheiro bestand soubor".split()
)

_QUOTES = re.compile(r"'{2,}")
_TABLE_TAG = re.compile(r"<(/?)(table|caption|tr|th|td)\b([^<>]*)>", re.IGNORECASE)
_TABLE_MARKS = {"table": "{|", "/table": "|}", "caption": "|+", "tr": "|-", "th": "!", "td": "|"}
_BREAK = re.compile(r"<br\s*/?>|</?(?:p|div|blockquote|center)\b[^<>]*>", re.IGNORECASE)
_ITEM_TAG = re.compile(r"<li\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,500}>")
_RULE = re.compile(r"^-{4,}", re.MULTILINE)
_MAGIC = re.compile(r"__[A-Z]+__")
_SPACES = re.compile(r"[ \t\xa0]{2,}")
_EMPTY_BRACKETS = re.compile(r"[ \t]?\([ \t,;]*\)")
_LOOSE = re.compile(r"\[\[|\]\]|\{\{|\}\}")

_LIST = re.compile(r"([*#:;]+)[ \t]*")
_TABLE = re.compile(r"[ \t:*]*\{\|")
_SPAN = re.compile(r"(row|col)span\s*=\s*[\"']?\s*(\d{1,4})", re.IGNORECASE)
_LINES = re.compile(rf"(?:[ \t]*[{LINE}\n][ \t]*[*#:;]*[ \t]*)+")
_MARKS = frozenset(f"=*#:;{{|{FIELD}{_SAVED} \t\r\xa0")
_MOST_LISTED = 3
_DEEPEST_TABLE = 6


def parse_wikitext(source: str, title: str) -> ParsedDocument:
    """Return the text of a page as its reader sees it, with headings, tables and boxes.

    References, files, categories and navigation are dropped; what templates stand for is the
    subject of `templates`.
    """
    saved: list[Block] = []
    text = _PRIVATE.sub("", source) if not source.isascii() else source
    if "<" in text:
        text = _without_elements(_COMMENT.sub("", text), saved)
        if "<su" in text.lower():
            for _ in range(3):
                text = _RAISED.sub(_script, text)
    text = _inline(_resolved(text, title))
    warnings: tuple[str, ...] = ()
    if _LOOSE.search(text):
        text = _LOOSE.sub("", text)
        warnings = ("unbalanced markup: brackets without an end were left out",)
    blocks = _blocks(text.split("\n"), saved)
    return write(_filled(blocks), "text", title=title, warnings=warnings)


def _without_elements(text: str, saved: list[Block]) -> str:
    """Return text without unseen elements, formulas and literals as text; unclosed ones stay.

    Every tag is looked at once.
    """
    ends: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
    for end in _CLOSE.finditer(text):
        ends[end[1].lower()].append(end.span())
    kept: list[str] = []
    at = 0
    for tag in _OPEN.finditer(text):
        if tag.start() < at:
            continue
        name = tag[1].lower()
        inner, after = tag.end(), tag.end()
        if not tag[3]:
            waiting = ends[name]
            while waiting and waiting[0][0] < tag.end():
                waiting.popleft()
            if not waiting:
                continue
            inner, after = waiting[0]
        inside = text[tag.end() : inner]
        kept += [text[at : tag.start()], _element_text(name, tag[2], inside, saved)]
        at = after
    kept.append(text[at:])
    return "".join(kept)


def _element_text(name: str, attributes: str, inner: str, saved: list[Block]) -> str:
    if name in ("math", "chem", "ce"):
        from app.ingest.parsers.formulas import formula  # noqa: PLC0415  # most pages have none

        tex = html.unescape(inner)
        return formula(tex if name == "math" else f"\\ce{{{tex}}}").translate(_LITERAL)
    if name == "nowiki" or (name == "syntaxhighlight" and "inline" in attributes):
        return inner.translate(_LITERAL)
    if name in ("pre", "syntaxhighlight", "source"):
        saved.append(Block("code", html.unescape(inner)))
        return f"\n\n{_SAVED}{len(saved) - 1}{_SAVED}\n\n"
    return ""


def _script(match: re.Match[str]) -> str:
    return raised(match[2]) if match[1].lower() == "sup" else lowered(match[2])


def _resolved(text: str, title: str) -> str:
    """Return text with templates and links as what they show."""
    shown = partial(template_text, title=title)
    text = _PARAMETER.sub("", text) if "{{{" in text else text
    for _ in range(_MOST_PASSES):
        if "{{" not in text:
            break
        text = _PLAIN_LINK.sub(_link_text, text)  # its bar would end an argument
        text, changed = _TEMPLATE.subn(shown, text)
        if not changed:
            text = _BRACED_TEMPLATE.sub(shown, text)
            break
    text = text.replace(BAR, "|")
    for _ in range(_MOST_PASSES):
        if "[[" not in text:
            break
        text, changed = _LINK.subn(_link_text, text)
        if not changed:  # single brackets inside a link, as in [[File:a.jpg|[sic]]]
            text, changed = _BRACKETS_IN_LINK.subn(_bracket_text, text)
        if not changed:
            break
    if "-{" in text:
        text = _VARIANT.sub(_variant, text)
    return _EXTERNAL.sub(r"\1", text)


def _bracket_text(match: re.Match[str]) -> str:
    inner = match[1]
    if inner.startswith(("http", "//", "ftp", "mailto:")):
        return inner.partition(" ")[2]
    return f"&#91;{inner}&#93;"


def _link_text(match: re.Match[str]) -> str:
    inner = match[1]
    target, bar, label = inner.partition("|")
    prefix, colon, _ = target.partition(":")
    if colon and prefix.strip().lower() in _FILE_PREFIXES:
        return ""
    is_language = 2 <= len(prefix) <= 12 and prefix.islower() and prefix.isascii()
    if colon and not bar and is_language:
        return ""
    if bar:
        return label.rpartition("|")[2] or target.split("(")[0].rpartition(":")[2].strip()
    return target.lstrip(":").replace("_", " ")


def _variant(match: re.Match[str]) -> str:
    """Return the first form of a word that is written in several scripts: `zh-cn:a; zh-tw:b`.

    References:
        https://www.mediawiki.org/wiki/Writing_systems/Syntax.
    """
    flags, bar, forms = match[1].rpartition("|")
    if bar and {"H", "T", "-"} & set(flags.split(";")):
        return ""  # a rule for other places
    first = forms.partition(";")[0]
    return first.partition(":")[2].strip() if ":" in first else forms


def _inline(text: str) -> str:
    """Return text without markup within lines."""
    text = _QUOTES.sub("", text)
    if "<" in text:
        if "<t" in text.lower():
            text = _TABLE_TAG.sub(_table_mark, text)
        text = _ITEM_TAG.sub("\n* ", _BREAK.sub("\n", text))
        text = _TAG.sub("", text)
    text = _MAGIC.sub("", _RULE.sub("", text))
    return _SPACES.sub(" ", _EMPTY_BRACKETS.sub("", text))


def _table_mark(match: re.Match[str]) -> str:
    name = match[1] + match[2].lower()
    mark = _TABLE_MARKS.get(name)
    if mark is None:
        return ""
    return f"\n{mark}{match[3]}" + ("|" if name in ("th", "td", "caption") else "\n")


def _filled(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks without headings that have nothing below them."""
    waiting: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            while waiting and waiting[-1].level >= block.level:
                waiting.pop()
            waiting.append(block)
        else:
            yield from waiting
            waiting.clear()
            yield block


def _blocks(lines: list[str], saved: list[Block], depth: int = 0) -> Iterator[Block]:
    """Yield the blocks of lines, each looked at once for every table that it stands in."""
    at = 0
    paragraph: list[str] = []
    counts: dict[int, int] = {}
    ends: dict[int, int] = {}
    while at < len(lines):
        line = lines[at]
        at += 1
        first = line[:1]
        if first and first not in _MARKS:
            paragraph.append(line)
            continue
        if first and first in " \t:*{" and depth < _DEEPEST_TABLE and _TABLE.match(line):
            ends = ends or _table_ends(lines)
            end = ends.get(at - 1, len(lines))
            found = list(_table(lines[at:end], saved, depth + 1))
            at = end
        elif first and first in " \t" and not line.isspace():
            paragraph.append(line.strip())
            continue
        elif item := _LIST.match(line):
            signs, text = item[1], line[item.end() :].strip()
            is_term = signs[-1] == ";" and ": " not in text
            if is_term and at < len(lines) and lines[at][:1] == ":":
                text += f" : {lines[at][1:].strip()}"  # what it means stands below
                at += 1
            found = [_item(signs, text, counts)]
        else:
            found = [block] if (block := _marked(line, saved)) else []
        if paragraph:
            yield _paragraph(paragraph)
            paragraph.clear()
        if not (found and found[0].kind in ("item", "paragraph")):
            counts.clear()
        yield from found
    if paragraph:
        yield _paragraph(paragraph)


def _plain(text: str) -> str:
    return _SPACES.sub(" ", html.unescape(text)) if "&" in text else text


def _paragraph(lines: list[str]) -> Block:
    return Block("paragraph", _plain("\n".join(lines)))


def _item(signs: str, text: str, counts: dict[int, int]) -> Block:
    """Return a line of a list; `counts` has the numbers so far by depth."""
    depth = len(signs)
    for deeper in [each for each in counts if each > depth]:
        del counts[deeper]
    text = _plain(text)
    if signs[-1] == "#":
        counts[depth] = counts.get(depth, 0) + 1
        return Block("item", text, level=depth - 1, mark=f"{counts[depth]}.")
    if signs[-1] == "*":
        return Block("item", text, level=depth - 1)
    term, colon, meaning = text.partition(" : " if " : " in text else ": ")
    if signs[-1] == ";" and colon:
        return Block("field", meaning.strip(), mark=term.strip())
    return Block("paragraph", text, is_tight=depth > 1 or signs == ":")


def _marked(line: str, saved: list[Block]) -> Block | None:
    """Return the block that a line with a mark makes alone; None of a blank one."""
    if line[:1] == "=":
        line = line.rstrip(" \t")
        lead, trail = len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("="))
        level = min(lead, trail, 6, (len(line) - 1) // 2)
        title = line[level : len(line) - level].strip(" \t")
        return Block("heading", _plain(title), level) if level and title else _paragraph([line])
    if line[:1] == FIELD:
        label, _, value = line[1:].partition(LABEL_END)
        return Block("field", _plain(_on_one_line(value)), mark=_plain(label))
    if line[:1] == _SAVED and (number := line.strip(_SAVED)).isdecimal():
        return saved[int(number)]
    if not line or line.isspace() or line[:2] == "|}":
        return None
    return _paragraph([line])


def _on_one_line(value: str) -> str:
    """Return a value or cell of several lines, often a list, as `a, b`."""
    joined = _LINES.sub(", ", f"\n{value}" if value[:1] == "*" else value)
    return joined.removeprefix(", ").removesuffix(", ")


# Tables.


def _table_ends(lines: list[str]) -> dict[int, int]:
    """Return where each table ends, by its first line; one without an end stops at a heading."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for number, line in enumerate(lines):
        if _TABLE.match(line):
            opened.append(number)
        elif opened and line.lstrip(" \t")[:2] == "|}":
            ends[opened.pop()] = number + 1
    after = len(lines)
    for number in range(len(lines) - 1, opened[0] if opened else len(lines), -1):
        if _is_heading(lines[number]):
            after = number
        if opened and number - 1 == opened[-1]:
            ends[opened.pop()] = after
    return ends


def _is_heading(line: str) -> bool:
    return line[:1] == "=" and line.rstrip()[-1:] == "="


def _table(lines: list[str], saved: list[Block], depth: int) -> Iterator[Block]:
    """Yield a table; of one that only lays out the page what its cells hold."""
    rows: list[list[_Cell]] = [[]]
    caption = _Cell()
    cell = _Cell()  # takes what stands before the first row
    inner = 0
    for line in lines:
        text = line.lstrip(" \t")
        inner += _TABLE.match(line) is not None
        if inner or text[:1] not in ("|", "!"):
            cell.lines.append(line)
            inner -= text[:2] == "|}"
        elif text[:2] == "|-":
            rows.append([])
            cell = _Cell()
        elif text[:2] == "|+":
            cell = caption = _Cell(text[2:])
        elif text[:2] != "|}" and text:
            pieces = text[1:] if text[0] == "|" else text[1:].replace("!!", "||")
            rows[-1] += [_Cell(piece, is_head=text[0] == "!") for piece in pieces.split("||")]
            cell = rows[-1][-1]
    rows = [row for row in rows if row]
    if any(each.is_layout(len(rows)) for row in rows for each in row):
        for each in (each for row in rows for each in row):
            yield from _blocks(each.lines, saved, depth)
    else:
        grid = [[each.made() for each in row] for row in rows]
        yield Block("table", caption.made().text, rows=grid)


class _Cell:
    """A cell while its lines are read."""

    def __init__(self, source: str = "", *, is_head: bool = False) -> None:
        attributes, bar, content = source.partition("|")
        self.attributes = attributes if bar else ""
        self.lines = [content if bar else source]
        self._is_head = is_head

    def is_layout(self, rows: int) -> bool:
        """Return whether it holds what no cell of a table of `rows` rows has."""
        listed = sum(line[:1] in ("*", "#") for line in self.lines)
        return (rows == 1 and listed > _MOST_LISTED) or any(
            _TABLE.match(line) or _is_heading(line) for line in self.lines
        )

    def made(self) -> Cell:
        text = _on_one_line("\n".join(map(str.strip, self.lines)))
        spans = {"row": 1, "col": 1}
        if "span" in self.attributes.lower():
            spans |= {side.lower(): int(n) for side, n in _SPAN.findall(self.attributes)}
        return Cell(_plain(text), self._is_head, spans["row"], spans["col"])
