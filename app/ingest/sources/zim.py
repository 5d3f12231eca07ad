"""Kiwix ZIM archives as a stream of articles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from app.core.errors import InvalidInput, Unreadable
from app.core.types import Article

LICENCE = "CC BY-SA 4.0"


class ZimArchive:
    """A `.zim` file; HTML entries are articles, redirect entries are redirects.

    Every other entry is skipped.
    """

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is opened yet."""
        self._path = path
        self._position = 0.0

    def position(self) -> float:
        """Return the share of entries that the current pass has read, [0, 1]."""
        return self._position

    def __iter__(self) -> Iterator[Article]:
        """Yield entries in the archive's order.

        Raises:
            InvalidInput: libzim is not installed.
            Unreadable: The archive is damaged.
        """
        try:
            from libzim.reader import Archive  # noqa: PLC0415  # an extra (GPL), never needed by the server itself
        except ImportError as exc:
            raise InvalidInput(
                "reading ZIM archives needs libzim; run: pip install libzim"
            ) from exc
        try:
            archive = Archive(self._path)
            for number in range(archive.all_entry_count):
                self._position = number / archive.all_entry_count
                entry = archive._get_entry_by_id(
                    number
                )  # libzim documents no other way to list entries
                if entry.is_redirect:
                    target = entry.get_redirect_entry()
                    yield Article(
                        entry.path,
                        "redirect:" + target.path,
                        entry.title,
                        "html",
                        "",
                        redirect_to=target.title,
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
