"""Read libraries of Zotero: by the program on this machine, or one of zotero.org by a key.

Every read takes all items and compares nothing: before Zotero 10 the versions of the local API, and
with them `since`, did not change when an item was changed here. What changed, its bytes and labels
tell. zotero.org says first whether anything changed, and of a file its MD5, so that only new ones
are fetched. Both are only read.

References:
    https://www.zotero.org/support/dev/web_api/v3/local_api
    https://www.zotero.org/support/dev/web_api/v3/basics
    https://www.zotero.org/support/dev/web_api/v3/syncing (versions, Backoff, Retry-After)
    https://www.zotero.org/support/dev/web_api/v3/file_upload (MD5, files that are packed)
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from app.core.cancel import CancelToken
from app.core.errors import (
    Busy,
    InputError,
    InvalidInput,
    NotFound,
    ProviderBadResponse,
    ProviderError,
    ProviderTimeout,
    ProviderUnreachable,
    TooLarge,
    Unreadable,
)
from app.core.ids import without_credentials
from app.core.labels import CITATION_KEY, DOI, Labels, found_labels
from app.core.links import ZOTERO, zotero_address
from app.core.normalisation import normalise
from app.core.types import RawDocument
from app.models.http import HttpClient, HttpReply, on_this_machine
from app.models.options import ZoteroOptions

LOCAL = "http://127.0.0.1:23119"
WEB = "https://api.zotero.org"

Json = Mapping[str, object]
Progress = Callable[[int, int, str], None]
"""Told how many of how many are read, and what."""
IsKnown = Callable[[str, Labels, str], bool]
"""Says whether a document of a source key has these labels, and a file of this MD5, already."""

_MOST_READS = 3
"""Of a list that changes while it is read page by page."""
_OLDEST_FIRST = "sort=dateAdded&direction=asc"
"""What is added while a list is read stands at its end."""


@dataclass(frozen=True, slots=True)
class ZoteroRead:
    """What the libraries hold now."""

    documents: tuple[RawDocument, ...]
    failed: tuple[tuple[str, str], ...]
    """Source key of a document that is there and cannot be read, and the reason."""
    waiting: tuple[tuple[str, str], ...]
    """The same of files that are still on their way."""
    known: tuple[str, ...] = ()
    """Source keys of files that were known and not fetched."""
    md5s: Mapping[str, str] = field(default_factory=dict)
    """What zotero.org says of files, by source key."""
    version: str = ""
    """What the library calls this state; empty: it does not say."""
    is_unchanged: bool = False
    """It is the state that was known: all documents are as they were."""


class Zotero(ABC):
    """Reads libraries of one Zotero, page by page."""

    _fetches: ClassVar[bool]
    """Files are elsewhere; an item says their MD5."""
    _waits: ClassVar[str]
    """Why a file is on its way."""

    def __init__(self, http: HttpClient, folder: str, page: int) -> None:
        self.folder = folder
        """The name under which a library of ours follows it."""
        self._http, self._page = http, page

    def close(self) -> None:
        self._http.close()

    @abstractmethod
    def _places(self) -> Sequence[tuple[str, str]]:
        """Return each library as it stands in addresses, and the path of its API."""

    @abstractmethod
    def _file(self, prefix: str, entry: Json) -> Path | None:
        """Return where an attachment's file is on this machine; None while it is on its way.

        Raises:
            NotFound, InputError, OSError: It is not there, or cannot be had.
        """

    @abstractmethod
    def _get(self, path: str, accept: Sequence[int] = (200,)) -> HttpReply:
        """Return a reply of an accepted status.

        Raises:
            ProviderError: Any other, or none.
        """

    def _version(self) -> str:
        """Return what the library calls its present state; empty: it does not say."""
        return ""

    def read(
        self,
        progress: Progress = lambda *_: None,
        *,
        is_known: IsKnown = lambda *_: False,
        since: str = "",
    ) -> ZoteroRead:
        """Return the documents of the libraries.

        A file that is away fails alone; anything else that fails, fails the whole, so that no item
        is taken for removed.

        Args:
            progress: May raise to end the read.
            is_known: Spares files from being fetched.
            since: `version` of the state that is known; empty: none is.

        Raises:
            ProviderUnreachable: Zotero does not run, or ended in the meantime.
            ProviderTimeout: It was silent for too long.
            ProviderBadResponse: It refuses, or sent something else.
            Busy: It asks to come back later than is waited for.
        """
        version = self._version()
        if version and version == since:
            return ZoteroRead((), (), (), version=version, is_unchanged=True)
        documents: list[RawDocument] = []
        failed: list[tuple[str, str]] = []
        waiting: list[tuple[str, str]] = []
        known: list[str] = []
        md5s: dict[str, str] = {}
        for place, prefix in self._places():
            entries = {
                _key(entry): entry
                for asked in ("items", "items?itemType=annotation")
                for entry in self._list(prefix, asked, progress)
            }
            collections = _paths(self._list(prefix, "collections", progress))
            library = _Library(place, entries, collections)
            documents += library.written()
            files = list(library.files())
            for done, (document, entry) in enumerate(files, 1):
                key = document.source_key
                md5s[key] = _text(_data(entry), "md5") if self._fetches else ""
                if md5s[key] and is_known(key, document.labels, md5s[key]):
                    known.append(key)
                    continue
                try:
                    path = self._file(prefix, entry)
                except (NotFound, InputError) as error:
                    failed.append((key, error.message))
                except OSError as error:
                    failed.append((key, error.strerror or "unreadable"))
                else:
                    if path is None:
                        waiting.append((key, self._waits))
                    else:
                        name = self._fetches and _text(_data(entry), "filename", "title")
                        documents.append(
                            replace(document, filename=name or path.name, content=path)
                        )
                progress(done, len(files), "files")
        return ZoteroRead(
            tuple(documents), tuple(failed), tuple(waiting), tuple(known), md5s, version
        )

    def _list(self, prefix: str, asked: str, progress: Progress) -> list[Json]:
        """Return all objects of a list, read page by page.

        Between two pages the list may change, and objects move to a page that was read. So the keys
        are asked for once more, which is one reply; where they differ, all is read again.
        """
        path = f"{prefix}/{asked}{'&' if '?' in asked else '?'}"
        for _ in range(_MOST_READS):
            found: dict[str, Json] = {}
            start, total = 0, 1
            while start < total:
                reply = self._get(f"{path}{_OLDEST_FIRST}&start={start}&limit={self._page}")
                found |= {_key(one): one for one in self._objects(reply)}
                told = reply.headers.get("Total-Results", "")
                total = int(told) if told.isdecimal() else len(found)
                start += self._page
                progress(len(found), total, "items")
            keys = self._get(f"{path}format=keys").text.split()
            if set(keys) == set(found):
                return list(found.values())
        raise ProviderBadResponse(
            f"{self._http.host} changed its library while it was read; try again"
        )

    def _objects(self, reply: HttpReply) -> list[Json]:
        try:
            value = json.loads(reply.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise ProviderBadResponse(
                f"{self._http.host} sent {reply.text[:80]!r}, expected a list of objects; is it"
                " Zotero?"
            )
        return value


# Ask the program on this machine.

_PAGE = 500
"""Items of one request; the program searches again for each, and holds them all in one reply."""
_IS_OFF = (
    "Zotero lets no program read its library: in Zotero, open Settings, Advanced, and tick 'Allow"
    " other applications on this computer to communicate with Zotero'"
)


class ZoteroClient(Zotero):
    """Reads all libraries of the program that runs on this machine."""

    _fetches = False  # where a file was changed here, the item says the MD5 of before
    _waits = "its download is not finished"

    def __init__(self, base_url: str, *, silence_s: float = 120.0) -> None:
        """Prepare; nothing is sent. `silence_s` is the longest wait for a reply.

        Raises:
            InvalidInput: The address is not one of this machine.
        """
        if not on_this_machine(base_url):
            raise InvalidInput(
                f"ZOTERO_URL is {base_url!r}; the local API is on this machine, usually at"
                f" {LOCAL}; for a library of zotero.org set ZOTERO_LIBRARY"
            )
        self._silence_s = silence_s
        http = HttpClient(
            base_url,
            "Zotero",
            read_timeout_s=silence_s,
            connections=1,
            headers={"Zotero-API-Version": "3"},
        )
        super().__init__(http, f"{socket.gethostname()}:Zotero", _PAGE)

    def _places(self) -> Sequence[tuple[str, str]]:
        groups = self._objects(self._get("/api/users/0/groups"))
        places = sorted(f"groups/{one.get('id')}" for one in groups)
        return [("library", "/api/users/0"), *((place, f"/api/{place}") for place in places)]

    def _file(self, prefix: str, entry: Json) -> Path | None:
        key, name = _key(entry), _text(_data(entry), "filename", "title")
        reply = self._get(f"{prefix}/items/{key}/file", accept=(302, 400, 404))
        address = urlsplit(reply.headers.get("Location", ""))
        if address.scheme != "file":
            raise NotFound(f"Zotero does not know where {name!r} is; locate it in Zotero")
        path = Path(url2pathname(address.path))
        if not path.is_file():
            raise NotFound(
                f"{name!r} is not at {str(path)!r}: open it in Zotero once, which downloads it, or"
                " mount its disk"
            )
        told = _length(entry)
        return path if told in (None, path.stat().st_size) else None

    def _get(self, path: str, accept: Sequence[int] = (200,)) -> HttpReply:
        try:
            with self._http.stream("GET", path, with_redirects=True) as stream:
                reply = HttpReply(stream.status, stream.read(), stream.headers)
        except ProviderTimeout as exc:
            raise ProviderTimeout(
                f"{self._http.host} said nothing for {self._silence_s:.0f} s; wait until Zotero is"
                " idle, and try again"
            ) from exc
        except ProviderUnreachable as exc:
            raise ProviderUnreachable(
                f"{self._http.host} does not answer, or broke off; start Zotero 7 or newer on this"
                " machine, or set ZOTERO_URL to its port"
            ) from exc
        if reply.status == 403:
            raise ProviderBadResponse(_IS_OFF)
        if reply.status not in accept:
            raise ProviderBadResponse(
                f"{self._http.host} answered {reply.status} ({reply.text[:80]}); update Zotero, or"
                " try again"
            )
        return reply


# Ask zotero.org.

_WEB_PAGE = 100
"""Most items of one request that zotero.org answers."""
_MOST_TRIES, _LONGEST_WAIT_S, _USUAL_WAIT_S = 5, 120.0, 10.0
"""Of a request that is to come later; how long is waited where zotero.org does not say."""
_KEYS = "https://www.zotero.org/settings/keys"


class ZoteroWeb(Zotero):
    """Reads one library of zotero.org; the key goes to its API alone, not to where files are."""

    _fetches = True
    _waits = "it has not arrived at zotero.org yet"

    def __init__(
        self,
        base_url: str,
        library: str,
        key: str,
        into: Path,
        *,
        max_bytes: int,
        silence_s: float = 120.0,
        cancel: CancelToken | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            base_url: `WEB`, or one of this machine.
            library: `users/ID` or `groups/ID`.
            key: What zotero.org gave out; empty for a public group.
            into: An empty folder for the files.
            max_bytes: Larger files are not fetched.
            silence_s: The longest wait for a reply.
            cancel: Ends requests and waits.
            sleep: For tests.

        Raises:
            InvalidInput: The address is of someone else.
        """
        self._is_double = on_this_machine(base_url)
        if not self._is_double and base_url.rstrip("/") != WEB:
            raise InvalidInput(
                f"ZOTERO_URL is {without_credentials(base_url)!r}; with ZOTERO_LIBRARY the key goes"
                f" to {WEB} alone: leave ZOTERO_URL out"
            )
        self._library, self._into, self._max_bytes = library, into, max_bytes
        self._cancel = cancel or CancelToken()
        self._sleep = sleep or self._cancel.wait
        self._numbers = count()
        self._rest_s = 0.0
        """How long zotero.org asks to rest before the next request."""
        http = HttpClient(
            base_url,
            "Zotero",
            connect_timeout_s=10.0,
            read_timeout_s=silence_s,
            connections=1,
            headers={"Zotero-API-Version": "3", **({"Zotero-API-Key": key} if key else {})},
            public_only=not self._is_double,
        )
        super().__init__(http, f"zotero.org:{library}", _WEB_PAGE)

    def _places(self) -> Sequence[tuple[str, str]]:
        own = self._library.startswith("users/")
        return [("library" if own else self._library, f"/{self._library}")]

    def _version(self) -> str:
        reply = self._get(f"/{self._library}/items?format=keys&limit=1")
        return reply.headers.get("Last-Modified-Version", "")

    def _file(self, prefix: str, entry: Json) -> Path | None:
        key, data = _key(entry), _data(entry)
        name, length = _text(data, "filename", "title"), _length(entry)
        if _text(data, "linkMode") == "linked_file":
            raise NotFound(f"{name!r} is on another machine, which Zotero only links to")
        if not _text(data, "md5"):
            return None
        if isinstance(length, int) and length > self._max_bytes:
            raise self._too_large(name)
        reply = self._get(f"{prefix}/items/{key}/file", accept=(302, 403, 404))
        if reply.status != 302:
            raise NotFound(
                f"zotero.org has no file {name!r} for this key: sync files there (Zotero, Settings,"
                f" Sync), and allow the key to read them ({_KEYS})"
            )
        if reply.headers.get("Zotero-File-Compressed") == "Yes":
            raise NotFound(
                f"{name!r} is a page of several files, which zotero.org keeps packed; sync it on"
                " the machine that has Zotero"
            )
        path = self._into / f"fetched-{next(self._numbers)}"
        self._fetch(reply.headers.get("Location", ""), name, path)
        with path.open("rb") as file:
            md5 = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False))
        if md5.hexdigest() != data["md5"]:
            raise Unreadable(f"the download of {name!r} broke off; the next sync fetches it again")
        return path

    def _fetch(self, address: str, name: str, path: Path) -> None:
        """Write what an address of the file store sends, which gets no key.

        Raises:
            TooLarge: It passes the cap.
            Unreadable: It does not arrive whole.
            Cancelled: The token was cancelled.
        """
        parts = urlsplit(address)
        if parts.scheme != "https" and not (self._is_double and on_this_machine(address)):
            raise NotFound(f"zotero.org does not say where {name!r} is; try again later")
        store = HttpClient(
            f"{parts.scheme}://{parts.netloc}",
            "the file store of Zotero",
            connect_timeout_s=10.0,
            connections=1,
            public_only=not self._is_double,
        )
        asked = f"{parts.path}?{parts.query}"
        try:
            with (
                closing(store),
                store.stream("GET", asked, cancel=self._cancel) as stream,
                path.open("wb") as file,
            ):
                if stream.status != 200:
                    raise Unreadable(f"{store.host} answered {stream.status} for {name!r}")
                for block in stream.blocks():
                    file.write(block)
                    if file.tell() > self._max_bytes:
                        raise self._too_large(name)
        except ProviderError as exc:
            raise Unreadable(
                f"the download of {name!r} broke off ({exc.message}); the next sync fetches it"
                " again"
            ) from exc

    def _too_large(self, name: str) -> TooLarge:
        return TooLarge(
            f"{name!r} is larger than {self._max_bytes:,} bytes; raise MAX_FILE_SIZE_MB"
        )

    def _get(self, path: str, accept: Sequence[int] = (200,)) -> HttpReply:
        for _ in range(_MOST_TRIES):
            self._rest()
            with self._http.stream("GET", path, cancel=self._cancel, with_redirects=True) as stream:
                reply = HttpReply(stream.status, stream.read(), stream.headers)
            self._rest_s = _seconds(reply, "Backoff", 0.0)
            if reply.status not in (429, 503):
                break
            self._rest_s = max(self._rest_s, _seconds(reply, "Retry-After", _USUAL_WAIT_S))
        if reply.status in accept:
            return reply
        said = f"{self._http.host} answered {reply.status} ({reply.text[:80]})"
        if reply.status in (401, 403):
            raise ProviderBadResponse(
                f"{said}: it does not let this key read {self._library}. Make a key that may at"
                f" {_KEYS} and set ZOTERO_API_KEY"
            )
        if reply.status == 404:
            raise ProviderBadResponse(
                f"{said}: it has no library {self._library!r}. ZOTERO_LIBRARY is users/ and the"
                f" user id that {_KEYS} shows, or groups/ and the number in the group's address"
            )
        if reply.status in (429, 503):
            raise Busy(f"{said}: it has too much to do; sync again later")
        raise ProviderBadResponse(f"{said}; try again later")

    def _rest(self) -> None:
        """Wait as long as zotero.org asked for.

        Raises:
            Busy: That is too long.
            Cancelled: The token was cancelled.
        """
        rest_s, self._rest_s = self._rest_s, 0.0
        if rest_s > _LONGEST_WAIT_S:
            raise Busy(f"{self._http.host} asks to come back in {rest_s:.0f} s; sync again then")
        if rest_s:
            self._sleep(rest_s)
            self._cancel.raise_if_cancelled()


