"""Read JSON, JSON Lines, YAML and XML: records as labelled rows, fields as lines, prose as prose.

Each format becomes the same nodes: texts as written, fields in their order, and lists.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from html.entities import html5
from itertools import pairwise
from typing import Any, TypeAlias

import yaml
from lxml import etree

from app.core.errors import TooLarge, Unreadable
from app.core.types import FileType, ParsedDocument
from app.ingest.parsers.blocks import Block, Cell, lowered, raised, write
from app.ingest.parsers.chats import messages_of, names_of
from app.ingest.parsers.formats import FORMATS
from app.ingest.parsers.html import parse_fragment
from app.ingest.parsers.office import parsed_xml, unread_parts
from app.ingest.parsers.plain import parse_plain
from app.ingest.parsers.sniffing import decode
from app.ingest.parsers.zotero import parse_items


class Fields(list[tuple[str, "Node"]]):
    """Names and values of an object, in order; a comment has the name `#`, loose text none."""


Node: TypeAlias = "str | Fields | list[Node]"

_MOST_VALUES = 300_000
"""Of one file, each as often as it is referred to."""
_CELLS_A_VALUE = 3
"""Cells of records that cost as much as one value."""
_DEEPEST = 60
_HEADED = 3
"""Levels of objects that have a heading; deeper ones are fields with all names before them."""
_MOST_COLUMNS = 60
_MOST_NESTED = 1_000
_LONG = 200
"""Characters: a longer value is prose."""
_LONGEST_NAME = 80
_MOST_NUMBERS = 100
"""Of a list of numbers that is read; more are coordinates or weights, which no reader asks for."""
_NAMES = ("title", "name", "label", "heading", "head", "id")
_CLOSING = '.,;:!?)]"\u201d\u2019\u00bb'
_PROSE_NAMES = frozenset({"", "p", "para", "text", "body", "content"})
_NUMBER = re.compile(r"[+-]?[\d.]+(?:e[+-]?\d+)?\Z", re.IGNORECASE)
_MARKUP = re.compile(
    r"</?(?:p|br|div|b|i|a|ul|ol|li|h[1-6]|span|strong|em|table|tr|td|pre|code)\b[^<>]*>", re.I
)


class _Reader:
    """Yields the blocks of nodes; the author decides how deep and how often they are repeated."""

    def __init__(self, filename: str, names: Mapping[str, str]) -> None:
        """Begin; `names` are those of users by their ids."""
        self.unread: Counter[str] = Counter()
        self._filename = filename
        self._names = names
        self._left = _MOST_VALUES

    def blocks(self, node: Node, name: str = "", depth: int = 0) -> Iterator[Block]:
        """Yield a node; `name` is what its parent calls it, `depth` how many objects are around."""
        self._left -= 1 + (len(node) // _LONG if isinstance(node, str) else 0)
        if self._left < 0 or depth > _DEEPEST:
            self.unread["values nested too deeply" if self._left >= 0 else "further values"] += 1
        elif isinstance(node, str):
            yield from self._value(node.strip(), name)
        elif isinstance(node, Fields):
            yield from self._fields(node, name, depth)
        else:
            yield from self._list(node, name, depth)

    def _value(self, text: str, name: str) -> Iterator[Block]:
        if len(_MARKUP.findall(text[:10_000])) > 1:
            if name not in _PROSE_NAMES and not text.startswith("<table"):
                yield Block("field", "", mark=name)
            yield from parse_fragment(text, self._filename).blocks
        elif text and name in _PROSE_NAMES:
            yield Block("paragraph", text)
        elif text:
            if len(text) > _LONG or "\n" in text:
                yield Block("paragraph", f"{name}: {text}")
            else:
                yield Block("field", text, mark=name)

    def _fields(self, fields: Fields, name: str, depth: int) -> Iterator[Block]:
        if name and depth <= _HEADED:
            own = _name_of(fields)
            title = name if own in ("", name) else f"{name} {own}"
            yield Block("heading", title, level=depth)
            name = ""
        nested: list[tuple[str, Node]] = []
        comments: list[tuple[str, Node]] = []
        for key, value in fields:
            full = f"{name} {key}".strip()
            if key == "#":
                comments.append(("", value))
                continue
            if not isinstance(value, str) and not _is_plain(value):
                nested += [*comments, (full, value)]
            else:  # before what has headings, which would take it in
                for _, comment in comments:
                    yield from self.blocks(comment, "", depth)
                yield from self.blocks(value, full, depth)
            comments = []
        for key, value in [*nested, *comments]:
            yield from self.blocks(value, key, depth + isinstance(value, list))

    def _list(self, entries: list[Node], name: str, depth: int) -> Iterator[Block]:
        if _is_plain(entries):
            texts = [text for text in entries if isinstance(text, str)]
            if len(texts) > _MOST_NUMBERS and all(map(_NUMBER.match, texts)):
                self.unread["long lists of numbers"] += 1
            elif name in _PROSE_NAMES:
                yield from (Block("paragraph", text) for text in texts)
            elif sum(map(len, texts)) <= _LONG:
                yield from self._value(", ".join(filter(None, texts)), name)
            else:
                yield Block("field", "", mark=name)
                yield from (Block("item", text) for text in texts)
            return
        said = messages_of(
            [_texts_of(one) for one in entries if isinstance(one, Fields)], self._names
        )
        if said is not None and all(isinstance(one, Fields) for one in entries):
            self._left -= len(said)
            yield from (Block("paragraph", text) for text in said)
            return
        rows = self._rows(entries)
        if rows is not None:
            heads = 1 if isinstance(entries[0], Fields) else None
            yield Block("table", name, rows=rows, heads=heads)
            return
        for number, entry in enumerate(entries, 1):
            title = name
            if isinstance(entry, Fields):
                own = _name_of(entry)
                title = (name or own) if own else f"{name or 'entry'} {number}"
            yield from self.blocks(entry, title, max(depth, 1))

    def _rows(self, entries: list[Node]) -> list[list[Cell]] | None:
        """Return records as rows below their names; None: they are more than records."""
        if all(isinstance(entry, list) and not isinstance(entry, Fields) for entry in entries):
            if not all(map(_is_plain, entries)):
                return None
            flat = [text for entry in entries for text in entry]
            self._left -= len(entries) + len(flat) // _CELLS_A_VALUE + sum(map(len, flat)) // _LONG
            if len(flat) > _MOST_NUMBERS and all(_NUMBER.match(str(text)) for text in flat):
                self.unread["long lists of numbers"] += 1
                return []
            return [[Cell(str(text)) for text in entry] for entry in entries]
        columns: dict[str, None] = {}
        records: list[dict[str, str]] = []
        for entry in entries:
            record = _record(entry) if isinstance(entry, Fields) else None
            columns |= dict.fromkeys(record or ())
            if record is None or len(columns) > _MOST_COLUMNS:
                return None
            records.append(record)
        kept = max(self._left, 0) * _CELLS_A_VALUE // max(len(columns), 1)
        self._left -= len(records) * len(columns) // _CELLS_A_VALUE
        self.unread["further records"] += max(len(records) - kept, 0)
        rows = ([Cell(record.get(column, "")) for column in columns] for record in records[:kept])
        return [[*map(Cell, columns)], *rows]


def _texts_of(fields: Fields) -> dict[str, str]:
    return {key.lower(): value for key, value in fields if isinstance(value, str)}


class _Texts:
    """Makes running texts whole that editors cut at each change of the font; finds objects.

    What is referred to from many places is looked at once.
    """

    def __init__(self) -> None:
        self._made: dict[int, Node] = {}
        self.objects: list[dict[str, str]] = []
        """The texts of each object by name."""

    def whole(self, node: Node, depth: int = 0) -> Node:
        if isinstance(node, str) or depth > _DEEPEST:
            return node
        if id(node) not in self._made:
            self._made[id(node)] = self._remade(node, depth + 1)
        return self._made[id(node)]

    def _remade(self, node: Fields | list[Node], depth: int) -> Node:
        if isinstance(node, Fields):
            made = Fields((key, self.whole(value, depth)) for key, value in node)
            self.objects.append(_texts_of(made))
            return made
        text = _running_text(node)
        return [self.whole(one, depth) for one in node] if text is None else text


def _running_text(pieces: Sequence[Node]) -> str | None:
    """Return the text of a list of its pieces; None if it is a list of something else.

    A piece is a text or an object with a `text` and its looks; a blank or a sign parts two of them.
    """
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, Fields):
            own = dict(piece)
            if not all(isinstance(value, str) for value in own.values()) or "text" not in own:
                return None
            texts.append(str(own["text"]))
        elif isinstance(piece, str):
            texts.append(piece)
        else:
            return None
    has_looks = any(isinstance(piece, Fields) for piece in pieces)
    are_parted = all(
        a[-1:].isspace() or b[:1].isspace() or b[:1] in _CLOSING
        for a, b in pairwise(filter(None, texts))
    )
    return "".join(texts) if len(texts) > 1 and has_looks and are_parted else None


def _is_plain(node: Node) -> bool:
    """Return whether a list holds texts only."""
    return not isinstance(node, Fields | str) and all(isinstance(one, str) for one in node)


def _name_of(fields: Fields) -> str:
    """Return what an object calls itself."""
    known = {
        key.lower(): value
        for key, value in fields
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and "\n" not in value
    }
    return next((known[name] for name in _NAMES if name in known), "")


def _record(fields: Fields, above: str = "", depth: int = 0) -> dict[str, str] | None:
    """Return an object's values by name; None: one of them is prose or a list of objects."""
    record: dict[str, str] = {}
    for key, value in fields:
        name = f"{above}{key}"
        if isinstance(value, Fields) and depth < 2:
            inner = _record(value, f"{name} ", depth + 1)
            if inner is None:
                return None
            record |= inner
            continue
        if key == "#":
            continue
        if not isinstance(value, str) and not _is_plain(value):
            return None
        text = value if isinstance(value, str) else ", ".join(map(str, value))
        if len(text) > _LONG or "\n" in text.strip() or len(_MARKUP.findall(text)) > 1:
            return None
        record[name] = f"{record[name]}, {text}" if name in record else text
    return record


