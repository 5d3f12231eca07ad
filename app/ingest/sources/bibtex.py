"""Read what BibTeX knows of the files that it names, such as an export of Zotero with files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from app.core.labels import CITATION_KEY, DOI, Labels, found_labels
from app.core.normalisation import normalise

_ENTRY = re.compile(r"@([A-Za-z]+)\s*[{(]")
_KEY = re.compile(r"\s*([^\s,{}()\"=]+)\s*,")
_NO_ENTRIES = ("comment", "preamble", "string")
_FIELD = re.compile(r"[\s,]*([A-Za-z][\w-]*)\s*=\s*")
_MARK = re.compile(r"\\.|[{}\"]", re.DOTALL)
_BARE = re.compile(r"[^\s,#{}\"()]+")
_JOINED = re.compile(r"\s*#\s*")
_PART = re.compile(r"((?:\\.|[^\\;])+)")
_COLON = re.compile(r"(?<!\\):")
_ESCAPED = re.compile(r"\\(.)")
_YEAR = re.compile(r"(?<!\d)(1\d{3}|20\d\d)(?!\d)")
_LONGEST = 300


def labels_of_files(source: str) -> dict[str, Labels]:
    """Return labels by the path of each file that an entry names, as it is written there."""
    found: dict[str, Labels] = {}
    at = 0
    while entry := _ENTRY.search(source, at):
        at = entry.end()
        key = _KEY.match(source, at)
        if entry[1].lower() in _NO_ENTRIES:
            _, at = _piece(source, at - 1)
        elif key is not None:
            fields, at = _fields(source, key.end())
            named = _paths(fields.get("file", ""))
            found |= dict.fromkeys(named, _labels(key[1], fields))
    return found


def _fields(source: str, at: int) -> tuple[dict[str, str], int]:
    """Return an entry's fields by their names in lower case, as written, and where they end."""
    fields: dict[str, str] = {}
    while name := _FIELD.match(source, at):
        at = name.end()
        pieces = []
        while True:
            piece, at = _piece(source, at)
            pieces.append(piece)
            if (joined := _JOINED.match(source, at)) is None:
                break
            at = joined.end()
        fields.setdefault(name[1].lower(), "".join(pieces))
    return fields, at


def _piece(source: str, at: int) -> tuple[str, int]:
    """Return a value without what encloses it, and where it ends; empty where none is."""
    if source[at : at + 1] not in ("{", '"'):
        bare = _BARE.match(source, at)
        return (bare[0], bare.end()) if bare else ("", at)
    quoted, depth, begin = source[at] == '"', 0, at + 1
    for mark in _MARK.finditer(source, begin):
        if mark[0] == "{":
            depth += 1
        elif mark[0] == ("" if depth else '"' if quoted else "}"):
            return source[begin : mark.start()], mark.end()
        elif mark[0] == "}":
            depth -= 1
    return source[begin:], len(source)


def _paths(field: str) -> Iterator[str]:
    """Yield the paths of `Title:path:type;Title:path:type`, or of paths alone."""
    for part in _PART.findall(field):
        pieces = _COLON.split(part)
        path = pieces[1] if len(pieces) > 2 else pieces[0]
        yield _ESCAPED.sub(r"\1", path).strip()


def _labels(key: str, fields: dict[str, str]) -> Labels:
    year = _YEAR.search(fields.get("year", "") or fields.get("date", ""))
    authors = tuple(filter(None, map(_name, _names(fields.get("author", "")))))
    keywords = _plain(fields.get("keywords", ""))
    known = found_labels(
        re.split(r"[,;]", keywords), {CITATION_KEY: key, DOI: _plain(fields.get("doi", ""))}
    )
    return replace(
        known,
        title=_plain(fields.get("title", "")) or None,
        authors=authors[:100] or None,
        year=int(year[1]) if year else None,
    )


def _names(authors: str) -> Iterator[str]:
    """Yield names, which `and` parts outside of braces."""
    depth, begin = 0, 0
    for mark in re.finditer(r"\\.|[{}]|\sand\s", authors, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if not depth and len(mark[0]) > 3:
            yield authors[begin : mark.start()]
            begin = mark.end()
    yield authors[begin:]


def _name(written: str) -> str:
    """Return `Baker, Ann` as `Ann Baker`; what braces enclose is one name."""
    family, comma, rest = written.strip().partition(",")
    is_whole = written.strip().startswith("{") and not comma
    return _plain(written if is_whole or not comma else f"{rest.rpartition(',')[2]} {family}")


def _plain(tex: str) -> str:
    """Return a value as one line of text."""
    from pylatexenc.latex2text import LatexNodes2Text  # noqa: PLC0415  # few folders have one

    text = LatexNodes2Text(math_mode="text").latex_to_text(tex) if "\\" in tex else tex
    clean, _ = normalise(text.replace("{", "").replace("}", ""))
    return " ".join(clean.split())[:_LONGEST].strip()