def _seconds(reply: HttpReply, header: str, usual: float) -> float:
    told = reply.headers.get(header, "")
    return float(told) if told.isdecimal() else usual


def open_zotero(options: ZoteroOptions, into: Path, cancel: CancelToken | None = None) -> Zotero:
    """Return what reads the library of zotero.org that is set, else the program.

    Files of zotero.org are written into a folder, which is empty.

    Raises:
        InvalidInput: The address is none for it.
    """
    if not options.zotero_library:
        return ZoteroClient(options.zotero_url or LOCAL)
    return ZoteroWeb(
        options.zotero_url or WEB,
        options.zotero_library,
        options.zotero_api_key,
        into,
        max_bytes=options.max_file_bytes,
        cancel=cancel,
    )


# From items to documents: files, what is known of them, and what was written to them.

_TITLES = ("title", "caseName", "nameOfAct", "subject")
"""In which field items of different types have their title."""
_NOT_OF_THE_WORK = frozenset(
    "version dateAdded dateModified accessDate tags collections relations key citationKey".split()
)
"""Fields that change without the work, or stand in its labels."""
_WITHOUT_FILE = ("linked_url", "embedded_image")
_EXTRA = r"(?im)^[ \t]*{}[ \t]*:[ \t]*(\S+)"
"""A line of the field Extra, which holds what an item's type has no field for."""
_YEAR = re.compile(r"(?<!\d)(1\d{3}|20\d\d)(?!\d)")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_TAG = re.compile(r"<[^>]*>")
_LOOKS = re.compile(r"</?(?:i|b|sub|sup|span)\b[^<>]*>")
"""Tags that a title may have, such as those around the name of a species."""
_LONGEST_TAG = 64
_LONGEST_TITLE, _LONGEST_NAME = 300, 100


