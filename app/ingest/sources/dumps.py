"""From a name to a stream of articles."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

import mwxml
from typing_extensions import Buffer

from app.core.cancel import in_order
from app.core.errors import InvalidInput, NotFound, Unreadable
from app.core.labels import found_labels
from app.core.types import Article
from app.ingest.bulk import ARTICLE_NAMESPACE

# Stream articles from MediaWiki XML dumps.

LICENCE = "CC BY-SA 4.0"
_BLOCK_BYTES = 1 << 20
_MALFORMED = (mwxml.errors.MalformedXML, EOFError, OSError, ValueError, SyntaxError, AssertionError)
"""What reading a damaged or foreign file raises; mwxml asserts the name of the root element."""


class XmlDump:
    """A MediaWiki export, read once from the start in constant memory.

    Args:
        paths: The dump, or the files that it is published in, in order. For
            `X-multistream.xml.bz2` the index `X-multistream-index.txt[.bz2]` in the same folder
            lets `workers` threads decompress streams at the same time.
        workers: Decompression threads, from 1.
    """

    def __init__(self, *paths: Path, workers: int = 1) -> None:
        self._paths = paths
        self._workers = max(1, workers)
        self._before = 0
        self._bytes_read: Callable[[], int] = int

    def position(self) -> float:
        size = sum(path.stat().st_size for path in self._paths)
        return min(1.0, (self._before + self._bytes_read()) / max(1, size))

    def name(self) -> str | None:
        """Return the database name in the dump's head, such as `enwiki`; None without.

        Raises:
            Unreadable: The file is no MediaWiki export.
        """
        try:
            with self._open(self._paths[0]) as file:
                found = mwxml.Dump.from_file(file).site_info.dbname
        except _MALFORMED as exc:
            raise Unreadable(
                f"{self._paths[0].name!r} does not begin like a MediaWiki dump: {exc}"
            ) from exc
        return str(found) if found else None

    def __iter__(self) -> Iterator[Article]:
        """Yield the newest revision of each page.

        Raises:
            Unreadable: The file is no MediaWiki export or ends early; the message names the last
                good page.
        """
        self._before = 0
        for path in self._paths:
            yield from self._articles(path)
            self._before += path.stat().st_size
            self._bytes_read = int

    def _articles(self, path: Path) -> Iterator[Article]:
        last = "none"
        with self._open(path) as file:
            try:
                dump = mwxml.Dump.from_file(file)
                base = _article_base(dump.site_info.base)
                for page in dump:
                    # A history dump lists revisions oldest first; the last one counts.
                    newest = deque(page, maxlen=1)
                    if not newest:
                        continue
                    last = page.title
                    yield Article(
                        key=str(page.id),
                        revision=str(newest[0].id),
                        title=page.title,
                        markup="wikitext",
                        source=newest[0].text or "",
                        url=base + quote(page.title.replace(" ", "_"), safe="/:@!$&'()*+,;=~"),
                        licence=LICENCE,
                        redirect_to=page.redirect,
                        namespace=page.namespace or 0,
                    )
            except _MALFORMED as exc:
                raise Unreadable(
                    f"{path.name!r} cannot be read as a MediaWiki dump beyond page {last!r}: {exc};"
                    " compare the download's checksum"
                ) from exc

    @contextmanager
    def _open(self, path: Path) -> Iterator[IO[bytes]]:
        suffix = path.suffix.lower()
        index = multistream_index(path) if suffix == ".bz2" and self._workers > 1 else None
        if index is not None:
            streams = _ParallelStreams(path, stream_offsets(index), self._workers)
            self._bytes_read = lambda: streams.bytes_read
            with io.BufferedReader(streams, _BLOCK_BYTES) as file:
                yield file
            return
        counted = _Counted(path)
        self._bytes_read = lambda: counted.bytes_read
        with io.BufferedReader(counted, _BLOCK_BYTES) as file:
            if suffix == ".bz2":
                with bz2.open(file) as plain:
                    yield cast("IO[bytes]", plain)
            elif suffix == ".gz":
                with gzip.open(file) as plain:
                    yield cast("IO[bytes]", plain)
            else:
                yield file


def multistream_index(path: Path) -> Path | None:
    """Return a multistream dump's index if it is in the same folder."""
    if "multistream" not in path.name:
        return None
    stem = path.name.replace("multistream", "multistream-index")
    stem = stem.removesuffix(".bz2").removesuffix(".xml")
    beside = (path.with_name(f"{stem}.txt{packed}") for packed in (".bz2", ""))
    return next((index for index in beside if index.exists()), None)


