"""Convert wikitext to readable text, fast; mwparserfromhell for doubtful pages.

Markup is removed innermost first by passes of compiled expressions, each linear and at most a
hundred of them. A page that still holds a few unmatched brackets afterwards is doubtful and goes
through the full parser, whose time grows with the square of their number; with more of them the
brackets are left out. Speed and agreement with the reference are measured by `make bench-bulk`
(evaluation/reports/bulk.md).
"""

from __future__ import annotations

import html
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from itertools import pairwise

from app.core.normalisation import normalise
from app.core.types import Heading, ParsedDocument

# The sections of a wiki page: marked while markup is removed, then put together.

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


# Return the text of wikitext templates: characters, quotes, quantities, places.

_TEXT_TEMPLATES = frozenset(
    "lang transl nowrap nobr nobold small big smaller sc smallcaps abbr tooltip em strong quote"
    " blockquote cquote quotation mvar"
    " var math ill nihongo audio visible-anchor frac sfrac convert cvt ship val coord".split()
)
_SYMBOLS = {
    "nbsp": " ", "snd": " \u2013 ", "spnd": " \u2013 ", "spaced-ndash": " \u2013 ",
    "ndash": "\u2013", "mdash": "\u2014",
    "endash": "\u2013", "emdash": "\u2014", "dash": "\u2013", "spaced-mdash": " \u2014 ",
    "'": "'", "'s": "'s", "=": "=",
    "!": "|", "pipe": "|", "dot": " \xb7 ", "middot": "\xb7", "bull": " \u2022 ",
    "ellipsis": "\u2026",
}  # fmt: skip
"""Templates without arguments that stand for a character; dropping a space among them would join
two words."""
_POWERS = {"e3": "thousand ", "e6": "million ", "e9": "billion "}
_RANGE_WORDS = frozenset("- \u2013 to and or by x + to(-) and(-)".split())


def template_text(match: re.Match[str]) -> str:
    """Return the text of a template without inner templates; most have none.

    Args:
        match: Its first group is the template without its braces: name, then arguments after bars.
    """
    name, *parts = match[1].split("|")
    name = name.strip().lower().replace(" ", "-")
    if not parts or name not in _TEXT_TEMPLATES:
        return _SYMBOLS.get(name, "")
    values = [part.strip() for part in parts if "=" not in part]
    if not values:
        return ""
    if name in {"val", "coord"}:
        named = dict(part.split("=", 1) for part in map(str.strip, parts) if "=" in part)
        return (
            _number(values[0], named) if name == "val" else _place(values, named.get("display", ""))
        )
    if name in {"convert", "cvt"}:
        return _quantity(values)
    if name in {"frac", "sfrac"}:
        return "/".join(values)
    return values[-1 if name in {"lang", "transl", "audio"} else 0]


def _number(value: str, named: Mapping[str, str]) -> str:
    """Return the arguments of `val`: `0.5|e=-3|u=mm` is 0.5\u00d710^-3 mm."""
    power = f"\u00d710^{named['e']}" if named.get("e") else ""
    return f"{value}{power} {named.get('u') or named.get('ul') or ''}".strip()


def _place(values: list[str], display: str) -> str:
    """Return a `coord` as a place: `30|12|N|74|7|W` is 30\u00b012\u2032N 74\u00b07\u2032W."""
    if "title" in display or not values[0]:
        return ""
    parts: list[str] = []
    numbers: list[str] = []
    for value in values[:8]:
        if value in {"N", "S", "E", "W"}:
            parts.append(
                "".join(map("".join, zip(numbers, "\u00b0\u2032\u2033", strict=False))) + value
            )
            numbers = []
        else:
            numbers.append(value)
    return " ".join(parts) or ", ".join(numbers[:2])


def _quantity(values: list[str]) -> str:
    """Return a `convert` template's quantity: `44|e6acre|km2` is 44 million acre."""
    length = 1
    while length + 1 < len(values) and values[length] in _RANGE_WORDS:
        length += 2
    numbers, units = values[:length], values[length : length + 1]
    unit = units[0] if units else ""
    if unit[:2] in _POWERS:
        unit = _POWERS[unit[:2]] + unit[2:]
    return " ".join([*numbers, unit]).strip()


