"""Stream articles from MediaWiki XML dumps.

Plain, bz2 and gzip files. If the index file is in the same folder, multistream bz2 is
decompressed in parallel.
"""

from __future__ import annotations

import bz2
import gzip
import io
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

import mwxml
from typing_extensions import Buffer

from app.core.errors import Unreadable
from app.core.types import Article

LICENCE = "CC BY-SA 4.0"
_BLOCK_BYTES = 1 << 20
_MALFORMED = (mwxml.errors.MalformedXML, EOFError, OSError, ValueError, SyntaxError, AssertionError)
"""What reading a damaged or foreign file raises; mwxml asserts the name of the root element."""


class XmlDump:
    """A MediaWiki export, read once from the start in constant memory.

    Args:
        path: The dump. For `X-multistream.xml.bz2` the index `X-multistream-index.txt[.bz2]` in the
            same folder lets `workers` threads decompress streams at the same time.
        workers: Decompression threads, from 1.
    """

    def __init__(self, path: Path, workers: int = 1) -> None:
        """Name the file; nothing is opened yet."""
        self._path = path
        self._workers = max(1, workers)
        self._bytes_read: Callable[[], int] = int

    def position(self) -> float:
        """Return the share of the file's bytes that the current pass has read, [0, 1]."""
        return min(1.0, self._bytes_read() / max(1, self._path.stat().st_size))

    def name(self) -> str | None:
        """Return the database name in the dump's head, such as `enwiki`; None without.

        Raises:
            Unreadable: The file is no MediaWiki export.
        """
        try:
            with self._open() as file:
                found = mwxml.Dump.from_file(file).site_info.dbname
        except _MALFORMED as exc:
            raise Unreadable(
                f"{self._path.name!r} does not begin like a MediaWiki dump: {exc}"
            ) from exc
        return str(found) if found else None

    def __iter__(self) -> Iterator[Article]:
        """Yield the newest revision of each page.

        Raises:
            Unreadable: The file is no MediaWiki export or ends early; the message names the last
                good page.
        """
        last = "none"
        with self._open() as file:
            try:
                dump = mwxml.Dump.from_file(file)
                base = _article_base(dump.site_info.base)
                for page in dump:
                    revision = None
                    for revision in page:  # noqa: B007  # a history dump lists revisions oldest first; the last one counts
                        pass
                    if revision is None:
                        continue
                    last = page.title
                    text = revision.text or ""
                    yield Article(
                        key=str(page.id),
                        revision=str(revision.id),
                        title=page.title,
                        markup="wikitext",
                        source=text,
                        url=base + quote(page.title.replace(" ", "_"), safe="/:@!$&'()*+,;=~"),
                        licence=LICENCE,
                        redirect_to=page.redirect,
                        namespace=page.namespace or 0,
                    )
            except _MALFORMED as exc:
                name = self._path.name
                raise Unreadable(
                    f"{name!r} cannot be read as a MediaWiki dump beyond page {last!r}: {exc};"
                    " compare the download's checksum"
                ) from exc

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        suffix = self._path.suffix.lower()
        index = multistream_index(self._path) if suffix == ".bz2" and self._workers > 1 else None
        if index is not None:
            streams = _ParallelStreams(self._path, stream_offsets(index), self._workers)
            self._bytes_read = lambda: streams.bytes_read
            with io.BufferedReader(streams, _BLOCK_BYTES) as file:
                yield file
            return
        counted = _Counted(self._path)
        self._bytes_read = lambda: counted.bytes_read
        with io.BufferedReader(counted, _BLOCK_BYTES) as file:
            if suffix == ".bz2":
                with bz2.open(file, "rb") as plain:
                    yield cast("IO[bytes]", plain)
            elif suffix == ".gz":
                with gzip.open(file, "rb") as plain:
                    yield cast("IO[bytes]", plain)
            else:
                yield file


def multistream_index(path: Path) -> Path | None:
    """Return a multistream dump's index if it is in the same folder."""
    if "multistream" not in path.name:
        return None
    stem = (
        path.name.replace("multistream", "multistream-index")
        .removesuffix(".bz2")
        .removesuffix(".xml")
    )
    for name in (f"{stem}.txt.bz2", f"{stem}.txt"):
        if (path.parent / name).exists():
            return path.parent / name
    return None


def stream_offsets(index: Path) -> list[int]:
    """Return byte offsets of page streams in an index, ascending.

    Index lines are `offset:page id:title`.
    """
    with bz2.open(index, "rb") if index.suffix == ".bz2" else index.open("rb") as file:
        return sorted({int(line.partition(b":")[0]) for line in file if line.strip()})


class _Counted(io.FileIO):
    """A file that knows how far it was read, also after it is closed."""

    def __init__(self, path: Path) -> None:
        """Open for reading."""
        super().__init__(path, "rb")
        self.bytes_read = 0

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer and count."""
        count = super().readinto(buffer) or 0
        self.bytes_read += count
        return count


class _ParallelStreams(io.RawIOBase):
    """Plain bytes of a multistream file; bz2 releases the GIL, so threads help."""

    def __init__(self, path: Path, offsets: Sequence[int], workers: int) -> None:
        """Start as many threads as `workers`."""
        super().__init__()
        bounds = [0, *(offset for offset in offsets if offset), path.stat().st_size]
        self._path = path
        self._spans = iter(pairwise(bounds))
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="bunzip2")
        self._ahead: deque[tuple[int, Future[bytes]]] = deque()
        self.bytes_read = 0
        """Of the compressed file, as far as it was handed on."""
        self._window = workers * 4
        self._current = memoryview(b"")

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer from the current stream, decompressing a few streams ahead."""
        target = memoryview(buffer).cast("B")
        while not self._current:
            while len(self._ahead) < self._window and (span := next(self._spans, None)) is not None:
                self._ahead.append((span[1], self._pool.submit(self._decompress, *span)))
            if not self._ahead:
                return 0
            self.bytes_read, stream = self._ahead.popleft()
            self._current = memoryview(stream.result())
        count = min(len(target), len(self._current))
        target[:count] = self._current[:count]
        self._current = self._current[count:]
        return count

    def _decompress(self, start: int, end: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(start)
            return bz2.decompress(file.read(end - start))

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()


def _article_base(main_page: str | None) -> str:
    """Return the address to append titles to, from the main page's address."""
    return (main_page or "https://en.wikipedia.org/wiki/Main_Page").rpartition("/")[0] + "/"