class _Library:
    """The items of one library as documents."""

    def __init__(self, place: str, entries: Mapping[str, Json], paths: Mapping[str, str]) -> None:
        """Sort items by what they belong to.

        Args:
            place: `library`, or `groups/ID`, as it stands in addresses.
            entries: By key.
            paths: Names of collections by key.
        """
        self._place, self._entries, self._paths = place, entries, paths
        self._children: dict[str, list[Json]] = {}
        for entry in entries.values():
            parent = _text(_data(entry), "parentItem")
            if not parent or parent in entries:  # else what it belongs to is in the trash
                self._children.setdefault(parent, []).append(entry)

    def files(self) -> Iterator[tuple[RawDocument, Json]]:
        """Yield a document for each attached file, and its entry; the content is not known yet."""
        for key, entry in self._works():
            for at, file in enumerate(self._files_of(key, entry)):
                labels = self._labels(entry, file, "open-pdf", is_main=at == 0)
                yield self._document(_key(file), "file", labels, b""), file

    def written(self) -> Iterator[RawDocument]:
        """Yield what is written in the library itself.

        That are the annotations of each file, and of each item its notes, with the facts and the
        abstract of an item that has no file.
        """
        for key, entry in self._works():
            files = self._files_of(key, entry)
            for at, file in enumerate(files):
                if marks := sorted(self._of(_key(file), "annotation"), key=_place_of):
                    labels = self._labels(
                        entry, file, "open-pdf", is_main=at == 0, about="annotations"
                    )
                    content = _content(map(_annotation, marks))
                    yield self._document(_key(file), "annotations", labels, content)
            own = [] if files else [_work(_data(entry))]
            kind = _text(_data(entry), "itemType")
            notes = [entry] if kind == "note" else self._of(key, "note")
            said = [_note(one) for one in notes if _plain(_text(_data(one), "note"))]
            if items := [*(own if kind != "note" else []), *said]:
                about = "notes" if files else ""
                labels = self._labels(entry, entry, "select", is_main=not files, about=about)
                yield self._document(key, "item", labels, _content(items))

    def _works(self) -> Iterator[tuple[str, Json]]:
        """Yield what stands in the library by itself: items, and files and notes without one."""
        for entry in self._children.get("", ()):
            kind, has_file = _text(_data(entry), "itemType"), _has_file(entry)
            if kind != "annotation" and (kind != "attachment" or has_file):
                yield _key(entry), entry

    def _of(self, key: str, kind: str) -> list[Json]:
        """Return children of a kind that say something."""
        own = [one for one in self._children.get(key, ()) if _text(_data(one), "itemType") == kind]
        return [one for one in own if kind != "annotation" or _annotation(one) is not None]

    def _files_of(self, key: str, entry: Json) -> list[Json]:
        """Return the files of an item, that which Zotero opens first: the oldest PDF."""
        own = [entry] if _has_file(entry) else self._of(key, "attachment")

        def order(one: Json) -> tuple[bool, str, str]:
            data = _data(one)
            is_pdf = _text(data, "contentType") == "application/pdf"
            return not is_pdf, _text(data, "dateAdded"), _key(one)

        return sorted(filter(_has_file, own), key=order)

    def _document(self, key: str, part: str, labels: Labels, content: bytes) -> RawDocument:
        source_key = f"zotero/{self._place}/items/{key}/{part}"
        return RawDocument(
            source_key, f"{str(labels.title)[:_LONGEST_NAME]}.json", content, labels=labels
        )

    def _labels(
        self, work: Json, part: Json, action: str, *, is_main: bool, about: str = ""
    ) -> Labels:
        """Return what Zotero knows of a work, for one document of it.

        The DOI is given to its main document alone, which is the work.
        """
        data, own = _data(work), _data(part)
        title = _shown(_text(data, *_TITLES) or _first_line(_text(data, "note")))
        title = title or _shown(_text(data, "filename")) or "Untitled"
        more = about or ("" if is_main else _shown(_text(own, "title", "filename"))[:_LONGEST_NAME])
        tags = [
            *(_text(tag, "tag") for one in (data, own) for tag in _objects_in(one, "tags")),
            *(self._paths.get(key, "") for key in _texts_in(data, "collections")),
        ]
        extra = _text(data, "extra")
        cited = _text(data, "citationKey") or _in_extra("Citation Key", extra)
        doi = _DOI.search(_text(data, "DOI") or _in_extra("DOI", extra))
        year = _YEAR.search(_text(_member(work, "meta"), "parsedDate") or _text(data, "date"))
        known = found_labels(
            list(map(_tag, tags)),
            {
                ZOTERO: zotero_address(action, self._place, _key(part)),
                CITATION_KEY: cited or None,
                DOI: doi[0] if doi and is_main and not about else None,
            },
        )
        return replace(
            known,
            tags=known.tags or (),
            metadata={CITATION_KEY: None, DOI: None, **known.metadata},
            title=f"{title} ({more})" if more else title,
            authors=_authors(data),
            year=int(year[1]) if year else None,
        )