def stream_offsets(index: Path) -> list[int]:
    """Return byte offsets of page streams, ascending, of lines `offset:page id:title`."""
    with bz2.open(index, "rb") if index.suffix == ".bz2" else index.open("rb") as file:
        return sorted({int(line.partition(b":")[0]) for line in file if line.strip()})


class _Counted(io.FileIO):
    """A file that knows how far it was read, also after it is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self.bytes_read = 0

    def readinto(self, buffer: Buffer) -> int:
        count = super().readinto(buffer) or 0
        self.bytes_read += count
        return count


class _ParallelStreams(io.RawIOBase):
    """Plain bytes of a multistream file; bz2 releases the GIL, so threads help."""

    def __init__(self, path: Path, offsets: Sequence[int], workers: int) -> None:
        super().__init__()
        self._path = path
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="bunzip2")
        bounds = [0, *filter(None, offsets), path.stat().st_size]
        self._streams = in_order(self._pool, self._decompress, pairwise(bounds), workers * 4)
        self._current = memoryview(b"")
        self.bytes_read = 0
        """Of the compressed file, as far as it was handed on."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        target = memoryview(buffer).cast("B")
        while not self._current:
            if (stream := next(self._streams, None)) is None:
                return 0
            self.bytes_read, plain = stream.result()
            self._current = memoryview(plain)
        count = min(len(target), len(self._current))
        target[:count] = self._current[:count]
        self._current = self._current[count:]
        return count

    def _decompress(self, span: tuple[int, int]) -> tuple[int, bytes]:
        """Return where a span of the file ends, and its plain bytes."""
        start, end = span
        with self._path.open("rb") as file:
            file.seek(start)
            return end, bz2.decompress(file.read(end - start))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()


def _article_base(main_page: str | None) -> str:
    return (main_page or "https://en.wikipedia.org/wiki/Main_Page").rpartition("/")[0] + "/"


# Stream articles from Parquet, JSON Lines and the hub.

_COLUMNS = ("id", "url", "title", "text", "tags", "metadata")
_BATCH_ROWS = 256


class JsonLines:
    """A `.jsonl` or `.jsonl.gz` file, one article object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._raw: IO[bytes] | None = None

    def position(self) -> float:
        if self._raw is None:
            return 0.0
        return 1.0 if self._raw.closed else self._raw.tell() / max(1, self._path.stat().st_size)

    def __iter__(self) -> Iterator[Article]:
        try:
            with self._path.open("rb") as self._raw, self._open(self._raw) as file:
                yield from articles_of(map(_object_of, file), self._path.name, numbered=True)
        except (EOFError, OSError) as exc:
            raise Unreadable(
                f"{self._path.name!r} cannot be read to its end: {exc}; compare the download's"
                " checksum"
            ) from exc

    def _open(self, raw: IO[bytes]) -> IO[bytes]:
        return cast("IO[bytes]", gzip.open(raw, "rb")) if self._path.suffix == ".gz" else raw


def _object_of(line: bytes) -> object:
    """Return the value of a line of JSON; the line itself if it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line.strip()


