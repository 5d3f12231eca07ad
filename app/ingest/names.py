"""File names and source keys from outside: data, never paths."""

from __future__ import annotations

import re
from hashlib import sha256

from app.core.errors import InvalidInput
from app.core.normalisation import clean_name

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
