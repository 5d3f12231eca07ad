"""Choose the folder of reports: evaluation/reports, or DATA_DIR/reports.

The latter without a checkout, as in the image.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from app.core.errors import InvalidInput
from app.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
PROBES = ROOT / "evaluation"
"""Where the bundled files of questions are."""


def reports_folder() -> Path:
    """Return the folder of reports; it need not exist yet."""
    kept = ROOT / "evaluation" / "reports"
    return kept if kept.is_dir() else Settings().data_dir / "reports"


def require_writable(paths: Iterable[Path]) -> None:
    """Make the folders of files to be written, and check now that it is possible.

    Raises:
        InvalidInput: A file cannot be written; the message says which and why.
    """
    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(f"it is a folder: {path}")
            with tempfile.TemporaryFile(dir=path.parent):
                pass
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError(f"it is write-protected: {path}")
        except OSError as exc:
            raise InvalidInput(
                f"{str(path)!r} cannot be written ({exc}); name another file"
            ) from exc
