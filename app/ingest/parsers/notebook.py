"""Read Jupyter notebooks: prose, code and what the code printed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from app.core.errors import Unreadable
from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Inner, write
from app.ingest.parsers.markdown import parse_markdown
from app.ingest.parsers.sniffing import decode, without_terminal_codes

_LONGEST_OUTPUT = 20_000
"""Characters of one output; a longer one is a log, of which the beginning is read."""
_Json = Mapping[str, object]


def parse_notebook(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return Markdown cells as prose, code cells as code, and their outputs as far as text.

    Pictures and HTML among the outputs are named in a warning.

    Raises:
        UnsupportedType: The bytes are not text.
        Unreadable: It is no notebook.
    """
    source, warnings = decode(content)
    try:
        notebook = json.loads(source)
        sheets = notebook.get("worksheets", [notebook])  # before version 4
        cells = [cell for sheet in sheets for cell in sheet["cells"] if isinstance(cell, dict)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise Unreadable(
            f"{filename!r} is no notebook that can be read ({type(exc).__name__}); open it in"
            " Jupyter and save it again"
        ) from exc
    unread: Counter[str] = Counter()
    about = notebook.get("metadata")
    about = about if isinstance(about, dict) else {}
    authors = about.get("authors")
    people = authors if isinstance(authors, list) else []
    names = [one.get("name") for one in people if isinstance(one, dict)]
    blocks = [block for cell in cells for block in _cell(cell, filename, unread)]
    named = [f"{count} {kind}" for kind, count in unread.items()]
    return write(
        blocks,
        "ipynb",
        title=str(about.get("title") or "") or None,
        authors=[name for name in names if isinstance(name, str)],
        warnings=(*warnings, *([f"not read: {', '.join(named)}"] if named else [])),
    )


def _cell(cell: _Json, filename: str, unread: Counter[str]) -> Iterator[Block | Inner]:
    text = _text(cell.get("source", cell.get("input")))
    kind = cell.get("cell_type")
    attached = cell.get("attachments")
    if isinstance(attached, dict) and attached:
        unread["pictures"] += len(attached)
    if kind == "markdown":
        yield Inner(parse_markdown(text.encode("utf-8", "replace"), filename), 0)
    elif kind == "heading":
        level = cell.get("level")
        yield Block("heading", text, level=level if isinstance(level, int) else 1)
    else:
        yield Block("code" if kind == "code" else "paragraph", text)
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict):
            yield from _output(output, unread)


def _output(output: _Json, unread: Counter[str]) -> Iterator[Block]:
    data = output.get("data", output)
    data = data if isinstance(data, dict) else {}
    text = _text(data.get("text/plain", data.get("text", output.get("text"))))
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{output.get('ename')}: {output.get('evalue')}"
    if any(str(kind).startswith("image/") or kind in ("png", "jpeg", "svg") for kind in data):
        unread["pictures"] += 1
        return  # its text only names the object
    if "text/html" in data or "html" in data:
        unread["outputs in HTML"] += 1
    if len(text) > _LONGEST_OUTPUT:
        unread["ends of long outputs"] += 1
    yield Block("code", without_terminal_codes(text[:_LONGEST_OUTPUT]))


def _text(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
