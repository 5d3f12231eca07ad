"""Translate errors of the operating system: too many files, files not writable."""

from __future__ import annotations

import errno
from pathlib import Path

from app.core.errors import Busy, DocuMindError, StorageError

_NO_FILES = frozenset({errno.EMFILE, errno.ENFILE})
_NOT_PERMITTED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR})


def refusal(error: BaseException) -> DocuMindError | None:
    """Return our error for an operating system's error, or one caused by it.

    None for any other error.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _NO_FILES:
            return no_files()
        if isinstance(cause, OSError) and cause.errno in _NOT_PERMITTED:
            return not_permitted(cause)
        cause = cause.__cause__
    return None


def made_in_data(directory: Path) -> Path:
    """Return a folder of the data directory, made if it is not there yet.

    Raises:
        StorageError: The data directory was moved away; nothing is made at its old place.
    """
    try:
        directory.mkdir(exist_ok=True)
    except FileNotFoundError as exc:
        raise StorageError(
            f"the data directory {str(directory.parent)!r} is gone under the server: put it back,"
            " or stop the server and set DATA_DIR to where it is"
        ) from exc
    return directory


def no_files() -> Busy:
    """Return the error for a process that has reached its limit of open files."""
    return Busy(
        "too many open files and connections; try again in a moment, or start with a higher"
        " `ulimit -n`",
        retry_after_s=2,
    )


def says_no_files(message: str) -> bool:
    """Return whether a message of tantivy or the system says: too many open files."""
    return "Too many open files" in message or "os error 24" in message


def not_permitted(error: OSError) -> StorageError:
    """Return the error of a file or directory that this process may not use."""
    where = f"{error.filename!r} cannot be used" if error.filename else "a file cannot be used"
    return StorageError(
        f"{where} ({error.strerror}): make the data directory writable for the user that runs"
        " DocuMind, or choose another DATA_DIR"
    )
