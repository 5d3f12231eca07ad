"""Measure what reading keeps of documents; write evaluation/reports/documents.{json,md}.

    python -m evaluation.documents                  # every format
    python -m evaluation.documents --only wikitext  # others keep their figures

A value or cell counts when it stands in the stored text as a whole, letters and figures compared.
The data are in the folder DATA (docs/evaluation.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import distribution
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import mwparserfromhell
from mwparserfromhell.nodes import Template

from app.core.errors import InvalidInput
from app.core.types import Article
from app.evaluation.collections import json_lines
from app.ingest.parsers.wikitext import parse_wikitext
from app.ingest.sources.dumps import XmlDump
from app.models.webpage import checked_url
from evaluation.lib.pdfs import pdf
from evaluation.lib.reports import COLLECTIONS, options, publish, report
from tests.unit.models.test_webpage import HOSTILE

Figures = dict[str, tuple[float, float]]
"""What was measured, and its limit: at least, or at most of what `AT_MOST` names; 0 is none."""


_WORD = re.compile(r"\w+")


def words_of(text: str) -> str:
    """Return letters and figures with single spaces, for a comparison of whole values."""
    return f" {' '.join(_WORD.findall(text.lower()))} "


# Wikitext: boxes and tables of real articles, and tables whose cells are known.

_DUMP = Path("wikipedia") / "enwiki-shortened.xml.bz2"
_TABLES = Path("foreign") / "fetaqa" / "tables.jsonl"
_TABLES_READ = 100
_BOX = re.compile(r"infobox|taxobox|automatic taxobox|chembox|drugbox", re.IGNORECASE)
_REFERENCE = re.compile(r"<!--.*?-->|<ref[^>/]*/>|<ref.*?</ref>", re.DOTALL | re.IGNORECASE)
_FILE = re.compile(r"\[\[(?:file|image):[^\[\]]*\]\]", re.IGNORECASE)
_UNSEEN = re.compile(r".*\.(?:jpe?g|png|svg|gif|ogg)\s*\Z|\d+ ?px\Z|#?[0-9a-f]{6}\Z", re.DOTALL)
_SPECIAL = str.maketrans({char: f"&#{ord(char)};" for char in "|[]{}<>&'!=*#:;"})


def wikitext(data: Path) -> Figures:
    """Compare our text with mwparserfromhell's tree of articles, and with known tables."""
    pages = [page for page in XmlDump(data / _DUMP) if page.redirect_to is None]
    texts = [words_of(parse_wikitext(page.source, page.title).text) for page in pages]
    boxes, cells = _values(pages, texts)
    kept = [held for table in _known_tables(data / _TABLES) for held in _labelled(table)]
    return {
        "values of boxes kept": (boxes, 0.9),
        "cells of tables kept": (cells, 0.9),
        f"cells of {_TABLES_READ} known tables beside their label": (sum(kept) / len(kept), 0.9),
    }


def _values(pages: Sequence[Article], texts: Sequence[str]) -> tuple[float, float]:
    """Return the shares of box values and of cells that texts hold."""
    boxes: list[bool] = []
    cells: list[bool] = []
    for page, text in zip(pages, texts, strict=True):
        code = mwparserfromhell.parse(page.source, skip_style_tags=True)
        for box in code.filter_templates(matches=_is_box):
            values = (str(value.value) for value in box.params if value.showkey)
            boxes += [value in text for value in filter(None, map(_shown, values))]
        for table in code.filter_tags(matches=lambda node: node.tag == "table"):
            for cell in table.contents.filter_tags(matches=lambda node: node.tag in ("td", "th")):
                if "{|" not in str(cell.contents) and (shown := _shown(str(cell.contents))):
                    cells.append(shown in text)
    return sum(boxes) / len(boxes), sum(cells) / len(cells)


def _is_box(node: Template) -> bool:
    return _BOX.match(str(node.name).strip()) is not None