class ParquetFiles:
    """One Parquet file or a folder of them, read in batches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = self._rows = 0

    def position(self) -> float:
        return self._read / max(1, self._rows)

    def __iter__(self) -> Iterator[Article]:
        try:
            # an extra: 40 MB that only this source needs
            from pyarrow import ArrowException, parquet  # noqa: PLC0415
        except ImportError as exc:
            raise InvalidInput(
                "reading Parquet needs the extra 'bulk'; run: pip install pyarrow"
            ) from exc
        files = sorted(self._path.glob("**/*.parquet")) if self._path.is_dir() else [self._path]
        self._read = 0
        for path in files:
            try:
                self._rows = self._rows or sum(
                    parquet.read_metadata(file).num_rows for file in files
                )
                table = parquet.ParquetFile(path)
                columns = [name for name in _COLUMNS if name in table.schema_arrow.names]
                batches = table.iter_batches(batch_size=_BATCH_ROWS, columns=columns)
                rows = (row for batch in batches for row in batch.to_pylist())
                for article in articles_of(rows, path.name):
                    self._read += 1
                    yield article
            except (ArrowException, OSError) as exc:
                raise Unreadable(
                    f"{path.name!r} is no Parquet file of articles: {exc!r}; expected columns id,"
                    " url, title, text"
                ) from exc


class HubDataset:
    """A data set of the hub, streamed by `datasets`: `owner/data[:configuration]`."""

    def __init__(self, name: str) -> None:
        self._name, _, self._configuration = name.partition(":")

    def __iter__(self) -> Iterator[Article]:
        try:
            import datasets  # noqa: PLC0415  # an extra that brings pandas and pyarrow
        except ImportError as exc:
            raise InvalidInput(
                "reading from the hub needs the extra 'bulk'; run: pip install datasets"
            ) from exc
        try:
            rows = datasets.load_dataset(
                self._name, self._configuration or None, split="train", streaming=True
            )
            yield from articles_of(rows, self._name)
        except (OSError, ValueError) as exc:
            raise Unreadable(
                f"data set {self._name!r} cannot be read: {exc}; check its name and the network"
            ) from exc


def articles_of(rows: Iterable[object], name: str, *, numbered: bool = False) -> Iterator[Article]:
    """Yield the article of each row; one that is none has its fault, which names the first such.

    Without a revision, the text's hash is the revision; without an id, the title is the key, or the
    row's number where rows are `numbered`. Blank rows are left out.

    Raises:
        Unreadable: No row is an article.
    """
    faults: dict[str, int] = {}
    has_articles = False
    for number, row in enumerate(rows, 1):
        if row == b"":
            continue
        fields = row if isinstance(row, Mapping) else {}
        missing = [field for field in ("title", "text") if fields.get(field) is None]
        if missing:
            fault = f"no {' and no '.join(missing)}" if fields is row else "no JSON object"
            reason = f"{fault}, first in row {faults.setdefault(fault, number)}"
            key = f"{name}, row {number}"
            yield Article(key, _hash(repr(row)), "", "text", "", fault=reason)
            continue
        has_articles = True
        text, title, own = str(fields["text"]), str(fields["title"]), fields.get("metadata")
        revision = fields.get("revision") or fields.get("revision_id") or _hash(text)
        yield Article(
            key=str(fields.get("id") or (number if numbered else title)),
            revision=str(revision),
            title=title,
            markup="text",
            source=text,
            url=str(fields["url"]) if fields.get("url") else None,
            licence=str(fields.get("licence") or LICENCE),
            labels=found_labels(fields.get("tags"), own if isinstance(own, Mapping) else {}),
        )
    if faults and not has_articles:
        raise Unreadable(
            f"{name!r} holds no article: {next(iter(faults))}; expected rows with title and text"
        )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# Kiwix ZIM archives as a stream of articles.


class ZimArchive:
    """A `.zim` file; HTML entries are articles, redirects are redirects, others are skipped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0.0

    def position(self) -> float:
        return self._position

    def __iter__(self) -> Iterator[Article]:
        try:
            # an extra (GPL), never needed by the server itself
            from libzim.reader import Archive  # noqa: PLC0415
        except ImportError as exc:
            raise InvalidInput(
                "reading ZIM archives needs libzim; run: pip install libzim"
            ) from exc
        try:
            archive = Archive(self._path)
            for number in range(archive.all_entry_count):
                self._position = number / archive.all_entry_count
                # libzim documents no other way to list entries
                entry = archive._get_entry_by_id(number)
                if entry.is_redirect:
                    to = entry.get_redirect_entry()
                    revision = f"redirect:{to.path}"
                    yield Article(
                        entry.path, revision, entry.title, "html", "", redirect_to=to.title
                    )
                    continue
                item = entry.get_item()
                if not item.mimetype.startswith("text/html"):
                    continue
                content = bytes(item.content)
                yield Article(
                    key=entry.path,
                    revision=hashlib.sha256(content).hexdigest()[:16],
                    title=entry.title,
                    markup="html",
                    source=content.decode("utf-8", "replace"),
                    licence=LICENCE,
                )
        except (RuntimeError, OSError) as exc:
            raise Unreadable(
                f"{self._path.name!r} cannot be read as a ZIM archive: {exc}; compare the"
                " download's checksum"
            ) from exc


