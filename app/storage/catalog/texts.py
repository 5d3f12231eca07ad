"""Compress document texts in the catalog; cache decompressed ones by bytes."""

from __future__ import annotations

import json
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict

import zstandard

from app.core.errors import IndexDamaged
from app.core.types import Correction, Heading, PageSpan

ZSTD_LEVEL = 3
"""Text to about a third at 200 MB/s and more (docs/facts/libraries.md)."""


def pack_texts(texts: Sequence[str]) -> list[bytes]:
    """Return a zstd frame with checksum per text, in one call without the GIL."""
    zstd = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True, write_content_size=True)
    if not any(texts):  # which the call refuses
        return [zstd.compress(text.encode()) for text in texts]
    frames = zstd.multi_compress_to_buffer([text.encode() for text in texts])
    return [frames[i].tobytes() for i in range(len(frames))]


def unpack_text(frame: bytes) -> str:
    """Return the text of a frame.

    Raises:
        IndexDamaged: The frame or its checksum is wrong.
    """
    try:
        return zstandard.ZstdDecompressor().decompress(frame).decode()
    except (zstandard.ZstdError, UnicodeDecodeError) as exc:
        raise IndexDamaged(
            f"a stored text does not match its checksum ({exc}): run `documind fsck`, then"
            " restore a backup or ingest the document again"
        ) from exc


class TextCache:
    """Texts by (doc, revision), least recently used first out; thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        """Hold up to `max_bytes` of Python strings."""
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._texts: OrderedDict[tuple[int, int], str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
        found: dict[tuple[int, int], str] = {}
        with self._lock:
            for key in keys:
                text = self._texts.get(key)
                if text is not None:
                    self._texts.move_to_end(key)
                    found[key] = text
        return found

    def unpack(self, key: tuple[int, int], frame: bytes) -> str:
        text = unpack_text(frame)
        size = sys.getsizeof(text)
        if size > self._max_bytes // 2:
            return text
        with self._lock:
            if key not in self._texts:
                self._size_bytes += size
            self._texts[key] = text
            while self._size_bytes > self._max_bytes:
                self._size_bytes -= sys.getsizeof(self._texts.popitem(last=False)[1])
        return text

    def delete(self, doc: int) -> None:
        with self._lock:
            for key in [key for key in self._texts if key[0] == doc]:
                self._size_bytes -= sys.getsizeof(self._texts.pop(key))


def pack_pages(pages: Sequence[PageSpan]) -> str:
    """Return a page map as JSON rows `[number, start, end]`."""
    rows = [(page.number, page.start, page.end) for page in pages]
    return json.dumps(rows, separators=(",", ":"))


def unpack_pages(packed: str) -> tuple[PageSpan, ...]:
    """Return the page map that `pack_pages` wrote."""
    return tuple(PageSpan(*row) for row in json.loads(packed))


def pack_outline(headings: Sequence[Heading]) -> str | None:
    """Return headings as JSON: from the end before to the start, length, level; None for none."""
    if not headings:
        return None
    numbers: list[int] = []
    end = 0
    for heading in headings:
        numbers += (heading.start - end, heading.end - heading.start, heading.level)
        end = heading.end
    return json.dumps(numbers, separators=(",", ":"))


def unpack_outline(packed: str | None, text: str) -> tuple[Heading, ...]:
    """Return the headings that `pack_outline` wrote, with their titles from the text."""
    numbers: list[int] = json.loads(packed or "[]")
    found: list[Heading] = []
    end = 0
    for gap, length, level in zip(*(numbers[i::3] for i in range(3)), strict=True):
        start, end = end + gap, end + gap + length
        found.append(Heading(start, end, level, " ".join(text[start:end].split())))
    return tuple(found)


def pack_corrections(corrections: Sequence[Correction]) -> str | None:
    """Return corrections as JSON; None for none."""
    packed = [asdict(one) for one in corrections]
    return json.dumps(packed, ensure_ascii=False, separators=(",", ":")) if packed else None


def unpack_corrections(packed: str | None) -> tuple[Correction, ...]:
    """Return the corrections that `pack_corrections` wrote."""
    return tuple(Correction(**one) for one in json.loads(packed or "[]"))
