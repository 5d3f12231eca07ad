"""File names from outside: data for display, never a path (facts/hostile-input.md, path traversal in filename)."""

from __future__ import annotations

import re
import unicodedata

from app.core.errors import InvalidInput
from app.core.text import normalise

MAX_NAME_BYTES = 255
MAX_KEY_BYTES = 1024
_SEPARATORS = re.compile(r"[/\\]")
_BLANKS = re.compile(r"\s+")
_DRIVE = re.compile(r"[A-Za-z]:")


def display_name(raw: str) -> str:
    """Return the last part of a name as it may be shown: no separators, controls or direction marks, at most 255 bytes.

    Raises:
        InvalidInput: Nothing is left of it.
    """
    name = _clean(_SEPARATORS.split(raw)[-1])
    if name in {"", ".", ".."}:
        raise InvalidInput(f"a file has no usable name ({raw!r:.80}); give it one like 'paper.pdf'")
    return _cut(name, MAX_NAME_BYTES)


def source_key(raw: str) -> str:
    """Return a relative path in normal form: `/` between parts, none of them empty, `.` or `..`.

    Raises:
        InvalidInput: It is absolute, leaves its root, or is too long.
    """
    cleaned = _clean(raw)
    parts = [part.strip() for part in _SEPARATORS.split(cleaned)]
    kept = [part for part in parts if part not in {"", "."}]
    absolute = cleaned.startswith(("/", "\\")) or _DRIVE.match(cleaned) is not None
    if absolute or ".." in kept or not kept:
        raise InvalidInput(f"source_key {raw!r:.80} must be a relative path inside the folder, like 'notes/a.md'")
    key = "/".join(kept)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise InvalidInput(f"source_key {raw!r:.80} has {len(key.encode())} bytes; at most {MAX_KEY_BYTES} are kept")
    return key


def _clean(raw: str) -> str:
    """Return text without controls, invisible and direction characters, blanks collapsed, NFC."""
    text = normalise(raw)[0]
    return unicodedata.normalize("NFC", _BLANKS.sub(" ", text)).strip()


def _cut(name: str, limit_bytes: int) -> str:
    """Return a name cut to a number of UTF-8 bytes, its short extension kept."""
    if len(name.encode()) <= limit_bytes:
        return name
    stem, dot, extension = name.rpartition(".")
    tail = f"{dot}{extension}" if stem and len(extension.encode()) <= 16 else ""
    head = (stem if tail else name).encode()[: limit_bytes - len(tail.encode())].decode("utf-8", "ignore")
    return f"{head}{tail}"
