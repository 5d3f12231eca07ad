"""Names and addresses of hosts."""

from __future__ import annotations

import ipaddress
import re

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
