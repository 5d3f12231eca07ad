"""Choose the data directory when DATA_DIR is not set."""

from __future__ import annotations

from pathlib import Path

import platformdirs

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
