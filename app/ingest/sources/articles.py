"""From a name to a stream of articles."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from app.core.errors import InvalidInput, NotFound
from app.core.types import Article
from app.ingest.bulk_work import ARTICLE_NAMESPACE
from app.ingest.sources.dump_xml import XmlDump
from app.ingest.sources.tables import HubDataset, JsonLines, ParquetFiles
from app.ingest.sources.zim import ZimArchive

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


class DumpParts:
    """One dump published in several files, read in the order of their names."""

    def __init__(self, paths: Sequence[Path], workers: int = 1) -> None:
        """Name the files; nothing is opened yet."""
        self._parts = [XmlDump(path, workers) for path in paths]
        self._sizes = [path.stat().st_size for path in paths]
        self._before = 0
        self._current = 0

    def position(self) -> float:
        """Return the share of all files' bytes that the current pass has read, [0, 1]."""
        within = self._parts[self._current].position() * self._sizes[self._current]
        return min(1.0, (self._before + within) / max(1, sum(self._sizes)))

    def name(self) -> str | None:
        """Return the database name of the first part."""
        return self._parts[0].name()

    def __iter__(self) -> Iterator[Article]:
        """Yield the articles of every part."""
        self._before = 0
        for number, part in enumerate(self._parts):
            self._current = number
            yield from part
            self._before += self._sizes[number]


class TextFolder:
    """A folder of `.txt` articles; title in the first line, path as key.

    The path is relative to the folder.
    """

    def __init__(self, root: Path) -> None:
        """Name the folder; nothing is read yet."""
        self._root = root
        self._position = 0.0

    def position(self) -> float:
        """Return the share of the files that the current pass has read, [0, 1]."""
        return self._position

    def __iter__(self) -> Iterator[Article]:
        """Yield articles by path."""
        paths = sorted(self._root.rglob("*.txt"))
        for number, path in enumerate(paths):
            self._position = number / len(paths)
            text = path.read_text(encoding="utf-8", errors="replace")
            title, _, body = text.partition("\n")
            key = path.relative_to(self._root).as_posix()
            revision = hashlib.sha256(text.encode()).hexdigest()[:16]
            yield Article(key, revision, title.strip() or path.stem, "text", body.strip() or text)


class FirstArticles:
    """The beginning of a source."""

    def __init__(self, articles: Iterable[Article], count: int) -> None:
        """Take at most `count` articles.

        Redirects and other pages among them pass through without counting.
        """
        self._articles = articles
        self._count = count
        self._read = 0

    def position(self) -> float:
        """Return the share of them that the current pass has read, [0, 1]."""
        return self._read / self._count

    def __iter__(self) -> Iterator[Article]:
        """Yield them."""
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
        return XmlDump(path, workers)
    if name.endswith(".zim"):
        return ZimArchive(path)
    if name.endswith(".parquet"):
        return ParquetFiles(path)
    if name.endswith((".jsonl", ".jsonl.gz")):
        return JsonLines(path)
    raise InvalidInput(f"{path.name!r} is no source of articles; expected {KINDS}")


def _open_folder(path: Path, workers: int) -> Iterable[Article]:
    if parts := sorted(file for file in path.iterdir() if _is_dump(file)):
        return DumpParts(parts, workers)
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
    if isinstance(articles, XmlDump | DumpParts) and (name := articles.name()):
        return name
    if source.startswith("hub:"):
        return source.removeprefix("hub:")
    path = Path(source).resolve()
    return _DATE.sub("", path.name.partition(".")[0] if path.is_file() else path.name) or path.name


def is_markup(articles: Iterable[Article]) -> bool:
    """Return whether a source's articles need parsing, the slowest step."""
    return isinstance(articles, XmlDump | DumpParts | ZimArchive)


def is_part(source: str) -> bool:
    """Return whether a source is one of several files of a dump.

    What it lacks may be in another file.
    """
    return _PART.search(Path(source).name) is not None
