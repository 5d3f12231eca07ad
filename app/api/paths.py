"""Paths on the server's own machine, as a request names them."""

from __future__ import annotations

from pathlib import Path

from app.core.errors import InvalidInput


def server_path(value: str) -> Path:
    """Return a path the system can look up; the caller checks that it exists.

    Raises:
        InvalidInput: The system does not take it for a path (a name too long, links in a circle),
            or does not let us look.
    """
    path = Path(value)
    try:
        path.exists()
    except OSError as exc:
        raise InvalidInput(
            f"path {value[:80]!r} cannot be used ({exc.strerror}); give another one"
        ) from exc
    return path
