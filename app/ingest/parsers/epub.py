"""Read EPUB books: the pages of the spine in order, by the HTML reader."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from urllib.parse import unquote
from zipfile import ZipFile

from lxml import etree

from app.core.errors import Encrypted, InputError, Unreadable
from app.core.types import ParsedDocument
from app.ingest.parsers.blocks import Block, Inner, write
from app.ingest.parsers.html import parse_html
from app.ingest.parsers.office import DC, opened, parsed_xml

_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Ways to hide fonts, which are no protection of the text (EPUB 3.3, section 4.4)."""
_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})
_YEAR = re.compile(r"\b(1[4-9]\d\d|20\d\d)\b")
_MOST_NAMED = 20


def parse_epub(content: bytes, filename: str, *_: object) -> ParsedDocument:
    """Return a book; a chapter without a heading gets its name from the table of contents.

    Raises:
        Encrypted: It is protected against copying (DRM).
        TooLarge: Unpacked it passes the limits of a zip bomb check.
        Unreadable: It is damaged, or none of its pages is there.
    """
    with opened(content, filename, "EPUB book") as archive:
        _refuse_protected(archive, filename)
        container = parsed_xml(archive.read("META-INF/container.xml"))
        path = next((one.get("full-path") or "" for one in container.iter("{*}rootfile")), "")
        package = parsed_xml(archive.read(path))
        book = _Book(archive, posixpath.dirname(path), package)
        blocks: list[Block | Inner] = []
        for page in book.spine:
            blocks += book.read(page)
    if not blocks:
        raise Unreadable(
            f"{filename!r} has no page that can be read; open it in a reader of books and save it"
            " as PDF"
        )
    date = _YEAR.search(package.findtext(f".//{DC}date") or "")
    return write(
        blocks,
        "epub",
        title=" ".join((package.findtext(f".//{DC}title") or "").split()) or None,
        authors=[" ".join((one.text or "").split()) for one in package.iter(f"{DC}creator")],
        year=int(date[1]) if date else None,
        warnings=book.warnings(),
    )


def _refuse_protected(archive: ZipFile, filename: str) -> None:
    names = set(archive.namelist())
    if "META-INF/encryption.xml" not in names:
        return
    listed = parsed_xml(archive.read("META-INF/encryption.xml"))
    methods = (
        one.get("Algorithm") or ""
        for one in listed.iterfind(".//{*}EncryptedData/{*}EncryptionMethod")
    )
    if any(method not in _FONTS for method in methods):
        raise Encrypted(
            f"{filename!r} is protected against copying (DRM); get it without protection from its"
            " publisher and send that"
        )


class _Book:
    """The pages of a package, their names, and what is not read."""

    def __init__(self, archive: ZipFile, folder: str, package: etree._Element) -> None:
        self._archive = archive
        self._names = set(archive.namelist())
        self._unread: list[str] = []
        self._notes: list[str] = []
        items = {one.get("id") or "": one for one in package.iter("{*}item")}
        self._paths = {key: _path(folder, one.get("href") or "") for key, one in items.items()}
        kinds = {self._paths[key]: one.get("media-type") or "" for key, one in items.items()}
        self._pictures = sum(kind.startswith("image/") for kind in kinds.values())
        spine = package.find(".//{*}spine")
        refs = [one.get("idref") or "" for one in (() if spine is None else spine)]
        self.spine = list(dict.fromkeys(self._paths[ref] for ref in refs if ref in self._paths))
        self._kinds = kinds
        contents = [
            key for key, one in items.items() if "nav" in (one.get("properties") or "").split()
        ]
        if spine is not None and spine.get("toc") in items:
            contents.append(spine.get("toc") or "")
        self._titles = self._named([self._paths[key] for key in contents])

    def _named(self, contents: list[str]) -> Mapping[str, str]:
        """Return the names of pages by the first table of contents that is there."""
        for path in contents:
            if path not in self._names:
                continue
            tree, folder = parsed_xml(self._archive.read(path)), posixpath.dirname(path)
            found: dict[str, str] = {}
            for one in tree.iter("{*}a", "{*}navPoint"):
                target = one.find("{*}content")
                label = one if target is None else one.find("{*}navLabel")
                address = one.get("href") if target is None else target.get("src")
                if address and label is not None:
                    text = " ".join("".join(str(part) for part in label.itertext()).split())
                    found.setdefault(_path(folder, address), text)
            return found
        return {}

    def read(self, path: str) -> list[Block | Inner]:
        if path not in self._names or self._kinds[path] not in _PAGES:
            self._unread.append(posixpath.basename(path))
            return []
        try:
            page = parse_html(self._archive.read(path), path)
        except InputError as exc:
            self._unread.append(exc.message.partition(";")[0])
            return []
        self._notes += page.warnings
        if not page.text.strip():
            return []
        title = "" if page.headings else self._titles.get(path, "")
        return [Block("heading", title, level=1), Inner(page, 0)]

    def warnings(self) -> list[str]:
        more = len(self._unread) - _MOST_NAMED
        unread = [*self._unread[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
        return [
            *dict.fromkeys(self._notes),
            *(["pages not read: " + ", ".join(unread)] if unread else []),
            *([f"{self._pictures} pictures are not read"] if self._pictures else []),
        ]


def _path(folder: str, address: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(address.partition("#")[0])))
