"""Read HTML by selectolax: the blocks that a reader sees, with headings, lists and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.core.errors import Unreadable
from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Cell, lowered, numeral, on_one_line, raised, write
from app.ingest.parsers.formulas import formula, grouped
from app.ingest.parsers.sniffing import decode

_DROPPED = frozenset(
    "script style nav noscript template svg iframe object embed head canvas audio video datalist"
    " option optgroup progress meter rp button".split()
)
_STRUCK = frozenset("del s strike".split())
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset"
    " figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main ol p pre"
    " section summary table tbody td tfoot th thead tr ul".split()
)
_PLAIN = frozenset({"p", "div", "section"})
"""Blocks that say nothing of what they hold."""
_LEVELS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_BUTTONS_ARE_TEXT = frozenset("h1 h2 h3 h4 h5 h6 summary dt legend".split())
_LAYOUT = frozenset("table h1 h2 h3 h4 h5 h6".split())
"""A table that holds one of these lays out a page; its cells are read as blocks."""
_FILLED = frozenset("text email tel number date url time month week datetime-local".split())
"""Kinds of form fields whose value is content."""
_INVISIBLE_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?:px|pt|em|rem|%)?\s*(?:;|!|\Z)"
    r"|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|\Z)",
    re.IGNORECASE,
)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_RULE = re.compile(r"(?:\A|(?<=[};]))([^{};@]+)\{([^{}]*)\}")
"""A rule of a style sheet."""
_OF_MEDIA = re.compile(r"@[^{};]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_LONGEST_STYLE = 200_000
_PLAIN_SELECTOR = re.compile(r"(?:\A|,)\s*[\w-]*[.#][\w-]+\s*(?=,|\Z)")
_MOST_RULES = 500
_STRUCK_STYLE = re.compile(r"text-decoration[a-z-]*\s*:[^;]*line-through", re.IGNORECASE)
_FRAME_ROLES = frozenset(
    "navigation banner contentinfo search complementary dialog alertdialog menu menubar"
    " toolbar".split()
)
_FRAME_CLASS = re.compile(
    r"(?:\A|[\s_-])(?:cookies?|consent|gdpr|mw-editsection|noprint|navbox|backref)(?:[\s_-]|\Z)"
    r"|(?:\A|\s)(?:cookie|consent)",
    re.IGNORECASE,
)
_LINE_NUMBERS = re.compile(
    r"(?:\A|\s)(?:ln|linenos?|lineno|line-?numbers?|linenumbers?|gutter|blob-num"
    r"|hljs-ln-numbers|rouge-gutter)(?:\s|\Z)"
)
_REFERENCE = re.compile(r"(?:\A|[\s_-])(?:reference|footnote|noteref|fn)(?:[\s_-]|\Z)")
_FORMULA_IMAGE = re.compile(r"(?:\A|[\s_-])(?:math|tex|latex|mwe-math)(?:[\s_-]|\Z)")
_LEAST_MAIN = 0.1
"""Of a page's letters, in what it marks as its main part; less is a mark without content."""
_LEAST_ARTICLE = 1 / 3
_LINKS_ONLY = 0.5
"""Share of link text over which an aside leads elsewhere."""
_LONGEST_LABEL = 60
_LONGEST_VALUE = 300
_LONGEST_REFERENCE = 6
"""Characters of a footnote's mark, such as `[12]`."""
_INTEGER = re.compile(r"-?\d{1,6}\Z")
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)", re.IGNORECASE)
_OPEN_TAG = re.compile(r"<[a-z]", re.IGNORECASE)
_OPTION = re.compile(r"</?(?:option|optgroup)\b[^<>]*+>", re.IGNORECASE)
_BLANK = r"[ \t\n\r\f]"
_ATTRIBUTE = (
    rf"(?:{_BLANK}|/)*+[^ \t\n\r\f/>][^ \t\n\r\f/>=]*+"
    rf"(?:{_BLANK}*+=(?:{_BLANK}*+(?:\"[^\"]*+\"|'[^']*+'|[^ \t\n\r\f>]*+)))?+"
)
"""https://html.spec.whatwg.org/multipage/parsing.html, from the before attribute name state on."""
_MOST_ATTRIBUTES = 300
"""Of one tag; a parser compares each with all before it."""
_ATTRIBUTES = re.compile(
    rf"(<[a-z][^ \t\n\r\f/>]*+(?:{_ATTRIBUTE}){{0,{_MOST_ATTRIBUTES}}}+)((?:{_ATTRIBUTE})*+)",
    re.IGNORECASE,
)
_ENDLESS = frozenset(
    "area base br col embed hr img input link meta param source track wbr html head body p li dt"
    " dd tr td th thead tbody tfoot"
    " colgroup option optgroup rt rp".split()
)
"""Elements that never have an end tag or need none."""
_MOST_ELEMENTS = 1_000_000
_DEEPEST = 2_000
"""Browsers stop at 512; unclosed formatting of old pages counts here as well."""
_DEEPEST_FORMULA = 60
_MANY_OPTIONS = 500
_SPACE = re.compile(r"[ \t\n\r\f]+")
_DECLARED = re.compile(
    rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})"
    rb"|\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_.:-]{2,40})",
    re.IGNORECASE,
)
_DECLARED_WINDOW_BYTES = 65_536
_MARKUP = re.compile(
    rb"<(?:script|style)\b.*?</(?:script|style)|<[^>]*>", re.DOTALL | re.IGNORECASE
)
_YEAR = re.compile(r"\b(1[89]\d\d|20\d\d)\b")
_AUTHOR_NAMES = frozenset({"author", "citation_author", "dc.creator", "dcterms.creator"})
_DATE_NAMES = "citation_publication_date citation_date dc.date article:published_time date".split()