def _written(
    nodes: Sequence[Node],
    filename: str,
    kind: FileType,
    warnings: Sequence[str],
    more: Counter[str],
) -> ParsedDocument:
    texts = _Texts()
    whole = [texts.whole(node) for node in nodes]
    reader = _Reader(filename, names_of(texts.objects))
    blocks: list[Block] = []
    title: Node | None = None
    for number, node in enumerate(whole, 1):
        name = ""
        if isinstance(node, Fields) and len(whole) > 1:
            name = _name_of(node) or f"document {number}"
        elif isinstance(node, Fields):
            title = dict(node).get("title")
        blocks += reader.blocks(node, name, 1 if name else 0)
    return write(
        blocks,
        kind,
        title=title if isinstance(title, str) else None,
        warnings=[*warnings, *unread_parts(more + reader.unread)],
    )


# JSON and JSON Lines.


def parse_json(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return the values of JSON, or of several behind one another; of Zotero's items the text.

    Comments are read and commas too many passed over, with a warning; what is no JSON all the same
    is read as text, with a warning.

    Raises:
        UnsupportedType: The bytes are not text.
        Unreadable: It is nested too deeply.
    """
    source, warnings = decode(content)
    more: Counter[str] = Counter()
    try:
        nodes = _values(source)
    except RecursionError as exc:
        raise Unreadable(f"{filename!r} is nested too deeply; simplify it") from exc
    except ValueError as exc:
        bent = f"it is no valid JSON ({exc})"
        found = _bent(source, more)
        if found is None:
            return _as_text(content, "json", bent)
        nodes = found
        if not more:
            warnings = (*warnings, f"{bent}, and was read as far as it goes")
    if (items := _items_of_zotero(nodes)) is not None:
        return parse_items(items, filename)
    return _written(nodes, filename, "json", warnings, more)


def _items_of_zotero(nodes: Sequence[Node]) -> list[Mapping[str, object]] | None:
    """Return the items of a reply of Zotero's API; None where a value is something else."""
    only = nodes[0] if len(nodes) == 1 else None
    if not isinstance(only, list) or isinstance(only, Fields) or not only:
        return None
    items: list[Mapping[str, object]] = []
    for entry in only:
        data = dict(entry).get("data") if isinstance(entry, Fields) else None
        if not isinstance(data, Fields) or not isinstance(dict(data).get("itemType"), str):
            return None
        items.append(
            {
                name: [dict(one) for one in value if isinstance(one, Fields)]
                if isinstance(value, list) and not isinstance(value, Fields)
                else value
                for name, value in data
            }
        )
    return items


_DECODER = json.JSONDecoder(
    object_pairs_hook=Fields, parse_int=str, parse_float=str, parse_constant=str
)
_BETWEEN_VALUES = re.compile(r"[\s,;\x1e]*")
"""RFC 7464 has a record separator."""
_NOT_JSON = re.compile(
    r'(?P<text>"(?:[^"\\\n]|\\.)*")|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|(?P<open>[{[])'
    r"|(?P<close>[]}])|(?P<comma>,)|(?P<other>[^\s,{}\[\]\"/]+|/)",
    re.DOTALL,
)
_SPARE_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')


def _bent(source: str, more: Counter[str]) -> list[Node] | None:
    """Return what holds of JSON that bends the rules; None where it is hardly any."""
    try:
        return _values(_SPARE_COMMA.sub(lambda found: found[1] or "", _with_comments(source)))
    except (ValueError, RecursionError):
        pass
    lines = [line for line in source.splitlines() if line.strip()]
    records: list[Node] = []
    for line in lines:
        try:
            records += _values(line)
        except (ValueError, RecursionError):
            more["lines that are no JSON"] += 1
    return [records] if len(lines) > 1 and len(records) * 2 > len(lines) else None


def _with_comments(source: str) -> str:
    """Return JSON whose comments in objects are members `#`; others give way to a blank."""
    opened: list[str] = []
    last = ""

    def member(found: re.Match[str]) -> str:
        nonlocal last
        said = found["line"] or found["block"]
        if said is None and found.lastgroup in ("line", "block"):
            return " "
        if said is not None:
            comment = f'"#": {json.dumps(" ".join(said.split(" ")).strip(), ensure_ascii=False)}'
            in_object = opened[-1:] == ["{"] and said.strip()
            if in_object and last in ("open", "comma"):
                last = "comma"
                return f"{comment},"
            ends_value = (
                last in ("text", "close", "other") and source[: found.start()].strip()[-1:] != ":"
            )
            return f", {comment}" if in_object and ends_value else " "
        last = found.lastgroup or ""
        if last == "open":
            opened.append(found[0])
        elif last == "close" and opened:
            opened.pop()
        return found[0]

    return _NOT_JSON.sub(member, source)


def _values(source: str) -> list[Node]:
    """Return the value of JSON, or several as one list.

    Numbers are as written; true, false and null are texts.
    """
    top: list[Any] = []
    at = _BETWEEN_VALUES.match(source).end()  # type: ignore[union-attr]  # matches nothing too
    while at < len(source) or not top:
        value, end = _DECODER.raw_decode(source, at)
        top.append(value)
        at = _BETWEEN_VALUES.match(source, end).end()  # type: ignore[union-attr]
    stack = [top]
    while stack:
        held = stack.pop()
        for at, one in enumerate(held):
            is_pair = isinstance(held, Fields)
            inner = one[1] if is_pair else one
            if isinstance(inner, list):
                stack.append(inner)
                continue
            text = "" if inner is None else str(inner).lower() if isinstance(inner, bool) else inner
            held[at] = (one[0], text) if is_pair else text
    found: list[Node] = top if len(top) == 1 else [top]
    return found


def _as_text(content: bytes, kind: FileType, why: str) -> ParsedDocument:
    plain = parse_plain(content)
    note = f"{why}, and was read as plain text"
    media_type = FORMATS[kind].media_type
    return replace(plain, media_type=media_type, warnings=(*plain.warnings, note))


# YAML.

_COMMENT = re.compile(r"\s*#+[ \t]?(.*)")
_TRAILING = re.compile(r"[ \t]+#+[ \t]?(.*)")
_NULLS = frozenset({"~", "null", "Null", "NULL"})


def parse_yaml(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return the values and the comments of YAML, values as written; tags make no objects.

    What is no YAML, such as a template of it, is read as text, with a warning.

    Raises:
        UnsupportedType: The bytes are not text.
        Unreadable: It is nested too deeply.
    """
    source, warnings = decode(content)
    try:
        nodes = _Yaml(source).documents(filename)
    except (yaml.YAMLError, ValueError) as exc:
        said = " ".join(str(exc).split())[:200]
        return _as_text(content, "yaml", f"it is no valid YAML ({said})")
    return _written(nodes, filename, "yaml", warnings, Counter())


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Yaml:
    """Makes nodes of YAML's events, without the recursion of its own composer."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = source.splitlines()
        self._comments = {
            at: found[1]
            for at, line in enumerate(self._lines)
            if (found := _COMMENT.fullmatch(line))
        }
        self._order = deque(self._comments)
        self._documents: list[Node] = []
        self._opened: list[list[Any]] = []
        self._keys: list[str | None] = []
        """The key that waits for its value, of each open object."""

    def documents(self, filename: str) -> list[Node]:
        """Return the documents of the file; what is referred to again is the same node."""
        anchors: dict[str, Node] = {}
        named: list[str | None] = []
        for event in yaml.parse(self._source, Loader=_Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                is_object = isinstance(event, yaml.MappingStartEvent)
                self._opened.append(Fields() if is_object else [])
                self._keys.append(None)
                named.append(event.anchor)
                if len(named) > _MOST_NESTED:
                    raise Unreadable(f"{filename!r} is nested too deeply; simplify it")
                continue
            made: Node
            if isinstance(event, yaml.CollectionEndEvent):
                made, anchor = self._opened.pop(), named.pop()
                self._keys.pop()
            elif isinstance(event, yaml.ScalarEvent):
                made, anchor = self._scalar(event), event.anchor
            elif isinstance(event, yaml.AliasEvent):
                made, anchor = anchors.get(event.anchor or "", ""), None
            else:
                continue
            if anchor:
                anchors[anchor] = made
            self._attach(made, event.start_mark.line if event.start_mark else 0)
        return self._documents

    def _attach(self, made: Node, line: int) -> None:
        """Add a node to what is open, as a document, an entry, a key or the value of one."""
        if not self._opened:
            self._documents.append(made)
        elif not isinstance(fields := self._opened[-1], Fields):
            fields.append(made)
        elif (key := self._keys[-1]) is None:
            self._comment(fields, line)
            self._keys[-1] = made if isinstance(made, str) else "key"
        else:
            self._keys[-1] = None
            if key == "<<" and isinstance(made, Fields):  # another object's fields, unless own
                own = {known for known, _ in fields}
                fields += [pair for pair in made if pair[0] not in own]
            else:
                fields.append((key, made))

    def _comment(self, fields: Fields, line: int) -> None:
        """Add the comments that stand above a line."""
        said: list[str] = []
        while self._order and self._order[0] < line:
            said.append(self._comments.pop(self._order.popleft(), "").strip())
        if comment := "\n".join(filter(None, said)):
            fields.append(("#", comment))

    def _scalar(self, node: yaml.ScalarEvent) -> str:
        text = "" if not node.style and node.value in _NULLS else str(node.value)
        if node.start_mark is None or node.end_mark is None:
            return text
        first, last, is_block = node.start_mark.line, node.end_mark.line, node.style in ("|", ">")
        for at in range(first + 1, last if is_block else last + 1):
            self._comments.pop(at, None)  # a line of the text that only looks like one
        line = self._lines[last] if last < len(self._lines) else ""
        said = None if is_block else _TRAILING.fullmatch(line, node.end_mark.column)
        return f"{text} ({said[1].strip()})" if said and said[1].strip() and text else text


# XML.

_MOST_ELEMENTS = 500_000


def parse_xml(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return the text of XML without its tags; entities from outside are never read.

    What breaks the rules is read as far as it goes, with a warning.

    Raises:
        TooLarge: It has more elements than are read.
        Unreadable: It is no XML, and nothing in it can be read.
    """
    if content.count(b"</") + content.count(b"/>") > _MOST_ELEMENTS:
        raise TooLarge(
            f"{filename!r} has more than {_MOST_ELEMENTS:,} elements; split it and send the parts"
        )
    warnings: tuple[str, ...] = ()
    try:
        root = parsed_xml(content, entities=True)
    except (etree.XMLSyntaxError, ValueError) as exc:
        source, warnings = decode(content)
        mended = None if "<!ENTITY" in source else _mended(source)
        if mended is None:
            raise Unreadable(
                f"{filename!r} is no valid XML ({exc}); correct it, or send it as text (.txt)"
            ) from exc
        root = mended
        warnings = (*warnings, f"it is no valid XML ({exc}), and was read as far as it goes")
    return _written([_element(root)], filename, "xml", warnings, Counter())


_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_NAMED_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)(\w{2,32};)")
"""Those of HTML, which XML does not know."""


def _mended(source: str) -> etree._Element | None:
    """Return the root of what a tolerant reader finds in damaged XML; None without any text."""
    known = _NAMED_ENTITY.sub(
        lambda found: html5.get(found[1], found[0]), _DECLARATION.sub("", source, count=1)
    )
    parser = etree.XMLParser(
        recover=True,
        resolve_entities=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    root = etree.fromstring(known.encode(), parser)
    return root if root is not None and "".join(map(str, root.itertext())).strip() else None


_RAISED = frozenset({"sup", "superscript"})
_LOWERED = frozenset({"sub", "subscript", "inf"})
_APART = frozenset({"p", "para", "simpara"})
_TABLE_PARTS = {"row": "tr", "cell": "td", "entry": "td", "cols": "colspan", "rows": "rowspan"}
"""Of TEI and DocBook, as HTML names them."""


def _local(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _is_running(element: etree._Element) -> bool:
    """Return whether an element that holds loose text holds nothing but marked words besides."""
    return all(
        _local(one) not in _APART and (len(one) < 2 or _is_loose(one))
        for one in element.iterdescendants(etree.Element)
    )


def _is_loose(element: etree._Element) -> bool:
    texts = (element.text, *(child.tail for child in element))
    return any(text and text.strip() for text in texts)


def _running(element: etree._Element) -> str:
    """Return running text, raised and lowered parts marked, without references to notes."""
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str):
            text, name = _running(child), _local(child)
            marks = {name, *str(child.get("rend") or "").split()}
            if marks & _RAISED:
                is_reference = any(_local(one) in ("xref", "ref") for one in child.iter())
                parts.append("" if is_reference else raised(text))
            else:
                parts.append(lowered(text) if marks & _LOWERED else text)
        parts.append(child.tail or "")
    return "".join(parts)


def _table(element: etree._Element) -> str:
    """Return a table of XHTML, TEI or DocBook as one of HTML."""
    parts: list[str] = []
    stack: list[etree._Element | str] = [element]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            parts.append(one)
            continue
        name = _TABLE_PARTS.get(_local(one), _local(one)) if isinstance(one.tag, str) else "span"
        name = "th" if name == "td" and one.get("role") in ("label", "head") else name
        said = {_TABLE_PARTS.get(key, key): value for key, value in one.attrib.items()}
        spans = (f' {key}="{said[key]}"' for key in ("colspan", "rowspan") if key in said)
        parts.append(f"<{name}{''.join(spans)}>{escape(one.text or '')}")
        behind: list[etree._Element | str] = [f"</{name}>"]
        for child in reversed(one):
            behind += [escape(child.tail or ""), *([child] if isinstance(child.tag, str) else [])]
        stack += behind
    return "".join(parts)


def _element(element: etree._Element) -> Node:
    """Return an element: one that holds running text as text, others as fields or a list."""
    children = [child for child in element if isinstance(child.tag, str)]
    named = element.attrib.items()
    attributes = [(name, said) for name, said in named if "{" not in name and said.strip()]
    if _local(element) == "table" and next(element.iter("{*}tr", "{*}row"), None) is not None:
        return _table(element)
    if not children or (_is_loose(element) and _is_running(element)):
        text = " ".join(_running(element).split())
        about = "; ".join(f"{name}: {value}" for name, value in attributes)
        if about and not text:
            return Fields(attributes) if len(attributes) > 1 else attributes[0][1]
        return f"{text} ({about})" if about and len(text) <= _LONG else text
    fields = Fields(attributes)
    if element.text and element.text.strip():
        fields.append(("", element.text))
    last = None
    for child in children:
        name, node = _local(child), _element(child)
        if name == last and not isinstance(fields[-1][1], str | Fields):
            fields[-1][1].append(node)
        elif name == last:
            fields[-1] = name, [fields[-1][1], node]
        else:
            fields.append((name, node))
        last = name
        if child.tail and child.tail.strip():
            fields.append(("", child.tail))
            last = None
    only = fields[0][1] if len(fields) == 1 else ""
    return fields if isinstance(only, str | Fields) else only
