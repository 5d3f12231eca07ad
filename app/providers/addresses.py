"""Take the address of a host apart."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit, urlunsplit

from app.core.errors import InvalidInput
from app.core.hosts import is_loopback


def hostname_of(base_url: str) -> str:
    """Return the host's name or address of a base URL, empty when it has none."""
    return urlsplit(base_url if "://" in base_url else f"http://{base_url}").hostname or ""


def without_credentials(url: str) -> str:
    """Return an address without the name and password that may be in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def on_this_machine(base_url: str) -> bool:
    """Return whether a base URL points at this machine."""
    return is_loopback(hostname_of(base_url))


def parsed_address(base_url: str, name: str) -> SplitResult:
    """Return the parts of a base URL, http without a scheme, no slash at its end.

    Args:
        base_url: `http[s]://host[:port][/path]`.
        name: What people call the host, for the message.

    Raises:
        InvalidInput: The URL has no host or a foreign scheme.
    """
    url = base_url.strip()
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as exc:  # a port that is no number, an odd bracket
        raise InvalidInput(
            f"the address of {name} is {base_url!r} ({exc}); expected http://host:port"
        ) from exc
    if not usable:
        raise InvalidInput(f"the address of {name} is {base_url!r}; expected http://host:port")
    return parts._replace(path=parts.path.rstrip("/"))
