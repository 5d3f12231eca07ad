"""Search every file of a data directory for a document, like a disk's finder."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tantivy
import zstandard
from scipy.signal import oaconvolve

from app.core.types import FloatArray

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")
ALIKE = 0.999
"""Cosine from which a run of numbers is taken for the vector: float16 keeps three digits,
another chunk's vector is far below."""
LARGEST_FRAME = 1 << 26
MODELS = "models"
"""Folder of the embedded model's weights, made from a package: a hundred megabytes of numbers,
in which no vector is looked for."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Words and vectors that must not be found."""

    words: tuple[str, ...]
    """Words and phrases, in any script; written as in the text."""
    terms: tuple[str, ...]
    """The same as the term dictionary has them."""
    vectors: tuple[FloatArray, ...]
    """float32 `[dim]`, norm 1."""


def look(data: Path, secret: Secret) -> dict[str, set[str]]:
    """Return where the secret is: ways by place (first parts of the path).

    Ways are `text` (the bytes, in three encodings), `json` (escaped as JSON does), `zstd` (inside a
    frame carved from any offset, along SQLite's overflow pages too), `term`, `segment` (a lexical
    segment no index refers to), `float32` and `float16`.
    """
    needles = [word.encode(encoding) for word in secret.words for encoding in ENCODINGS]
    escaped = [
        word.encode("ascii", "backslashreplace") for word in secret.words if not word.isascii()
    ]
    found: dict[str, set[str]] = {}
    for path in sorted(data.rglob("*")):
        if not path.is_file():
            continue
        content = path.read_bytes()
        ways = {"text"} if any(needle in content for needle in needles) else set()
        if any(needle in content for needle in escaped):
            ways.add("json")
        main = path.with_name(path.name.removesuffix("-wal"))
        database = main.read_bytes() if main != path and main.exists() else b""
        if any(needle in frame for frame in frames_in(content, database) for needle in needles):
            ways.add("zstd")
        if MODELS not in path.parts:
            ways |= vectors_in(content, secret.vectors)
        if ways:
            found.setdefault(place_of(data, path), set()).update(ways)
    for index in sorted(data.glob("tantivy/*")):
        if ways := terms_in(index, secret.terms):
            found.setdefault(place_of(data, index), set()).update(ways)
    return found


def place_of(data: Path, path: Path) -> str:
    """Return the part of a path that says which store it is of."""
    parts = tuple(part.removesuffix("-wal") for part in path.relative_to(data).parts)
    return "/".join(parts[:2]) if parts[0] in {"tantivy", "exact"} else parts[0]


def frames_in(content: bytes, database: bytes = b"") -> Iterator[bytes]:
    """Yield the content of every zstd frame at any offset, as far as readable.

    In an SQLite file, along its overflow pages too.

    Args:
        content: The file.
        database: The database a write-ahead log belongs to.
    """
    images = list(pages_of(content))
    pages = dict(enumerate((page for _, page in pages_of(database)), start=1)) | dict(images)
    for piece in [page for _, page in images] or [content]:
        at = piece.find(ZSTD_MAGIC)
        while at >= 0:
            yield _decompressed(piece[at:])
            if images:
                yield from _along_pages(pages, piece, at)
            at = piece.find(ZSTD_MAGIC, at + 1)


def _along_pages(pages: Mapping[int, bytes], piece: bytes, at: int) -> Iterator[bytes]:
    """Yield frames continued in overflow pages, for every place of the pointer.

    The pointer's place in the page is not known.
    """
    for end in range(at + len(ZSTD_MAGIC), len(piece) - 3):
        follow = struct.unpack_from(">I", piece, end)[0]
        if follow < 2 or follow not in pages:
            continue
        chain = [piece[at:end]]
        seen: set[int] = set()
        while follow in pages and follow not in seen:
            seen.add(follow)
            chain.append(pages[follow][4:])
            follow = struct.unpack_from(">I", pages[follow])[0]
        yield _decompressed(b"".join(chain))


def _decompressed(data: bytes) -> bytes:
    out = b""
    with suppress(zstandard.ZstdError):
        reader = zstandard.ZstdDecompressor(max_window_size=LARGEST_FRAME).stream_reader(data)
        while piece := reader.read(1 << 16):
            out += piece
    return out


def pages_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each page of an SQLite file or log; else nothing.

    References:
        https://sqlite.org/fileformat.html, sections 1.3 and 4.1.
    """
    if content[:16] == b"SQLite format 3\0":
        size = struct.unpack_from(">H", content, 16)[0]
        size = 65536 if size == 1 else size
        yield from (
            (at // size + 1, content[at : at + size]) for at in range(0, len(content), size)
        )
    elif len(content) > 32 and struct.unpack_from(">I", content)[0] & ~1 == 0x377F0682:
        size = struct.unpack_from(">I", content, 8)[0]
        for at in range(32, len(content) - size - 23, size + 24):
            yield struct.unpack_from(">I", content, at)[0], content[at + 24 : at + 24 + size]


def vectors_in(content: bytes, vectors: Sequence[FloatArray]) -> set[str]:
    """Return the precisions in which a vector occurs at any offset.

    Exactly, rounded, or scaled to norm 1 again.
    """
    found: set[str] = set()
    for name, dtype, width in (("float32", "<f4", 4), ("float16", "<f2", 2)):
        for offset in range(width):
            n = (len(content) - offset) // width
            if any(n >= len(vector) for vector in vectors):
                with np.errstate(all="ignore"):  # most bytes are no numbers
                    numbers = np.frombuffer(content, dtype=dtype, offset=offset, count=n).astype(
                        np.float64
                    )
                if any(_holds(numbers, vector) for vector in vectors if n >= len(vector)):
                    found.add(name)
    return found


def _holds(numbers: np.ndarray[tuple[int], np.dtype[np.float64]], vector: FloatArray) -> bool:
    with np.errstate(all="ignore"):
        clean = np.where(
            np.abs(numbers) <= 1.5, numbers, 0.0
        )  # NaN fails too: a value outside a unit vector counts as 0
    dots = oaconvolve(clean, vector[::-1].astype(np.float64), mode="valid")
    squares = np.concatenate([[0.0], np.cumsum(clean * clean)])
    norms = np.sqrt(np.maximum(squares[len(vector) :] - squares[: -len(vector)], 1e-12))
    return bool(np.any((dots / norms > ALIKE) & (norms > 0.5)))


def terms_in(index: Path, terms: Sequence[str]) -> set[str]:
    """Return `term` if the dictionary lists one, `segment` for files of no segment.

    Terms of deleted documents count.
    """
    if not (index / "meta.json").exists():
        return set()
    meta = (index / "meta.json").read_text("utf-8")
    known = {name.replace("-", "") for name in re.findall(r'"segment_id":\s*"([0-9a-f-]+)"', meta)}
    held = {
        path.name.split(".")[0]
        for path in index.iterdir()
        if re.fullmatch(r"[0-9a-f]{32}\..*", path.name)
    }
    ways = {"segment"} if held - known else set()
    searcher = tantivy.Index.open(str(index)).searcher()
    for field in ("body", "title", "section"):
        with suppress(ValueError):  # not a field of this index
            if any(searcher.terms_with_prefix(field, term) for term in terms):
                ways.add("term")
    return ways
