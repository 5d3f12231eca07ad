"""Take the address of a host apart."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from app.core.errors import InvalidInput
from app.core.hosts import is_loopback, without_credentials


def hostname_of(base_url: str) -> str:
    """Return the host's name or address of a base URL, empty when it has none."""
    return urlsplit(base_url if "://" in base_url else f"http://{base_url}").hostname or ""


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
    refused = InvalidInput(
        f"the address of {name} is {without_credentials(base_url)!r}; expected http://host:port"
    )
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, an odd bracket; it quotes what may be a password
        raise refused from None
    if not usable:
        raise refused
    return parts._replace(path=parts.path.rstrip("/"))