def parse_html(
    content: bytes, filename: str = "the page", *_: object, left_out: str = ""
) -> ParsedDocument:
    """Return what a reader sees of a page: its main part where the page marks it.

    Scripts, styles, menus, hidden elements and those of the selector `left_out` are left out; the
    characters of hidden elements are counted as stripped, and struck-through text is named in a
    warning.

    Raises:
        UnsupportedType: The bytes are not text.
        Unreadable: It has more elements, or more within one another, than a page has.
    """
    found = _DECLARED.search(content, 0, _DECLARED_WINDOW_BYTES)
    declared = (found[1] or found[2]).decode("ascii") if found else None
    source, warnings = decode(content, declared, lambda: _MARKUP.sub(b" ", content))
    tree = LexborHTMLParser(_within_bounds(source, filename))
    for node in tree.css(left_out) if left_out else ():
        node.remove()
    title = tree.css_first("title")
    authors, year = _meta(tree)
    page = read_blocks(tree, _main_part(tree))
    return write(
        page.blocks,
        "html",
        title=_SPACE.sub(" ", title.text()).strip() or None if title else None,
        authors=authors,
        year=year,
        warnings=(*warnings, *page.warnings),
        hidden=page.hidden,
    )


def parse_fragment(source: str, filename: str) -> Page:
    """Return the blocks of markup that another format holds; see `parse_html` for errors."""
    tree = LexborHTMLParser(_within_bounds(source, filename))
    return read_blocks(tree, [tree.body] if tree.body else [])


class Page(NamedTuple):
    blocks: list[Block]
    hidden: int
    """Characters of hidden elements, which are left out."""
    warnings: tuple[str, ...]


def read_blocks(tree: LexborHTMLParser, roots: list[LexborNode]) -> Page:
    has_tables = tree.root is not None and tree.css_first("table") is not None
    layouts = _layouts(tree.root) if has_tables and tree.root else frozenset[int]()
    unseen = _hidden_by_style(tree)
    for left_out in (_DROPPED, _DROPPED - {"noscript"}):  # text that only stands there
        reader = _Reader(layouts, left_out, unseen)
        if blocks := list(reader.blocks(roots)):
            break
    warnings = ("struck-through text is left out",) if reader.struck else ()
    return Page(blocks, reader.hidden, warnings)


def _meta(tree: LexborHTMLParser) -> tuple[tuple[str, ...], int | None]:
    authors: list[str] = []
    dates: dict[str, str] = {}
    for node in tree.css("meta"):
        attributes = node.attributes
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        value = (attributes.get("content") or "").strip()
        if name in _AUTHOR_NAMES and value:
            authors.append(value)
        elif name in _DATE_NAMES:
            dates.setdefault(name, value)
    found = next((_YEAR.search(dates[name]) for name in _DATE_NAMES if name in dates), None)
    return tuple(authors), int(found[1]) if found else None


