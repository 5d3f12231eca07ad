"""Names and addresses of hosts."""

from __future__ import annotations

import ipaddress


def is_loopback(name: str) -> bool:
    """Return whether a host name or address can only mean this machine."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
