"""Real HTTP servers that speak the local API of Zotero and that of zotero.org.

They are over a library that a test writes.

Made from its documentation (https://www.zotero.org/support/dev/web_api/v3/local_api): nothing is
paged unless `limit` asks for it, a file is a redirect to a `file://` address, annotations come only where
they are asked for (Zotero 8 and 9), and versions do not change with local changes (before Zotero 10).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.fakes.http_double import Asked, Canned, HttpDouble

LETTERS = "23456789ABCDEFGHIJKLMNPQRSTUVWXYZ"
"""Of keys, which have eight."""
Entry = dict[str, object]


class ZoteroDouble(HttpDouble):
    """`library` is the own library, `groups/ID` one of a group."""

    def __init__(self, data: Path) -> None:
        super().__init__()
        self.storage = data / "storage"
        self.is_on = True
        self.silence_s = 0.0
        """Before each reply."""
        self.may_answer = threading.Event()
        """Cleared, requests wait for it."""
        self.may_answer.set()
        self.entries: dict[str, dict[str, Entry]] = {"library": {}}
        self.collections: dict[str, dict[str, Entry]] = {"library": {}}
        self._made = 0

    # --- the library

    def add(self, place: str = "library", **data: object) -> str:
        """Add an item and return its key."""
        key = self._key()
        kept = {"key": key, "version": 0, "tags": [], "relations": {}, **data}
        added = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=self._made)
        kept["dateAdded"] = kept["dateModified"] = f"{added:%Y-%m-%dT%H:%M:%SZ}"
        entry: Entry = {"key": key, "version": 0, "links": {}, "meta": {}, "data": kept}
        self.entries.setdefault(place, {})[key] = entry
        self.collections.setdefault(place, {})
        return key

    def change(self, key: str, **data: object) -> None:
        for entries in self.entries.values():
            if key in entries:
                entries[key]["data"] = {**self.data(key), **data}

    def data(self, key: str) -> dict[str, object]:
        data = next(entries[key] for entries in self.entries.values() if key in entries)["data"]
        assert isinstance(data, dict)
        return data

    def trash(self, key: str) -> None:
        """Take an item out; what belongs to it is listed still."""
        for entries in self.entries.values():
            entries.pop(key, None)

    def attach(
        self, parent: str, name: str, content: bytes, *, place: str = "library", **data: object
    ) -> str:
        """Attach a stored file and return its key; without a parent it stands alone."""
        kind = "application/pdf" if name.endswith(".pdf") else "text/plain"
        own = {"linkMode": "imported_file", "contentType": kind, "title": "Full Text", **data}
        if parent:
            own["parentItem"] = parent
        key = self.add(place, itemType="attachment", filename=name, **own)
        path = self.storage / key / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        return key

    def path(self, key: str) -> Path:
        return self.storage / key / str(self.data(key)["filename"])

    def annotate(self, file: str, page: int, text: str, comment: str = "") -> str:
        place = next(place for place, entries in self.entries.items() if file in entries)
        return self.add(
            place,
            itemType="annotation",
            parentItem=file,
            annotationType="highlight",
            annotationText=text,
            annotationComment=comment,
            annotationColor="#ffd400",
            annotationPageLabel=str(page),
            annotationSortIndex=f"{page - 1:05d}|000100|00100",
            annotationPosition=json.dumps({"pageIndex": page - 1, "rects": [[1, 2, 3, 4]]}),
        )

    def collect(self, name: str, above: str = "", place: str = "library") -> str:
        key = self._key()
        data = {"key": key, "name": name, "parentCollection": above or False}
        self.collections[place][key] = {"key": key, "version": 0, "data": data}
        return key

    def move_storage(self, to: Path) -> None:
        """Move all files; Zotero knows of it at once."""
        shutil.move(self.storage, to)
        self.storage = to

    def _key(self) -> str:
        self._made += 1
        number, key = self._made, ""
        for _ in range(8):
            number, at = divmod(number, len(LETTERS))
            key = LETTERS[at] + key
        return key

    # --- the protocol

    def default(self, asked: Asked) -> Canned:
        time.sleep(self.silence_s)
        self.may_answer.wait(30)
        if not self.is_on:
            return self._text("Local API is not enabled", 403)
        if asked.headers.get("Zotero-API-Version", "3") != "3":
            return self._text("API version not implemented", 501)
        parts = urlsplit(asked.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match parts.path.strip("/").split("/"):
            case ["api", "users", "0", "groups"]:
                ids = [place.partition("/")[2] for place in self.entries if place != "library"]
                return self._page([{"id": int(one), "data": {"name": one}} for one in ids], query)
            case ["api", "users", "0", *rest]:
                return self._of("library", rest, query)
            case ["api", "groups", group, *rest] if f"groups/{group}" in self.entries:
                return self._of(f"groups/{group}", rest, query)
        return self._text("Not found", 404)

    def _of(self, place: str, rest: list[str], query: dict[str, str]) -> Canned:
        entries = self.entries[place]
        match rest:
            case ["items"]:
                kind = query.get("itemType", "")
                found = [
                    self._shown(one)
                    for one in entries.values()
                    if self._kind(one) == (kind or self._kind(one))
                    and (kind or self._kind(one) != "annotation")
                ]
                return self._page(found, query)
            case ["collections"]:
                return self._page(list(self.collections[place].values()), query)
            case ["items", key, "file"] if key in entries:
                if self._kind(entries[key]) != "attachment":
                    return self._text(f"Not a file attachment: {key}", 400)
                address = self.path(key).resolve().as_uri()
                is_known = self.data(key)["linkMode"] != "linked_file"
                return Canned(b"", 302, headers={"Location": address if is_known else "false"})
        return self._text("Not found", 404)

    def _shown(self, entry: Entry) -> Entry:
        """Return an entry as it is sent: with the size of its file on the disk."""
        data = entry["data"]
        if not isinstance(data, dict) or "filename" not in data:
            return entry
        path = self.path(str(entry["key"]))
        size = {"length": path.stat().st_size} if path.is_file() else {}
        return {**entry, "links": {"enclosure": {"href": path.as_uri(), **size}}}

    @staticmethod
    def _kind(entry: Entry) -> object:
        data = entry["data"]
        return data["itemType"] if isinstance(data, dict) else ""

    @staticmethod
    def _page(found: list[Entry], query: dict[str, str]) -> Canned:
        if query.get("format") == "keys":
            return Canned("\n".join(str(one["key"]) for one in found).encode(), 200, "text/plain")
        start = int(query.get("start", 0))
        page = found[start : start + int(query.get("limit", len(found)))]
        headers = {
            "Total-Results": str(len(found)),
            "Last-Modified-Version": "0",
            "Zotero-API-Version": "3",
        }
        return Canned(json.dumps(page).encode(), headers=headers)

    @staticmethod
    def _text(text: str, status: int) -> Canned:
        return Canned(text.encode(), status, "text/plain", {"Zotero-API-Version": "3"})


WEB_KEY = "P9NiFoyLeZu2bZNvvuQPDWsd"
"""A key of the length that zotero.org gives out."""


class ZoteroWebDouble(ZoteroDouble):
    """zotero.org: `library` is that of the user 475425; everything asks for a key.

    Made from its documentation (https://www.zotero.org/support/dev/web_api/v3/basics, file_upload):
    25 items of a page where `limit` asks for none, never more than 100, keys all at once, every
    change makes a new version of the library, and a file is a redirect to a store that knows no key.
    """

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.version = 1
        self.half: set[str] = set()
        """Keys of files of which the store sends half."""
        self.packed: set[str] = set()
        self.fetched: list[str] = []
        """Keys of files that the store sent."""
        self.keys_at_the_store: list[str] = []
        """API keys that came to the store, which is nobody of Zotero's."""

    def add(self, place: str = "library", **data: object) -> str:
        self.version += 1
        return super().add(place, **data)

    def change(self, key: str, **data: object) -> None:
        self.version += 1
        super().change(key, **data)

    def trash(self, key: str) -> None:
        self.version += 1
        super().trash(key)

    def attach(
        self, parent: str, name: str, content: bytes, *, place: str = "library", **data: object
    ) -> str:
        own = {"md5": hashlib.md5(content, usedforsecurity=False).hexdigest(), **data}
        return super().attach(parent, name, content, place=place, **own)

    def replace_file(self, key: str, content: bytes) -> None:
        """Send the store another file of an attachment, as Zotero does after a change."""
        self.path(key).write_bytes(content)
        self.change(key, md5=hashlib.md5(content, usedforsecurity=False).hexdigest())

    def default(self, asked: Asked) -> Canned:
        parts = urlsplit(asked.path)
        sent = asked.headers.get("Zotero-API-Key", "")
        if parts.path.startswith("/store/"):
            self.keys_at_the_store += [sent] if sent else []
            return self._sent(parts.path.rpartition("/")[2])
        if sent != WEB_KEY:
            return self._text("Invalid key" if sent else "Forbidden", 403)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match parts.path.strip("/").split("/"):
            case ["users", "475425", *rest]:
                reply = self._of("library", rest, self._bounded(query))
            case ["groups", group, *rest] if f"groups/{group}" in self.entries:
                reply = self._of(f"groups/{group}", rest, self._bounded(query))
            case _:
                return self._text("Not found", 404)
        return replace(reply, headers={**reply.headers, "Last-Modified-Version": str(self.version)})

    @staticmethod
    def _bounded(query: dict[str, str]) -> dict[str, str]:
        return {**query, "limit": str(min(int(query.get("limit", 25)), 100))}

    def _of(self, place: str, rest: list[str], query: dict[str, str]) -> Canned:
        entries = self.entries[place]
        match rest:
            case ["items"] if not query.get("itemType"):
                return self._page([self._shown(one) for one in entries.values()], query)
            case ["items", key, "file"] if key in entries:
                if not self.path(key).is_file():
                    return self._text("Not found", 404)
                packed = {"Zotero-File-Compressed": "Yes"} if key in self.packed else {}
                address = f"{self.url}/store/{key}?signature=s1"
                return Canned(b"", 302, headers={"Location": address, **packed})
        return super()._of(place, rest, query)

    def _sent(self, key: str) -> Canned:
        content = self.path(key).read_bytes()
        self.fetched.append(key)
        if key in self.half:
            return Canned(content[: len(content) // 2], declared=len(content))
        return Canned(content, 200, "application/octet-stream")
