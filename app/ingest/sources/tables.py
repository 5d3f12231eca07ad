"""Stream articles from Parquet, JSON Lines and the hub.

In the layout of `wikimedia/wikipedia`: id, url, title, text.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, cast

from app.core.errors import InvalidInput, Unreadable
from app.core.types import Article

LICENCE = "CC BY-SA 4.0"
_COLUMNS = ("id", "url", "title", "text")
_BATCH_ROWS = 256


class JsonLines:
    """A `.jsonl` or `.jsonl.gz` file, one article object a line."""

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is opened yet."""
        self._path = path
        self._raw: IO[bytes] | None = None

    def position(self) -> float:
        """Return the share of the file's bytes that the current pass has read, [0, 1]."""
        if self._raw is None:
            return 0.0
        return 1.0 if self._raw.closed else self._raw.tell() / max(1, self._path.stat().st_size)

    def __iter__(self) -> Iterator[Article]:
        """Yield articles in file order.

        Raises:
            Unreadable: A line is no JSON object with `title` and `text`; the message names the
                line.
        """
        with self._path.open("rb") as self._raw, self._open(self._raw) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield article_of(json.loads(line), default_key=str(number))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
                    raise Unreadable(
                        f"line {number} of {self._path.name!r} is no article: {exc!r}; expected an"
                        " object with title and text"
                    ) from exc

    def _open(self, raw: IO[bytes]) -> IO[bytes]:
        return cast("IO[bytes]", gzip.open(raw, "rb")) if self._path.suffix == ".gz" else raw


class ParquetFiles:
    """One Parquet file or a folder of them, read in batches."""

    def __init__(self, path: Path) -> None:
        """Name the file or folder; nothing is opened yet."""
        self._path = path
        self._read = self._rows = 0

    def position(self) -> float:
        """Return the share of all rows that the current pass has read, [0, 1]."""
        return self._read / max(1, self._rows)

    def __iter__(self) -> Iterator[Article]:
        """Yield articles, files by name, rows in order.

        Raises:
            InvalidInput: pyarrow is not installed.
            Unreadable: A file is damaged or lacks title or text.
        """
        try:
            from pyarrow import ArrowException, parquet  # noqa: PLC0415  # an extra: 40 MB that only this source needs
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
                for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                    for row in batch.to_pylist():
                        self._read += 1
                        yield article_of(row)
            except (ArrowException, OSError, KeyError) as exc:
                raise Unreadable(
                    f"{path.name!r} is no Parquet file of articles: {exc!r}; expected columns id,"
                    " url, title, text"
                ) from exc


class HubDataset:
    """A data set of the hub, streamed by `datasets`.

    `name` may be `owner/data` or `owner/data:configuration`.
    """

    def __init__(self, name: str, split: str = "train") -> None:
        """Name the data set; nothing is fetched yet."""
        self._name, _, self._configuration = name.partition(":")
        self._split = split

    def __iter__(self) -> Iterator[Article]:
        """Yield articles in the data set's order.

        Raises:
            InvalidInput: `datasets` is not installed.
            Unreadable: The hub or the rows cannot be read.
        """
        try:
            import datasets  # noqa: PLC0415  # an extra that brings pandas and pyarrow
        except ImportError as exc:
            raise InvalidInput(
                "reading from the hub needs the extra 'bulk'; run: pip install datasets"
            ) from exc
        try:
            rows = datasets.load_dataset(
                self._name, self._configuration or None, split=self._split, streaming=True
            )
            for row in rows:
                yield article_of(row)
        except (OSError, ValueError, KeyError) as exc:
            raise Unreadable(
                f"data set {self._name!r} cannot be read: {exc}; check its name and the network"
            ) from exc


def article_of(row: Mapping[str, object], default_key: str = "") -> Article:
    """Return a row's article; without a revision, the text's hash is the revision.

    Raises:
        KeyError: `title` or `text` is missing.
    """
    text = str(row["text"])
    revision = (
        row.get("revision")
        or row.get("revision_id")
        or hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    )
    return Article(
        key=str(row.get("id") or default_key or row["title"]),
        revision=str(revision),
        title=str(row["title"]),
        markup="text",
        source=text,
        url=str(row["url"]) if row.get("url") else None,
        licence=str(row.get("licence") or LICENCE),
    )
