"""From a name to a stream of articles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from app.core.errors import InvalidInput, NotFound
from app.core.types import Article
from app.ingest.sources.dump_xml import XmlDump
from app.ingest.sources.tables import HubDataset, JsonLines, ParquetFiles
from app.ingest.sources.zim import ZimArchive

KINDS = (
    "a MediaWiki dump (.xml, .xml.bz2, .xml.gz), .zim, .parquet, .jsonl[.gz], a folder of .txt or .parquet files, or hub:owner/name"
)


class TextFolder:
    """A folder of `.txt` files, one article each: the title is the first line, the key the path below the folder."""

    def __init__(self, root: Path) -> None:
        """Name the folder; nothing is read yet."""
        self._root = root

    def __iter__(self) -> Iterator[Article]:
        """Yield articles by path."""
        for path in sorted(self._root.rglob("*.txt")):
            text = path.read_text(encoding="utf-8", errors="replace")
            title, _, body = text.partition("\n")
            key = path.relative_to(self._root).as_posix()
            revision = hashlib.sha256(text.encode()).hexdigest()[:16]
            yield Article(key, revision, title.strip() or path.stem, "text", body.strip() or text)


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
        return ParquetFiles(path) if next(path.rglob("*.parquet"), None) else TextFolder(path)
    name = path.name.lower()
    if name.endswith((".xml", ".xml.bz2", ".xml.gz")):
        return XmlDump(path, workers)
    if name.endswith(".zim"):
        return ZimArchive(path)
    if name.endswith(".parquet"):
        return ParquetFiles(path)
    if name.endswith((".jsonl", ".jsonl.gz")):
        return JsonLines(path)
    raise InvalidInput(f"{path.name!r} is no source of articles; expected {KINDS}")