_INVISIBLE = (
    "ref|references|math|chem|gallery|timeline|imagemap|score|graph|hiero|syntaxhighlight|source"
    "|templatedata|categorytree|inputbox"
    "|section|mapframe"
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ELEMENT = re.compile(
    rf"<({_INVISIBLE})\b(?:[^<>/]|/(?!>))*+(/?)>", re.IGNORECASE
)  # an attribute may hold a slash, so the opening tag ends at the first '/>' or '>'
_ELEMENT_END = re.compile(rf"</({_INVISIBLE})\s*+>", re.IGNORECASE)
_NOWIKI = re.compile(r"<(nowiki)(?:\s*+(/))?>", re.IGNORECASE)
_NOWIKI_END = re.compile(r"</(nowiki)>", re.IGNORECASE)
_LITERAL = str.maketrans({char: f"&#{ord(char)};" for char in "&<>[]{}'=*#:;_-"})
_TEMPLATE = re.compile(r"\{\{([^{}]*)\}\}")
_PARAMETER = re.compile(r"\{\{\{[^{}]*\}\}\}")
_TABLE = re.compile(r"^[ \t:*]*\{\||\|\}(?!\})", re.MULTILINE)
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_BRACKETS_IN_LINK = re.compile(r"(?<!\[)\[([^\[\]]*)\](?!\])")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftp|irc|news|mailto):|//)[^\s\[\]]*+[ \t]*+([^\[\]\n]*+)\]", re.IGNORECASE
)
_QUOTES = re.compile(r"'{2,}")
_BREAK = re.compile(r"<br\s*/?>|</?(?:p|div|blockquote|center|li|tr)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,500}>")
_LIST = re.compile(r"^[*#:;]+[ \t]*", re.MULTILINE)
_RULE = re.compile(r"^-{4,}", re.MULTILINE)
_MAGIC = re.compile(r"__[A-Z]+__")
_SPACES = re.compile(r"[ \t\xa0]{2,}")
_EMPTY_BRACKETS = re.compile(r"[ \t]?\([ \t,;]*\)")
_DOUBTFUL = re.compile(r"\{\{|\{\||<ref\b", re.IGNORECASE)
_UNMATCHED = re.compile(r"\{\{|\{\||\[\[|\[(?=[a-z]{3,6}:)|<[a-z!]", re.IGNORECASE)
"""What the full parser tries to find the end of."""
_MOST_UNMATCHED = 20
_LONGEST_CAREFUL = 200_000
"""Characters; the full parser goes through all behind a bracket again when that has no end: two
seconds at the worst."""
_MOST_PASSES = 100
"""Templates and links are nested no deeper than this; MediaWiki itself expands 100 levels."""
_LOOSE = re.compile(r"\[\[|\]\]|\}\}|^\|\}", re.MULTILINE)

_FILE_PREFIXES = frozenset(
    "file image category media datei bild kategorie fichier archivo imagen categoría".split()
)


def parse_wikitext(source: str, title: str) -> ParsedDocument:
    """Return the readable text of a page with its section headings.

    Templates, tables, references, files and categories are dropped; a few templates that stand for
    text (`lang`, `convert`, `nowrap`, ...) keep it. Paragraphs are separated by blank lines, list
    items start with "- ".
    """
    resolved = _resolved(source)
    text = _inline(resolved)
    warnings: tuple[str, ...] = ()
    if _DOUBTFUL.search(text):
        if len(source) <= _LONGEST_CAREFUL and len(_UNMATCHED.findall(resolved)) <= _MOST_UNMATCHED:
            text = _careful(source)
            warnings = ("unbalanced markup: parsed with mwparserfromhell",)
        else:
            text = re.sub(r"\{\{|\{\|", "", text)
            warnings = (
                "unbalanced markup: too much of it to be parsed with care, brackets without an end"
                " were left out",
            )
    text, stripped = normalise(text)
    body, headings = assemble(text)
    return ParsedDocument(
        body,
        "text/x-wiki",
        headings=tuple(headings),
        title=title,
        warnings=warnings,
        stripped_characters=stripped,
    )


def _resolved(text: str) -> str:
    """Return text without comments, templates, tables, unseen elements; links are text."""
    if "<" in text:
        text = _COMMENT.sub("", text)
        text = _without_elements(text, _NOWIKI, _NOWIKI_END, literal=True)
        text = _without_elements(text, _ELEMENT, _ELEMENT_END)
    text = _drop_templates(text)
    if "{|" in text:
        text = _drop_tables(text)
    return _resolve_links(text)


