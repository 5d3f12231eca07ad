"""Decide which address of a document may leave as a link.

A link is an address that a browser opens on the web, and never a malformed one.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_WEB = re.compile(r"https?://[^\s\x00-\x20\x7f<>\"\\^`{|}]+", re.IGNORECASE)
"""No white space, and none of the characters that a URL carries only in percent-encoding (RFC
3986, section 2)."""
_HOST = re.compile(r"[\w.\-]+|\[?[0-9a-f:.]+\]?", re.IGNORECASE)


def web_link(url: str | None) -> str | None:
    """Return a URL of http or https with a host, as it is; None for anything else."""
    if url is None or _WEB.fullmatch(url) is None:
        return None
    try:
        parts = urlsplit(url)
        valid = (
            parts.hostname is not None
            and _HOST.fullmatch(parts.hostname) is not None
            and (parts.port or 1) > 0
        )
    except ValueError:  # a port that is none, brackets that do not close
        return None
    return url if valid else None
