"""Choose the data directory when DATA_DIR is not set, and look at files that a person names."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from app.core.errors import InvalidInput, TooLarge

CATALOG = "catalog.sqlite3"
DISTRIBUTION = "documind-server"
_HERE = Path("var")


def default_data_dir() -> Path:
    """Return `./var` if it holds our catalog or in a checkout, else the user's folder.

    So a checkout keeps its data inside, an installed program finds the same data from any folder,
    and a `./var` that an older release filled is found again.
    """
    if (_HERE / CATALOG).is_file() or _in_checkout():
        return _HERE
    return platformdirs.user_data_path("documind", appauthor=False)


def _in_checkout() -> bool:
    try:
        return f'name = "{DISTRIBUTION}"' in Path("pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def regular_file(path: Path, most_bytes: int) -> Path:
    """Return `path` if it is a file of at most `most_bytes` bytes.

    A device or a pipe has no end: reading one would fill the memory or hold a thread for ever.

    Raises:
        InvalidInput: There is no such file, or it is no regular one.
        TooLarge: It is larger.
    """
    try:
        if not path.is_file():
            raise InvalidInput(f"{str(path)!r} is not a file; give the path of one")
        size = path.stat().st_size
    except OSError as exc:
        raise InvalidInput(f"{str(path)!r} cannot be read ({exc.strerror})") from exc
    if size > most_bytes:
        raise TooLarge(
            f"{path.name!r} has {size:,} bytes; at most {most_bytes:,} are read, so split it"
        )
    return path