def _without_elements(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str], *, literal: bool = False
) -> str:
    """Return text without elements from opening to closing tag; unclosed ones stay.

    Both patterns name the element in their first group, an opening that closes itself has a second.
    Every tag is looked at once.

    Args:
        text: Wikitext.
        opening: Opening tags.
        closing: Closing tags.
        literal: Keeps what stands within, its markup as literal characters.
    """
    ends: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
    for end in closing.finditer(text):
        ends[end[1].lower()].append(end.span())
    kept: list[str] = []
    at = 0
    for tag in opening.finditer(text):
        if tag.start() < at:
            continue
        inner, after = tag.end(), tag.end()
        if not tag[2]:
            waiting = ends[tag[1].lower()]
            while waiting and waiting[0][0] < tag.end():
                waiting.popleft()
            if not waiting:
                continue
            inner, after = waiting[0]
        kept.append(text[at : tag.start()])
        if literal:
            kept.append(text[tag.end() : inner].translate(_LITERAL))
        at = after
    kept.append(text[at:])
    return "".join(kept)


def _drop_templates(text: str) -> str:
    if "{{{" in text:
        text = _PARAMETER.sub("", text)
    for _ in range(_MOST_PASSES):
        text, changed = _TEMPLATE.subn(template_text, text)
        if not changed or "{{" not in text:
            break
    return text


def _drop_tables(text: str) -> str:
    """Cut `{| ... |}` with nested content; the residue check handles unclosed ones."""
    kept: list[str] = []
    depth = 0
    at = 0
    for match in _TABLE.finditer(text):
        if match[0].endswith("{|"):
            if depth == 0:
                kept.append(text[at : match.start()])
                at = match.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                at = match.end()
    kept.append(text[at:])
    return "".join(kept)


def _resolve_links(text: str) -> str:
    for _ in range(_MOST_PASSES):
        if "[[" not in text:
            break
        text, changed = _LINK.subn(_link_text, text)
        if not changed:  # single brackets inside a link, as in [[File:a.jpg|[sic]]]
            text, changed = _BRACKETS_IN_LINK.subn(_bracket_text, text)
        if not changed:
            break
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
    if (
        colon
        and not bar
        and 2 <= len(prefix) <= 12
        and prefix.islower()
        and prefix.replace("-", "").isascii()
    ):
        return ""  # an interlanguage link
    if bar:
        return label.rpartition("|")[2] or target.split("(")[0].rpartition(":")[2].strip()
    return target.lstrip(":").replace("_", " ")


def _inline(text: str) -> str:
    text = _QUOTES.sub("", text)
    if "<" in text:
        text = _TAG.sub("", _BREAK.sub("\n", text))
    text = mark_headings(text)
    text = _LIST.sub("- ", text)
    text = _LOOSE.sub("", _MAGIC.sub("", _RULE.sub("", text)))
    if "&" in text:
        text = html.unescape(text)
    text = _EMPTY_BRACKETS.sub("", text)
    return _SPACES.sub(" ", text)


def _careful(source: str) -> str:
    """Parse with the reference implementation: ten times slower, right for odd brackets."""
    import mwparserfromhell  # noqa: PLC0415  # 40 ms of import that only doubtful pages need

    code = mwparserfromhell.parse(
        _without_elements(_COMMENT.sub("", source), _ELEMENT, _ELEMENT_END), skip_style_tags=True
    )
    for table in code.filter_tags(matches=lambda node: str(node.tag) == "table", recursive=False):
        code.remove(table)
    for link in code.filter_wikilinks(
        matches=lambda node: str(node.title).partition(":")[0].strip().lower() in _FILE_PREFIXES
    ):
        try:
            code.remove(link)
        except ValueError:  # it stood inside a link that is gone already
            continue
    marked = mark_headings(str(code))
    text = str(mwparserfromhell.parse(marked).strip_code(normalize=True, collapse=False))
    text = _QUOTES.sub("", _EXTERNAL.sub(r"\1", text))
    text = re.sub(r"\{\{|\{\||\|\}", "", _LOOSE.sub("", _TAG.sub("", text)))
    return _SPACES.sub(" ", _EMPTY_BRACKETS.sub("", _LIST.sub("- ", text)))