KINDS = (
    "a MediaWiki dump (.xml, .xml.bz2, .xml.gz), .zim, .parquet, .jsonl[.gz], a folder of dump"
    " parts, .txt or .parquet files,"
    " or hub:owner/name"
)
_DUMP_SUFFIXES = (".xml", ".xml.bz2", ".xml.gz")
_PART = re.compile(r"-p\d+p\d+\.")
"""What a file name holds when the dump of one wiki is published in several files, as in
`...articles2.xml-p41243p151573.bz2`."""
_DATE = re.compile(r"[-_.](?:19|20)\d\d-?\d\d(?:-?\d\d)?(?=[-_.]|\Z)")


class TextFolder:
    """A folder of `.txt` articles; title in the first line, relative path as key."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._position = 0.0

    def position(self) -> float:
        return self._position

    def __iter__(self) -> Iterator[Article]:
        paths = sorted(self._root.rglob("*.txt"))
        for number, path in enumerate(paths):
            self._position = number / len(paths)
            text = path.read_text(encoding="utf-8", errors="replace")
            title, _, body = text.partition("\n")
            key = path.relative_to(self._root).as_posix()
            revision = hashlib.sha256(text.encode()).hexdigest()[:16]
            yield Article(key, revision, title.strip() or path.stem, "text", body.strip() or text)


class FirstArticles:
    def __init__(self, articles: Iterable[Article], count: int) -> None:
        """Take at most `count` articles, redirects and other pages not counted."""
        self._articles = articles
        self._count = count
        self._read = 0

    def position(self) -> float:
        return self._read / self._count

    def __iter__(self) -> Iterator[Article]:
        self._read = 0
        for article in self._articles:
            yield article
            self._read += article.redirect_to is None and article.namespace == ARTICLE_NAMESPACE
            if self._read == self._count:
                return


def open_articles(source: str, workers: int = 1) -> Iterable[Article]:
    """Return the stream that a source names.

    Args:
        source: A path, or `hub:owner/name[:configuration]`.
        workers: Threads that may decompress.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It is of no kind that can be read.
    """
    if source.startswith("hub:"):
        return HubDataset(source.removeprefix("hub:"))
    path = Path(source)
    if not path.exists():
        raise NotFound(f"there is no file {source!r}; expected {KINDS}")
    if path.is_dir():
        return _open_folder(path, workers)
    if not path.is_file():
        raise InvalidInput(f"{source!r} is neither a file nor a folder; expected {KINDS}")
    name = path.name.lower()
    if _is_dump(path):
        return XmlDump(path, workers=workers)
    if name.endswith(".zim"):
        return ZimArchive(path)
    if name.endswith(".parquet"):
        return ParquetFiles(path)
    if name.endswith((".jsonl", ".jsonl.gz")):
        return JsonLines(path)
    raise InvalidInput(f"{path.name!r} is no source of articles; expected {KINDS}")


def _open_folder(path: Path, workers: int) -> Iterable[Article]:
    if parts := sorted(file for file in path.iterdir() if _is_dump(file)):
        return XmlDump(*parts, workers=workers)
    return ParquetFiles(path) if next(path.rglob("*.parquet"), None) else TextFolder(path)


def _is_dump(path: Path) -> bool:
    name = path.name.lower()
    return path.is_file() and (
        name.endswith(_DUMP_SUFFIXES) or (".xml-p" in name and name.endswith((".bz2", ".gz")))
    )


def source_name(source: str) -> str:
    """Return a source's name in the ledger: equal for all dumps of an encyclopedia.

    A dump says its own name (`enwiki`); other files are called like the file without suffix and
    date.

    Raises:
        NotFound: There is no such file.
        InvalidInput: It is of no kind that can be read.
        Unreadable: It has a dump's name but does not begin like one.
    """
    articles = open_articles(source)
    if isinstance(articles, XmlDump) and (name := articles.name()):
        return name
    if source.startswith("hub:"):
        return source.removeprefix("hub:")
    path = Path(source).resolve()
    return _DATE.sub("", path.name.partition(".")[0] if path.is_file() else path.name) or path.name


def is_markup(articles: Iterable[Article]) -> bool:
    """Return whether a source's articles need parsing, the slowest step."""
    return isinstance(articles, XmlDump | ZimArchive)


def is_part(source: str) -> bool:
    """Return whether a source is one of several files of a dump, which hold the rest."""
    return _PART.search(Path(source).name) is not None