def _shown(source: str) -> str:
    """Return the words of a value that a reader sees; empty for pictures, sizes and colours."""
    source = _FILE.sub("", re.sub(r"<br[^>]*>", "\n", _REFERENCE.sub("", source)))
    text = str(mwparserfromhell.parse(source).strip_code(normalize=True)).strip()
    return "" if _UNSEEN.match(text.lower()) else words_of(text).strip() and words_of(text)


def _known_tables(path: Path) -> Iterator[list[list[str]]]:
    return (row["table_array"] for row in islice(json_lines(path), _TABLES_READ))


def _labelled(table: list[list[str]]) -> Iterator[bool]:
    """Yield for each cell below the heads whether it stands behind its column's label."""
    lines = [" ".join(line.split()) for line in _as_text(table).split("\n")]
    for row in table[1:]:
        for label, value in zip(table[0], row, strict=True):
            if label.strip() and value.strip() and label != value:
                wanted = " ".join(f"{label}: {value}".split())
                yield any(wanted in line for line in lines)


def _as_text(table: list[list[str]]) -> str:
    """Return the text of a table whose merged cells are written as spans."""
    rows = []
    for number, row in enumerate(table):
        mark, cells = "!" if number == 0 else "|", []
        for value, same in groupby(row):
            width = sum(1 for _ in same)
            cells.append(f'{mark} colspan="{width}" | {value.translate(_SPECIAL)}')
        rows.append("\n".join(cells))
    return parse_wikitext("{|\n|-\n" + "\n|-\n".join(rows) + "\n|}", "T").text


# The install, and addresses.

_FOR_FORMATS = "docutils", "pillow", "python-calamine", "striprtf"
"""Packages of the default install that only files other than PDF, DOCX, HTML and text need."""


def install(_: Path) -> Figures:
    files = (one for name in _FOR_FORMATS for one in distribution(name).files or ())
    size = sum(path.stat().st_size for one in files if (path := Path(str(one.locate()))).exists())
    return {f"MB of {', '.join(_FOR_FORMATS)}": (size / 1e6, 15)}


def web(_: Path) -> Figures:
    refused = 0
    for address in HOSTILE:
        try:
            checked_url(address)
        except InvalidInput:
            refused += 1
    return {f"refused of {len(HOSTILE)} hostile addresses": (refused / len(HOSTILE), 1)}


FORMATS: dict[str, Callable[[Path], Figures]] = {
    "wikitext": wikitext,
    "pdf": pdf,
    "web": web,
    "install": install,
}
AT_MOST = frozenset({"install"})


def page_of(record: dict[str, dict[str, Any]]) -> str:
    """Return the report as Markdown."""
    rows = [
        f"| {name} | {what} | {value:.3g}"
        f" | {f'at {_side(name)} {limit:g}{_missed(name, value, limit)}' if limit else ''} |"
        for name, figures in record.items()
        for what, (value, limit) in figures.items()
    ]
    head = (
        "# What reading keeps\n\nWritten by `python -m evaluation.documents`. More of documents:"
        " [calculations](calculations.md),\n[ocr](ocr.md), [labels](labels.md),"
        " [whole](whole.md).\n"
    )
    return "\n".join(
        [head, "| format | measured | found | limit |", "|---|---|---|---|", *rows, ""]
    )


def _side(name: str) -> str:
    return "most" if name in AT_MOST else "least"


def _missed(name: str, value: float, limit: float) -> str:
    return ", missed" if (value > limit if name in AT_MOST else value < limit) and limit else ""


def main() -> int:
    given = options(__doc__, only=(None, "measure one format", FORMATS), data=COLLECTIONS["data"])
    record = report("documents")
    for name in [given.only] if given.only else FORMATS:
        record[name] = FORMATS[name](given.data)
    publish("documents", record, page_of(record))
    return int(any(_missed(name, *of) for name, one in record.items() for of in one.values()))


if __name__ == "__main__":
    raise SystemExit(main())