def _within_bounds(source: str, filename: str) -> str:
    """Return markup that selectolax parses in linear time.

    `option` tags are removed, their text is dropped in any case; of a tag's attributes the first
    hundreds stay. A parser looks through all open elements at many tags, and through all options of
    a list at each.

    Raises:
        Unreadable: Over one of the bounds.
    """
    is_large = source.count("<") > _MOST_ELEMENTS
    if is_large and sum(1 for _ in _OPEN_TAG.finditer(source)) > _MOST_ELEMENTS:
        raise Unreadable(
            f"{filename!r} has more than {_MOST_ELEMENTS:,} elements; save the part that you need"
            " as a page of its own"
        )
    source = _ATTRIBUTES.sub(r"\1", source)
    if _nests(source) > _DEEPEST:
        raise Unreadable(
            f"{filename!r} has more than {_DEEPEST:,} elements within one another; save its text"
            " and add that"
        )
    return _OPTION.sub(" ", source) if len(_OPTION.findall(source)) > _MANY_OPTIONS else source


def _nests(source: str) -> int:
    """Return the deepest nesting of elements, unclosed ones included."""
    depth = deepest = 0
    for tag in _TAG.finditer(source):
        if tag[2].lower() in _ENDLESS:
            continue
        depth = max(0, depth - 1) if tag[1] else depth + 1
        deepest = max(deepest, depth)
    return deepest


# The main part of a page.


def _main_part(tree: LexborHTMLParser) -> list[LexborNode]:
    """Return the elements to read: what the page marks as its main part, else its body."""
    body = tree.body or tree.root
    if body is None:
        return []
    total = _letters(body)
    for marks, least in (
        ("main, [role=main]", _LEAST_MAIN),
        ("[itemprop=articleBody]", _LEAST_ARTICLE),
        ("article", _LEAST_ARTICLE),
    ):
        parts = [node for node in body.css(marks) if not _is_within(node, marks.split(", "))]
        if parts and sum(map(_letters, parts)) >= max(least * total, 1):
            if not any(part.css_first("h1") for part in parts) and (head := body.css_first("h1")):
                return [head, *parts]
            return parts
    return [body]


def _letters(node: LexborNode) -> int:
    return len(_SPACE.sub("", node.text()))


