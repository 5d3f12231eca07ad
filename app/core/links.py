"""Which address of a document may leave as a link."""

from __future__ import annotations

import re
from typing import Annotated, Any
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


class _OnTheWeb:
    @classmethod
    def __get_pydantic_core_schema__(cls, kind: Any, handler: Any) -> Any:  # noqa: ANN401  # pydantic's
        from pydantic_core import core_schema  # noqa: PLC0415  # a parser's child reads no JSON

        return core_schema.no_info_before_validator_function(
            web_link,
            handler(kind),
            serialization=core_schema.plain_serializer_function_ser_schema(
                web_link, return_schema=handler(kind)
            ),
        )


WebLink = Annotated[str | None, _OnTheWeb]
"""The address that a document names. As JSON null, unless a browser opens it on the web."""
