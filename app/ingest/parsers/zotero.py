"""Read items of Zotero as its API returns them: facts, abstract, notes, annotations with pages.

References:
    https://www.zotero.org/support/dev/web_api/v3/basics, fields of version 3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, lowered, raised, write
from app.ingest.parsers.html import parse_fragment

Item = Mapping[str, object]
"""The `data` of an item: texts, and lists of creators and tags."""

_OF_THE_PROGRAM = frozenset(
    "key version itemType parentItem dateAdded dateModified accessDate libraryCatalog title"
    " abstractNote linkMode contentType charset md5 mtime path".split()
)
_LOOKS = re.compile(r"</?(?:b|i|span)\b[^<>]*>")
_RAISED = re.compile(r"<(sup|sub)>(.*?)</\1>")
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def parse_items(items: Iterable[Item], filename: str) -> ParsedDocument:
    """Return the text of items in their order; an annotation stands on its page of the file.

    Raises:
        Unreadable: The HTML of a note passes the bounds of `parse_html`.
    """
    blocks: list[Block] = []
    title, page = "", 0
    for item in items:
        kind = item.get("itemType")
        if kind == "note":
            blocks += parse_fragment(_text(item, "note"), filename).blocks
        elif kind == "annotation":
            number = page_of(item)
            if number and number != page:
                blocks.append(Block("page", level=number))
                page = number
            blocks += _annotation(item, number)
        else:
            title = title or _plain(_text(item, "title"))
            blocks += _facts(item)
    return write(blocks, "json", title=title or None)


def page_of(annotation: Item) -> int:
    """Return the page of the file that an annotation is on, from 1; 0 where it has no pages."""
    try:
        position = json.loads(_text(annotation, "annotationPosition"))
        return max(int(position["pageIndex"]) + 1, 0)
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0


def _annotation(item: Item, page: int) -> Iterator[Block]:
    """Yield the marked text, what was written to it, and the printed number of its page."""
    label = _text(item, "annotationPageLabel")
    shown = [
        Block("quote", _plain(_text(item, "annotationText"))),
        Block("paragraph", _plain(_text(item, "annotationComment"))),
    ]
    if any(block.text for block in shown):
        yield from shown
        if label and label != str(page):
            yield Block("field", label, mark="Page")


def _plain(text: str) -> str:
    """Return a text without the tags that titles and annotations may have; powers stay powers."""
    powers = _RAISED.sub(lambda one: (raised if one[1] == "sup" else lowered)(one[2]), text)
    return _LOOKS.sub("", powers)


def _facts(item: Item) -> Iterator[Block]:
    yield Block("heading", _plain(_text(item, "title")), level=1)
    creators = item.get("creators")
    for one in creators if isinstance(creators, list) else ():
        if isinstance(one, Mapping):
            name = _text(one, "name") or f"{_text(one, 'firstName')} {_text(one, 'lastName')}"
            yield Block("field", name.strip(), mark=_label(_text(one, "creatorType")))
    for name, value in item.items():
        if name not in _OF_THE_PROGRAM and isinstance(value, str) and value.strip():
            yield Block("field", value, mark=_label(name))
    if abstract := _text(item, "abstractNote"):
        yield Block("heading", "Abstract", level=2)
        yield Block("paragraph", abstract)


def _label(name: str) -> str:
    """Return a field's name as words: `publicationTitle` as `Publication title`; `DOI` stays."""
    return name if name.isupper() else _WORDS.sub(" ", name).capitalize()


def _text(item: Item, name: str) -> str:
    value = item.get(name)
    return value.strip() if isinstance(value, str) else ""