def _above(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements that an element lies in, from the innermost."""
    while (above := node.parent) is not None and above.is_element_node:
        yield above
        node = above


def _is_within(node: LexborNode, marks: list[str]) -> bool:
    """Return whether an element lies in another one of the same mark."""
    return any(
        above.tag == marks[0] or (len(marks) > 1 and above.attributes.get("role") == "main")
        for above in _above(node)
    )


def _layouts(root: LexborNode) -> frozenset[int]:
    """Return the memory ids of tables that lay out what they hold, in one walk."""
    found: set[int] = set()
    tables: list[int] = []
    stack: list[tuple[LexborNode, bool]] = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            tables.pop()
            continue
        if tables and (node.tag in _LAYOUT or _is_line_numbers(node)):
            found.add(tables[-1])
        if node.tag == "table":
            tables.append(node.mem_id)
            if node.attributes.get("role") in ("presentation", "none"):
                found.add(node.mem_id)
            stack.append((node, True))
        stack.extend((child, False) for child in _children(node))
    return frozenset(found)


def _children(node: LexborNode) -> Iterator[LexborNode]:
    """Yield children from the last to the first, as a stack takes them."""
    child = node.last_child
    while child is not None:
        yield child
        child = child.prev


def _is_line_numbers(node: LexborNode) -> bool:
    is_part_of_code = node.tag in ("td", "span", "div", "pre", "a")
    return is_part_of_code and bool(_LINE_NUMBERS.search(node.attributes.get("class") or ""))


@dataclass(slots=True)
class _List:
    is_ordered: bool
    style: str
    step: int
    number: int
    """Of its next item."""


class _Reader:
    """Walks the tree without recursion, because the author decides how deep a page nests."""

    def __init__(
        self,
        layouts: frozenset[int],
        left_out: frozenset[str] = _DROPPED,
        unseen: frozenset[int] = frozenset(),
    ) -> None:
        self.hidden = 0
        self._unseen = unseen
        self.struck = False
        self._layouts = layouts
        self._left_out = left_out
        self._line: list[str] = []
        self._marks: list[int] = []
        """Where raised or lowered text begins in the line."""
        self._pre = 0
        self._heads = 0
        """Open elements in which a button is text."""
        self._quotes = 0
        self._lists: list[_List] = []
        self._item: tuple[str, int] | None = None
        self._term: str | None = None
        self._is_value = False
        """What comes next is the first block of a `dd`."""

    def blocks(self, roots: Iterable[LexborNode]) -> Iterator[Block]:
        for root in roots:
            yield from self._walk(root)
        yield from self._flush()
        if self._term:
            yield Block("paragraph", self._term)

    def _walk(self, root: LexborNode) -> Iterator[Block]:
        stack: list[tuple[LexborNode, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                yield from self._leave(node)
                continue
            if node.is_text_node:
                self._add_text(node.text_content or "")
                continue
            if not node.is_element_node or self._is_left_out(node):
                continue
            tag = node.tag or ""
            if (inline := self._inline(node, tag)) is not None:
                self._add_text(inline)
                continue
            if tag == "table" and node.mem_id not in self._layouts:
                yield from self._flush()
                yield self._table(node)
                continue
            yield from self._enter(node, tag)
            stack.append((node, True))
            stack.extend((child, False) for child in _children(node))

    def _enter(self, node: LexborNode, tag: str) -> Iterator[Block]:
        if tag == "br":
            self._line.append("\n")
        elif tag in ("sup", "sub"):
            self._marks.append(len(self._line))
        elif tag in _BLOCKS:
            yield from self._flush()
            if tag in ("ul", "ol"):
                self._open_list(node, tag)
            elif tag == "li":
                self._item = self._mark_of(node), max(len(self._lists) - 1, 0)
            self._is_value = tag == "dd" or (self._is_value and tag in _PLAIN)
            self._pre += tag == "pre"
            self._quotes += tag == "blockquote"
            self._heads += tag in _BUTTONS_ARE_TEXT

    def _leave(self, node: LexborNode) -> Iterator[Block]:
        tag = node.tag or ""
        if tag in ("sup", "sub"):
            self._close_mark(node, tag)
        elif tag in _BLOCKS:
            yield from self._flush(tag)
            if tag in ("ul", "ol") and self._lists:
                self._lists.pop()
            elif tag == "li":
                self._item = None
            self._pre -= tag == "pre"
            self._quotes -= tag == "blockquote"
            self._heads -= tag in _BUTTONS_ARE_TEXT

    def _open_list(self, node: LexborNode, tag: str) -> None:
        step = -1 if "reversed" in node.attributes else 1
        start = node.attributes.get("start") or ""
        first = int(start) if _INTEGER.match(start) else 1
        if step < 0 and not start:
            first = sum(child.tag == "li" for child in _children(node))
        self._lists.append(_List(tag == "ol", node.attributes.get("type") or "1", step, first))

    def _mark_of(self, node: LexborNode) -> str:
        if not self._lists or not (listed := self._lists[-1]).is_ordered:
            return "-"
        value = node.attributes.get("value") or ""
        number = int(value) if _INTEGER.match(value) else listed.number
        listed.number = number + listed.step
        return f"{numeral(number, listed.style)}."

    def _close_mark(self, node: LexborNode, tag: str) -> None:
        at = self._marks.pop() if self._marks else len(self._line)
        text = "".join(self._line[at:])
        del self._line[at:]
        is_reference = tag == "sup" and (
            node.css_first("a") is not None
            or _REFERENCE.search(node.attributes.get("class") or "") is not None
        )
        if text and not (is_reference and len(text.strip()) <= _LONGEST_REFERENCE):
            self._line.append(raised(text) if tag == "sup" else lowered(text))

    def _flush(self, tag: str = "") -> Iterator[Block]:
        text = "".join(self._line)
        self._line.clear()
        self._marks.clear()
        if not text.strip():
            self._is_value &= tag != "dd"
            return
        if not self._pre:
            text = "\n".join(line.strip() for line in text.split("\n")).strip()
        if self._term is not None:
            term, self._term = self._term, None
            is_value = self._is_value and not self._pre
            if is_value and _is_field(term, text):
                self._is_value = False
                yield Block("field", text, mark=term)
                return
            yield Block("paragraph", term)
        self._is_value = False
        if tag in _LEVELS:
            yield Block("heading", text, level=_LEVELS[tag])
        elif tag == "dt":
            self._term = text
        elif self._pre:
            yield Block("code", text)
        elif self._item is not None:
            (mark, level), self._item = self._item, None
            yield Block("item", text, level=level, mark=mark)
        elif tag in ("figcaption", "caption"):
            yield Block("caption", text)
        else:
            yield Block("quote" if self._quotes else "paragraph", text, is_tight=tag == "dd")

    def _add_text(self, text: str) -> None:
        if not self._pre:
            text = _SPACE.sub(" ", text)
            if text.startswith(" ") and (not self._line or self._line[-1].endswith((" ", "\n"))):
                text = text[1:]
        if text:
            self._line.append(text)

    def _inline(self, node: LexborNode, tag: str) -> str | None:
        """Return the text of an element that is read as a whole: formulas and form fields."""
        attributes = node.attributes
        if tag == "math":
            return f" {mathml(node)} "
        if tag == "span" and "mwe-math-element" in (attributes.get("class") or ""):
            image = node.css_first("img[alt]")
            return f" {formula(image.attributes.get('alt') or '')} " if image else None
        if tag == "img":
            return _shown_in(node)
        if tag == "abbr" and (meaning := (attributes.get("title") or "").strip()):
            short = node.text().strip()
            return short if meaning in short else f"{short} ({meaning})"
        if tag == "script":  # of MathJax
            return f" {formula(node.text())} "
        if tag == "input":
            kind = attributes.get("type") or "text"
            if kind in ("checkbox", "radio"):
                return "\u2612 " if "checked" in attributes else "\u2610 "
            return self._labelled(attributes.get("value") or "") if kind in _FILLED else ""
        if tag == "textarea":
            return self._labelled(node.text())
        if tag == "select":
            chosen = node.css_first("option[selected]")
            return self._labelled(chosen.text()) if chosen else ""
        return None

    def _labelled(self, value: str) -> str:
        """Return a form's value behind the label that stands before it in the line."""
        label = "".join(self._line).rstrip()
        if not value.strip():
            return ""
        return f": {value} " if label and not label.endswith((":", "?", "\n")) else f" {value} "

    def _table(self, table: LexborNode) -> Block:
        rows: list[list[Cell]] = []
        caption = ""
        stack = list(_children(table))
        while stack:
            node = stack.pop()
            if not node.is_element_node or self._is_left_out(node):
                continue
            if node.tag == "caption":
                caption = self._cell_text(node)
            elif node.tag == "tr":
                rows.append([])
                stack.extend(_children(node))
            elif node.tag in ("td", "th"):
                spans = (node.attributes.get(name) or "" for name in ("rowspan", "colspan"))
                down, across = (max(1, int(n)) if _INTEGER.match(n) else 1 for n in spans)
                rows = rows or [[]]
                rows[-1].append(Cell(self._cell_text(node), node.tag == "th", down, across))
            else:
                stack.extend(_children(node))
        return Block("table", caption, rows=rows)

    def _cell_text(self, cell: LexborNode) -> str:
        """Return a cell's blocks on one line, the items of its lists after one another."""
        inner = _Reader(self._layouts, self._left_out, self._unseen)
        inside = list(_children(cell))
        text = on_one_line(inner.blocks(reversed(inside)))
        self.hidden += inner.hidden
        self.struck |= inner.struck
        return text

    def _is_left_out(self, node: LexborNode) -> bool:
        tag, attributes = node.tag or "", node.attributes
        if tag in self._left_out and not (tag == "button" and self._heads):
            return not (tag == "script" and "math/tex" in (attributes.get("type") or ""))
        if tag in _STRUCK or _STRUCK_STYLE.search(attributes.get("style") or ""):
            self.struck |= bool(node.text().strip())
            return True
        if tag in ("header", "footer") and _is_frame(node):
            return True
        if tag == "aside" and _leads_elsewhere(node):
            return True
        if not attributes:
            return False
        if tag == "a" and _marks_note(node):
            return True
        if _is_hidden(attributes) or node.mem_id in self._unseen:
            self.hidden += _letters(node)
            return True
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        return (
            attributes.get("aria-hidden") == "true"
            or attributes.get("role") in _FRAME_ROLES
            or (tag not in ("body", "main", "article") and bool(_FRAME_CLASS.search(names)))
            or _is_line_numbers(node)
        )


def _marks_note(link: LexborNode) -> bool:
    """Return whether a link is the mark of a footnote (EPUB 3.3, DPUB-ARIA)."""
    said = f"{link.attributes.get('epub:type') or ''} {link.attributes.get('role') or ''}"
    is_reference = not {"noteref", "doc-noteref"}.isdisjoint(said.split())
    return is_reference and len(link.text().strip()) <= _LONGEST_REFERENCE


def _shown_in(image: LexborNode) -> str:
    """Return the formula of a picture, or what a picture of a figure shows."""
    said = image.attributes.get("alt") or ""
    if _FORMULA_IMAGE.search(image.attributes.get("class") or ""):
        return f" {formula(said)} "
    figure = next((above for above in _above(image) if above.tag == "figure"), None)
    return f" {said} " if figure is not None and said not in figure.text() else ""


def _is_hidden(attributes: Mapping[str, str | None]) -> bool:
    if "hidden" in attributes:
        return attributes.get("role") != "tabpanel" and attributes["hidden"] != "until-found"
    return _INVISIBLE_STYLE.search(attributes.get("style") or "") is not None


def _hidden_by_style(tree: LexborHTMLParser) -> frozenset[int]:
    """Return the elements that a page's own style sheet hides for good.

    A script, or a second rule for what a rule hides, may show it.
    """
    if tree.css_first("script") is not None:
        return frozenset()
    style = "".join(node.text() for node in tree.css("style"))[:_LONGEST_STYLE]
    style = _OF_MEDIA.sub("", _STYLE_COMMENT.sub("", style))
    rules = [(one[1].strip(), one[2]) for one in islice(_RULE.finditer(style), _MOST_RULES)]
    shown = " ".join(selector for selector, said in rules if not _INVISIBLE_STYLE.search(said))
    found: set[int] = set()
    for selector, said in rules:
        names = _PLAIN_SELECTOR.findall(selector)
        if not names or len(names) != selector.count(",") + 1 or not _INVISIBLE_STYLE.search(said):
            continue
        if not any(name.strip() in shown for name in names):
            found.update(node.mem_id for node in tree.css(selector))
    return frozenset(found)


def _is_frame(node: LexborNode) -> bool:
    """Return whether a header or footer is that of the whole page and holds no heading."""
    parts = {"main", "article", "section", "blockquote", "td"}
    is_of_part = any(above.tag in parts for above in _above(node))
    return not is_of_part and node.css_first("h1, h2") is None


def _leads_elsewhere(aside: LexborNode) -> bool:
    links = sum(map(_letters, aside.css("a")))
    return links > _LINKS_ONLY * max(_letters(aside), 1)


def _is_field(term: str, value: str) -> bool:
    is_short = len(term) <= _LONGEST_LABEL and len(value) <= _LONGEST_VALUE
    return is_short and not term.rstrip().endswith("?") and "\n" not in term.strip()


# Formulas of MathML, as a line of text.


_SPACED = frozenset(
    "=<>\u2212+\u2264\u2265\u2260\u2248\u00b1\u00d7\u00b7\u2192\u21d2\u2208\u2261\u221d"
)


def mathml(node: LexborNode, depth: int = 0) -> str:
    """Return a formula in readable form: `E = m c^2`, `n/2`, `sqrt(x)`."""
    if depth > _DEEPEST_FORMULA:
        return _SPACE.sub(" ", node.text())
    tag = node.tag or ""
    children = [child for child in node.iter() if not (child.tag or "").startswith("annotation")]
    if not children:
        text = _SPACE.sub(" ", node.text()).strip()
        return f" {text} " if tag == "mo" and text in _SPACED else text
    parts = [mathml(child, depth + 1) for child in children]
    first, *rest = parts
    if rest and tag in _FORMS:
        operands = [grouped(part) for part in (*rest, "")]
        return _FORMS[tag].format(first, *operands, base=grouped(first))
    if tag == "msqrt":
        return f"\u221a({''.join(parts)})"
    between = {"mtable": "; ", "mtr": " "}.get(tag, "")
    return _SPACE.sub(" ", between.join(parts))


_FORMS: Mapping[str, str] = MappingProxyType(
    {
        "mfrac": "{base}/{1}",
        "mroot": "{base}^(1/{1})",
        **dict.fromkeys(("msup", "mover"), "{base}^{1}"),
        **dict.fromkeys(("msub", "munder"), "{0}_{1}"),
        **dict.fromkeys(("msubsup", "munderover"), "{0}_{1}^{2}"),
    }
)
