"""Define the error tree: stable codes, and whether a retry can help.

    DocuMindError
    ├── InputError
    │   ├── InvalidInput            invalid_input
    │   │   ├── PassageTooLong      invalid_input          (split it; never cut)
    │   │   └── ExtraMissing        invalid_input          (a setting needs an extra)
    │   ├── UnsupportedType         unsupported_type
    │   ├── TooLarge                too_large
    │   ├── Encrypted               encrypted
    │   ├── NoTextLayer             no_text_layer
    │   └── Unreadable              unreadable
    ├── NotFound                    not_found
    │   └── NoOriginal              no_original
    ├── Conflict                    conflict
    │   └── FingerprintMismatch     fingerprint_mismatch
    ├── AccessError
    │   ├── Unauthorized            unauthorized
    │   ├── Forbidden               forbidden
    │   ├── HostRefused             host_refused
    │   └── OriginRefused           origin_refused
    ├── ProviderError
    │   ├── ModelNotInstalled       model_not_installed
    │   ├── ProviderUnreachable     provider_unreachable   (retryable)
    │   ├── ProviderTimeout         provider_timeout       (retryable)
    │   └── ProviderBadResponse     provider_bad_response
    ├── Overload
    │   ├── Busy                    busy                   (retryable)
    │   └── RateLimited             rate_limited           (retryable)
    ├── StorageError
    │   ├── DiskFull                disk_full              (retryable)
    │   ├── OriginalsAway           originals_away         (retryable)
    │   ├── DatabaseAway            database_away          (retryable)
    │   ├── SearchAway              search_away            (retryable)
    │   ├── IndexDamaged            index_damaged
    │   └── Locked                  locked
    └── Cancelled                   cancelled              never reaches a client as an error
        └── Superseded              superseded             deleted or replaced since the upload

Messages name the value with `!r`, say what was expected and what to do.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import ClassVar


class DocuMindError(Exception):
    """Root of everything this project raises on purpose."""

    code: ClassVar[str] = "internal"
    retryable: ClassVar[bool] = False
    retry_after_s: float | None = None
    """When to come back, in seconds, unless an error says otherwise."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        """Keep the message for people and when to come back (seconds)."""
        super().__init__(message)
        self.message = message
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s


class InputError(DocuMindError):
    """The input cannot be used."""

    code = "invalid_input"


class InvalidInput(InputError):
    """A value is out of its range or shape."""


class ExtraMissing(InvalidInput):
    """A setting asks for a package that is not installed; the message has the command."""


class PassageTooLong(InvalidInput):
    """A passage has more tokens than the embedding model reads.

    The caller splits it; no layer cuts it.
    """


class UnsupportedType(InputError):
    """The content is of no type we parse; its name does not matter."""

    code = "unsupported_type"


class TooLarge(InputError):
    """A body, file or unpacked content passes its cap."""

    code = "too_large"


class Encrypted(InputError):
    """A document wants a password."""

    code = "encrypted"


class NoTextLayer(InputError):
    """A document has pages but no text; OCR it first."""

    code = "no_text_layer"


class Unreadable(InputError):
    """A document is empty, damaged, or its parse broke a limit."""

    code = "unreadable"


class NotFound(DocuMindError):
    """No such document, job, answer or conversation."""

    code = "not_found"


class InOtherLibrary(NotFound):
    """The other library has the document; the message hides it, as not every key may know."""

    def __init__(
        self, message: str, elsewhere: str = "", *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.elsewhere = elsewhere or message
        """For those who see every library."""


class NoOriginal(NotFound):
    """The document has no original bytes (bulk text)."""

    code = "no_original"


class Conflict(DocuMindError):
    """The request contradicts the present state."""

    code = "conflict"


class FingerprintMismatch(Conflict):
    """Vectors or a bundle were made with another model or chunker."""

    code = "fingerprint_mismatch"


class AccessError(DocuMindError):
    """The caller may not do this."""

    code = "unauthorized"


class Unauthorized(AccessError):
    """The API key is missing or wrong."""


class Forbidden(AccessError):
    """The key may not do this; the message says what it lacks."""

    code = "forbidden"


class HostRefused(AccessError):
    """The Host header is not on the allow-list."""

    code = "host_refused"


class OriginRefused(AccessError):
    """A web page of another origin tried to change state."""

    code = "origin_refused"


class ProviderError(DocuMindError):
    """A model host failed us."""

    code = "provider_bad_response"


class ModelNotInstalled(ProviderError):
    """The host answers but lacks the model."""

    code = "model_not_installed"


class ProviderUnreachable(ProviderError):
    """No connection to the host."""

    code = "provider_unreachable"
    retryable = True


class ProviderTimeout(ProviderError):
    """The host did not answer in time."""

    code = "provider_timeout"
    retryable = True


class ProviderBadResponse(ProviderError):
    """The host answered with an error or something we cannot read."""


class Overload(DocuMindError):
    """Too much at once."""

    code = "busy"
    retryable = True
    retry_after_s = 1.0


class Busy(Overload):
    """All slots are taken; `retry_after_s` says when to come back."""


class RateLimited(Overload):
    """This caller asks too often."""

    code = "rate_limited"


class StorageError(DocuMindError):
    """The data directory failed us."""

    code = "index_damaged"


class DiskFull(StorageError):
    """No space (or over a size limit); nothing acknowledged is lost."""

    code = "disk_full"
    retryable = True


class OriginalsAway(StorageError):
    """The object store that keeps originals does not answer."""

    code = "originals_away"
    retryable = True
    retry_after_s = 5.0


class DatabaseAway(StorageError):
    """The database that holds the catalog does not answer."""

    code = "database_away"
    retryable = True
    retry_after_s = 5.0


class SearchAway(StorageError):
    """The search engine does not answer."""

    code = "search_away"
    retryable = True
    retry_after_s = 5.0


class IndexDamaged(StorageError):
    """A store cannot be trusted; the message names the cure."""


class Locked(StorageError):
    """Another process owns the data directory."""

    code = "locked"


class Cancelled(DocuMindError):
    """Work was stopped because someone asked for it."""

    code = "cancelled"


class Superseded(Cancelled):
    """A document was deleted or replaced after it was accepted and before it was written."""

    code = "superseded"


def error_classes() -> dict[str, type[DocuMindError]]:
    """Every concrete class by name, for tables and tests."""
    found: dict[str, type[DocuMindError]] = {}
    todo: list[type[DocuMindError]] = [DocuMindError]
    while todo:
        cls = todo.pop()
        found[cls.__name__] = cls
        todo.extend(cls.__subclasses__())
    return found


def class_of(code: str) -> type[DocuMindError]:
    """Return the most specific class of a stable code: `index_damaged` is IndexDamaged.

    The root for an unknown code.
    """
    classes = [cls for cls in error_classes().values() if cls.code == code]
    return max(classes, key=lambda cls: len(cls.__mro__), default=DocuMindError)


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


def passes_by_itself(error: BaseException) -> bool:
    """Return whether a start may succeed in a moment: what a setting names does not answer yet."""
    away = (DatabaseAway, SearchAway, OriginalsAway)
    return isinstance(error, away) or isinstance(error.__cause__, away)


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
    where = f"{error.filename!r} cannot be used" if error.filename else "a file cannot be used"
    return StorageError(
        f"{where} ({error.strerror}): make the data directory writable for the user that runs"
        " DocuMind, or choose another DATA_DIR"
    )
