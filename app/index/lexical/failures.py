"""Turn what tantivy says into our errors."""

from __future__ import annotations

from pathlib import Path

from app.core.errors import DocuMindError, IndexDamaged
from app.core.system_errors import no_files, says_no_files
from app.index.files.durable import disk_full

_FULL = ("no space left", "file too large", "quota exceeded")


def lexical_error(path: Path, message: str) -> DocuMindError:
    """Return the error for a message of tantivy about the index at `path`."""
    if any(said in message.lower() for said in _FULL):
        return disk_full(path)
    if says_no_files(message):
        return no_files()
    return IndexDamaged(
        f"the lexical index {path.name!r} failed ({message}): it is rebuilt from the catalog at the"
        " next start; or stop the server and run `documind rebuild`"
    )