def _shown(text: str) -> str:
    """Return a text on one line, without tags and characters that are not seen."""
    return " ".join(normalise(_LOOKS.sub("", text))[0].split())[:_LONGEST_TITLE].strip()


def _paths(collections: Iterable[Json]) -> dict[str, str]:
    """Return collections by key as `Thesis/Chapter 2`."""
    own = {_key(one): _data(one) for one in collections}

    def path(key: str, below: frozenset[str] = frozenset()) -> str:
        data = own.get(key)
        if data is None or key in below:
            return ""
        above = path(_text(data, "parentCollection"), below | {key})
        return f"{above}/{_text(data, 'name')}".strip("/")

    return {key: path(key) for key in own}


def _authors(data: Json) -> tuple[str, ...]:
    """Return the authors of a work, or who else made it."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for one in _objects_in(data, "creators"):
        name = _text(one, "name") or f"{_text(one, 'firstName')} {_text(one, 'lastName')}".strip()
        if name := _shown(name):
            names[_text(one, "creatorType") == "author"].append(name)
    return tuple((names[True] or names[False])[:100])


def _work(data: Json) -> Json:
    title = _text(data, *_TITLES)
    return {**{k: v for k, v in data.items() if k not in _NOT_OF_THE_WORK}, "title": title}


def _note(entry: Json) -> Json:
    return {"itemType": "note", "note": _text(_data(entry), "note")}


def _annotation(entry: Json) -> Json | None:
    """Return what an annotation says and its page; None where it says nothing, as a drawing."""
    data = _data(entry)
    names = ("annotationText", "annotationComment", "annotationPageLabel")
    said = {name: _text(data, name) for name in names}
    page: object = None
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        page = json.loads(_text(data, "annotationPosition"))["pageIndex"]
    position = {} if page is None else {"annotationPosition": json.dumps({"pageIndex": page})}
    if not (said["annotationText"] or said["annotationComment"]):
        return None
    return {"itemType": "annotation", **said, **position}


def _content(items: Iterable[Json | None]) -> bytes:
    """Return items as the API would, without what changes by itself."""
    entries = [{"data": item} for item in items]
    return json.dumps(entries, ensure_ascii=False, indent=1, sort_keys=True).encode(
        "utf-8", "replace"
    )


def _place_of(entry: Json) -> tuple[str, str]:
    return _text(_data(entry), "annotationSortIndex"), _key(entry)


def _has_file(entry: Json) -> bool:
    data = _data(entry)
    is_attachment = _text(data, "itemType") == "attachment"
    return is_attachment and _text(data, "linkMode") not in _WITHOUT_FILE


def _tag(name: str) -> str:
    """Return a tag as it is kept: without commas, of a long path its end."""
    clean = " ".join(name.replace(",", " ").split())
    return clean if len(clean) <= _LONGEST_TAG else clean.rpartition("/")[2][:_LONGEST_TAG]


def _in_extra(name: str, extra: str) -> str:
    found = re.search(_EXTRA.format(name), extra)
    return found[1] if found else ""


def _plain(note: str) -> str:
    return html.unescape(_TAG.sub("\n", note)).strip()


def _first_line(note: str) -> str:
    return _plain(note).partition("\n")[0].strip()


def _key(entry: Json) -> str:
    return _text(entry, "key")


def _data(entry: Json) -> Json:
    return _member(entry, "data")


def _length(entry: Json) -> object:
    """Return the bytes of an attachment's file, where they are told."""
    return _member(_member(entry, "links"), "enclosure").get("length")


def _member(value: Json, name: str) -> Json:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: Json, *names: str) -> str:
    """Return the first of these fields that is a text and not blank."""
    texts = (value.get(name) for name in names)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")


def _objects_in(value: Json, name: str) -> list[Json]:
    found = value.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _texts_in(value: Json, name: str) -> list[str]:
    found = value.get(name)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
