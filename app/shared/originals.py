"""Keep originals in an object store, with the files used last on this machine."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from app.core.errors import InvalidInput, OriginalsAway, StorageError
from app.core.ids import without_credentials
from app.core.trace import Calls
from app.storage.files.durable import Steps, delete_file
from app.storage.files.originals import SHA256, SUFFIX, Originals

IN_USE_S = 600
"""A cached file used within this time stays: a job may be about to open it."""
PROBE_S = 2
"""How long a look at the store's health waits, in seconds."""


class ObjectOriginals(Originals):
    """Originals in a bucket; the directory is a cache with a bound; thread-safe.

    An original is one object `<sha256>.bin`, put only if it is absent.
    """

    def __init__(self, path: Path, steps: Steps, url: str, cache_bytes: int) -> None:
        """Open the store at `url`; cache up to `cache_bytes` in directory `path`.

        `url` is `s3://BUCKET/PREFIX`, with `?endpoint=http://HOST:PORT` for a server other than
        Amazon's. Keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

        Raises:
            InvalidInput: The address is wrong, does not answer, or refuses the keys.
        """
        super().__init__(path, steps)
        self._cache_bytes = cache_bytes
        self.calls = Calls("originals")
        self._url = url
        self._store, self._address = _open(url)
        try:
            self.names(limit=1)
        except StorageError as exc:
            raise InvalidInput(f"ORIGINALS_URL: {exc.message}") from exc

    def away(self) -> tuple[str, ...]:
        """Return what is missing: nothing, or the store with its address."""
        try:
            ask(self._url)
        except InvalidInput:
            return (f"object store {self._address}",)
        return ()

    def path(self, sha256: str) -> Path:
        """Return a file with the bytes, fetched if it is not cached; see `Originals.path`.

        Raises:
            OriginalsAway: It is not cached, and the store does not answer.
            DiskFull: No space for the cached copy.
        """
        cached = super().path(sha256)
        if cached.exists():
            os.utime(cached)
        else:
            self._fetch(sha256, cached)
        return cached

    def _fetch(self, sha256: str, cached: Path) -> None:
        with self._translated():
            try:
                found = obstore.get(self._store, _key(sha256))
            except FileNotFoundError:
                return
            with tempfile.NamedTemporaryFile(
                dir=self._path, prefix=".", suffix=".part", delete=False
            ) as file:
                try:
                    for block in found.stream():
                        file.write(block)
                    with self._steps.at("originals.cache"):
                        Path(file.name).replace(cached)
                except BaseException:
                    delete_file(Path(file.name), self._steps, "originals.discard")
                    raise
        self._trim()

    def _trim(self) -> None:
        """Delete the files that were used longest ago, down to the bound."""
        files = []
        for file in self._path.glob(f"*{SUFFIX}"):
            with suppress(FileNotFoundError):  # another thread was first
                files.append((file.stat(), file))
        files.sort(key=lambda found: found[0].st_mtime)
        over = sum(stat.st_size for stat, _ in files) - self._cache_bytes
        for stat, file in files:
            if over <= 0 or time.time() - stat.st_mtime < IN_USE_S:
                return
            delete_file(file, self._steps, "originals.discard")
            over -= stat.st_size

    def _size(self, sha256: str) -> int | None:
        with self._translated():
            try:
                return int(obstore.head(self._store, _key(sha256))["size"])
            except FileNotFoundError:
                return None

    def _keep(self, new: Mapping[str, bytes | Path]) -> None:
        if self.before_keeping is not None:
            self.before_keeping(list(new))
        for sha256, content in new.items():
            # another server may be first, with the same bytes
            with self._translated(), self._steps.at("originals.put"), suppress(AlreadyExistsError):
                obstore.put(self._store, _key(sha256), content, mode="create", use_multipart=False)

    def delete_stale_copies(self) -> int:
        """Remove cached files that the store no longer has; return how many.

        The cache is listed first: what is fetched in the meantime stays.
        """
        cached = list(self._path.glob(f"*{SUFFIX}"))
        kept = self.names()
        gone = [file for file in cached if file.stem not in kept]
        return sum(delete_file(file, self._steps, "originals.discard") for file in gone)

    def exists(self, sha256: str) -> bool:
        """Return whether the bytes are in the store."""
        return bool(SHA256.fullmatch(sha256)) and self._size(sha256) is not None

    def names(self, limit: int | None = None) -> set[str]:
        """Return the SHA-256 of every original in the store, or of some."""
        found: set[str] = set()
        with self._translated():
            for page in obstore.list(self._store, chunk_size=limit or 1000):
                keys = (Path(entry["path"]) for entry in page)
                found |= {key.stem for key in keys if SHA256.fullmatch(key.stem)}
                if limit is not None and len(found) >= limit:
                    break
        return found

    def delete(self, sha256: str) -> bool:
        """Remove bytes from store and cache; return whether they were there."""
        if not self.exists(sha256):
            return False
        with self._translated(), self._steps.at("originals.unlink"):
            obstore.delete(self._store, _key(sha256))
        delete_file(super().path(sha256), self._steps, "originals.discard")
        return True

    def damaged(self, sha256: str) -> bool:
        """Return whether the bytes in the store are missing or differ from their name."""
        digest = hashlib.sha256()
        with self._translated():
            try:
                for block in obstore.get(self._store, _key(sha256)).stream():
                    digest.update(block)
            except FileNotFoundError:
                return True
        return digest.hexdigest() != sha256

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of the store into ours, and count them."""
        with self.calls.timed():
            try:
                yield
            except BaseError as exc:
                raise self.calls.failed(_error(self._address, exc)) from exc


def _key(sha256: str) -> str:
    return f"{sha256}{SUFFIX}"


def ask(url: str) -> str:
    """Return a store's address; nothing is created, and S3 names no version.

    Raises:
        InvalidInput: The address is wrong, does not answer, or refuses the keys.
    """
    store, address = _open(url, timeout_s=PROBE_S, retries=0)
    try:
        next(iter(obstore.list(store, chunk_size=1)), None)
    except BaseError as exc:
        raise InvalidInput(f"ORIGINALS_URL: {_error(address, exc).message}") from exc
    return f"{address} (S3 names no version)"


def _error(address: str, cause: BaseError) -> StorageError:
    if isinstance(cause, (PermissionDeniedError, UnauthenticatedError)):
        return StorageError(
            f"the object store {address} refuses: check AWS_ACCESS_KEY_ID,"
            " AWS_SECRET_ACCESS_KEY and what they may do in the bucket"
        )
    return OriginalsAway(
        f"the object store {address} does not answer as it should; originals cannot"
        f" be read or kept until it does ({cause!s:.200})"
    )


def _open(url: str, timeout_s: int = 60, retries: int = 3) -> tuple[S3Store, str]:
    """Return the store of an address, and the address without its question."""
    parts = urlsplit(url)
    endpoint = parse_qs(parts.query).get("endpoint", [""])[0]
    address = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
    if parts.scheme != "s3" or not parts.hostname:
        raise InvalidInput("ORIGINALS_URL must be s3://BUCKET/PREFIX?endpoint=http://HOST:PORT")
    store = S3Store.from_url(
        address,
        config={"endpoint": endpoint} if endpoint else {},
        client_options={
            "timeout": f"{timeout_s}s", "connect_timeout": f"{min(timeout_s, 5)}s",
            "allow_http": endpoint.startswith("http://"),
        },
        retry_config={"max_retries": retries},
    )  # fmt: skip
    return store, f"{address} at {without_credentials(endpoint)}" if endpoint else address
