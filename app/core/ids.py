"""Identities, the release, the data directory, and addresses that may be shown."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
import shutil
import subprocess
import uuid
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import platformdirs

from app.core.errors import InvalidInput, TooLarge
from app.core.types import Fingerprint, Library


def document_id(library: Library, source_key: str) -> str:
    """Return the 16 hex digits that name a source in a library, in all revisions."""
    return hashlib.sha256(
        f"{library.value}\0{source_key}".encode("utf-8", "surrogatepass")
    ).hexdigest()[:16]


def content_sha256(content: bytes | Path) -> str:
    """Return the SHA-256 of bytes or a file as 64 hex digits. Files are read in blocks of 1 MiB."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint8(fingerprint: Fingerprint) -> str:
    """Return 8 hex digits that differ when any part of the fingerprint does."""
    canonical = json.dumps(asdict(fingerprint), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:8]


def new_id() -> str:
    """Return a random id of 32 hex digits (jobs, answers, conversations, requests)."""
    return uuid.uuid4().hex


def embedder_key(fingerprint: Fingerprint) -> str:
    """Return 16 hex digits that name an embedder.

    Libraries with equal keys have comparable similarities.
    """
    made = (fingerprint.embedding_model, fingerprint.model_digest, str(fingerprint.dimension))
    prefixes = (fingerprint.query_prefix, fingerprint.passage_prefix)
    return hashlib.sha256("\0".join((*made, *prefixes)).encode()).hexdigest()[:16]


CHECKOUT = "0.2.0"
"""The version in pyproject.toml, for a checkout that was not installed; a test compares the two."""


def package_version() -> str:
    """Return the version of the installed distribution, or that of the checkout."""
    try:
        return version("documind-server")
    except PackageNotFoundError:
        return CHECKOUT


def bundle(name: str) -> Path:
    """Return a folder of the wheel (`minilm`, `samples`).

    In a checkout it exists only after `make wheel`.
    """
    return Path(__file__).resolve().parents[1] / "bundle" / name


@cache
def checkout_sha() -> str:
    """Return the commit of this checkout; empty outside of one or without git."""
    root = Path(__file__).resolve().parents[2]
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return ""
    found = subprocess.run(  # noqa: S603
        [git, "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    )
    return found.stdout.strip()


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

    A device or a pipe has no end: reading one would fill the memory or hold a thread forever.

    Raises:
        InvalidInput: There is no such file, or it is no regular one.
        TooLarge: It is larger.
    """
    try:
        if not path.is_file():
            raise InvalidInput(f"{path.name!r} cannot be read: it is not a file; give one")
        size = path.stat().st_size
    except OSError as exc:
        raise InvalidInput(f"{str(path)!r} cannot be read ({exc.strerror})") from exc
    if size > most_bytes:
        raise TooLarge(
            f"{path.name!r} has {size:,} bytes; at most {most_bytes:,} are read, so split it"
        )
    return path


_SCHEME_END = "(?:://|%3A%2F%2F)"
_CREDENTIALS = re.compile(
    rf"(\A|{_SCHEME_END})(?:(?!{_SCHEME_END}).)*(?:@|%40)", re.IGNORECASE | re.DOTALL
)
"""All before the last @ of an address, a well-formed one or not, also of one in a query part."""
_SECRET_PARAMETER = re.compile(
    r"([?&;][^=&;#]*(?:pass|pwd|secret|token|key|sig|auth|cred)[^=&;#]*=)[^&;#]*", re.IGNORECASE
)


def without_credentials(address: str) -> str:
    """Return an address as people may see it: without names, passwords and keys.

    Everything that shows an address, or says that one is wrong, shows it like this.
    """
    return _SECRET_PARAMETER.sub(r"\1(hidden)", _CREDENTIALS.sub(r"\1", address))


def is_loopback(name: str) -> bool:
    """Return whether a host name or address can only mean this machine."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
