"""File names and source keys from outside: data, never paths."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.util import find_spec
from typing import Literal

from app.core.errors import InvalidInput
from app.core.normalisation import clean_name
from app.core.types import Ocr, OcrEngine, PageSpan, PageText

MAX_NAME_BYTES = 255
"""What common file systems allow for one name."""
MAX_KEY_BYTES = 1024


def display_name(raw: str) -> str:
    """Return a file name that is safe to show, at most 255 bytes.

    The last path part, NFC, without control and direction marks. A name of which nothing is left
    becomes `unnamed`; one that is cut ends with a number of its own, so that two stay two.
    """
    last = re.split(r"[/\\]", raw.rstrip("/\\"))[-1]
    name = clean_name(last)
    return "unnamed" if name in ("", ".", "..") else _fit(name, MAX_NAME_BYTES)


def source_key(raw: str) -> str:
    """Return a relative path in normal form: `/` separators, NFC, no `.` or `..`.

    Raises:
        InvalidInput: It is empty, absolute, climbs out of its root, or is longer than 1,024 bytes.
    """
    path = raw.replace("\\", "/")
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        raise InvalidInput(
            f"source_key {raw!r} is an absolute path; give it relative to the folder"
        )
    parts = [clean_name(part) for part in path.split("/")]
    parts = [part for part in parts if part not in ("", ".")]
    if ".." in parts:
        raise InvalidInput(f"source_key {raw!r} climbs out of its folder; give a path without '..'")
    key = "/".join(parts)
    if not key:
        raise InvalidInput(
            f"source_key {raw!r} names nothing; give a relative path such as 'notes/a.md'"
        )
    if len(key.encode()) > MAX_KEY_BYTES:
        raise InvalidInput(
            f"source_key {raw[:60]!r}... is longer than {MAX_KEY_BYTES} bytes; shorten it"
        )
    return key


def _fit(name: str, limit: int) -> str:
    """Shorten the stem, not the extension, to `limit` bytes at a character."""
    if len(name.encode()) <= limit:
        return name
    stem, dot, suffix = name.rpartition(".")
    tail = dot + suffix if stem and len(suffix.encode()) <= 16 else ""
    head = name[: len(name) - len(tail)]
    tail = f"~{sha256(name.encode()).hexdigest()[:12]}{tail}"
    return head.encode()[: limit - len(tail.encode())].decode("utf-8", "ignore").rstrip() + tail


# Options of ingest.

Chunker = Literal["headings", "recursive"]
"""`headings`: a chunk never crosses a heading; `recursive`: headings are text like any other,
for comparison."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    chunk_size: int = 1000
    """Ceiling of a chunk, in characters."""
    chunk_overlap: int = 150
    """Characters shared by neighbours; less than chunk_size."""
    chunker: Chunker = "headings"  # docs/decisions/0010-chunks-stay-within-page-and-section.md
    """Where a chunk may not go on; either way it is cut recursively and stays on its page."""
    max_file_bytes: int = 50 * 1024 * 1024
    max_pages: int = 5_000
    max_characters: int = 20_000_000
    """Of one document's text."""
    parse_processes: int = 2
    parse_wall_s: float = 120.0
    parse_cpu_s: int = 60
    parse_memory_bytes: int = 1024**3
    parse_output_bytes: int = 256 * 1024 * 1024
    ocr: Ocr = "auto"
    ocr_engine: str = ""
    """`rapidocr`, or the path of the program tesseract; empty: pictures are not read."""
    ocr_languages: str = ""
    """Of tesseract, as `deu+eng`; empty: all that are installed."""
    late_interaction_max_chunks: int = 100_000
    """Libraries of more chunks keep no codes for late interaction, about 5 KB a chunk; 0: none
    does."""
    embed_batch: int = 128
    """Chunks per vector transaction."""

    @property
    def reads_pictures(self) -> bool:
        return bool(self.ocr_engine) and self.ocr != "off"

    def of_recogniser(self) -> IngestOptions:
        """Return the limits of a process that recognises a page: models need more than parsers."""
        return replace(
            self,
            parse_processes=1,
            parse_memory_bytes=4 * 1024**3,
            parse_cpu_s=600,
            parse_wall_s=600.0,
        )


def find_engine(wanted: OcrEngine) -> str:
    """Return `rapidocr`, the path of the program tesseract, or nothing: what is installed."""
    if wanted != "tesseract" and find_spec("rapidocr") is not None:
        return "rapidocr"
    return "" if wanted == "rapidocr" else shutil.which("tesseract") or ""


# From a span of a document to the pages it stands on.


def page_texts(
    pages: Sequence[PageSpan], start: int, end: int, read: Callable[[int, int], str]
) -> tuple[PageText, ...]:
    """Return each page of a span, its text, and the part of the span on it, for `page_boxes`.

    `pages` is the page map of a revision, `start` and `end` are a span of its text, of which `read`
    returns the characters `[start, end)`.
    """
    return tuple(
        PageText(
            page.number,
            read(page.start, page.end),
            max(start, page.start) - page.start,
            min(end, page.end) - page.start,
        )
        for page in pages
        if page.start < end and start < page.end
    )
