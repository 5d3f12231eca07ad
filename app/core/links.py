"""Which addresses of a document may leave as links: on the web, in Zotero and in Obsidian."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

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


ZOTERO = "zotero"
"""Key of own metadata under which a document has its address in Zotero."""
_ZOTERO = re.compile(r"zotero://(open-pdf|select)/(?:library|groups/\d{1,12})/items/[A-Z0-9]{8}")


def zotero_address(action: str, place: str, key: str) -> str:
    """Return where Zotero selects an item, or opens a file.

    Args:
        action: `select` or `open-pdf`, which opens other files too.
        place: `library` or `groups/ID`.
        key: Of the item, or the attachment.
    """
    return f"zotero://{action}/{place}/items/{key}"


def zotero_link(address: object, page: int | None) -> str | None:
    """Return an address of an item in Zotero, of a file at a page from 1; None for others."""
    found = _ZOTERO.fullmatch(address) if isinstance(address, str) else None
    if found is None:
        return None
    return f"{found[0]}?page={page}" if page and found[1] == "open-pdf" else found[0]


OBSIDIAN = "obsidian"
"""Key of own metadata under which a note has its address in Obsidian."""
_OBSIDIAN = re.compile(r"obsidian://open\?vault=[\w.%~-]{1,1000}&file=[\w.%~-]{1,4000}", re.ASCII)


def obsidian_address(vault: str, note: str) -> str:
    """Return where Obsidian opens a note: its path in the vault, without its ending."""
    return f"obsidian://open?vault={quote(vault, safe='')}&file={quote(note, safe='')}"


def obsidian_link(address: object, heading: str, block: str = "") -> str | None:
    """Return an address of a note in Obsidian, at a block or heading where one is given.

    None for what is no such address.
    """
    found = _OBSIDIAN.fullmatch(address) if isinstance(address, str) else None
    if found is None:
        return None
    place = f"^{block}" if block else heading
    return found[0] + quote(f"#{place}", safe="") if place else found[0]


def obsidian_note(address: object) -> tuple[str, str] | None:
    """Return the vault of an address, and the path of its note there; None for others."""
    found = _OBSIDIAN.fullmatch(address) if isinstance(address, str) else None
    if found is None:
        return None
    vault, _, note = found[0].partition("?vault=")[2].partition("&file=")
    return unquote(vault), unquote(note)


LINKS, ALIASES, BLOCKS = "links", "aliases", "blocks"
"""Keys of own metadata of a note: where it leads to, its other names, what it names in itself."""
_BETWEEN = "; "
_WORD = re.compile(r"[^\W_]+")
_FIRST_WORDS = 6


def named_block(name: str, text: str) -> str:
    """Return a block of a note as it is kept: its name, and the words that it begins with."""
    return " ".join([name, *_words(text)[:_FIRST_WORDS]])


def obsidian_block(blocks: object, passage: str) -> str:
    """Return the name of the first block that a passage holds; empty where none is kept."""
    words, found = f" {' '.join(_words(passage))} ", dict[int, str]()
    for block in listed(blocks):
        name, _, begins = block.partition(" ")
        if begins and (at := words.find(f" {begins} ")) >= 0:
            found.setdefault(at, name)
    return found[min(found)] if found else ""


def listed(value: object) -> list[str]:
    """Return the names of a value that holds several."""
    return value.split(_BETWEEN) if isinstance(value, str) else []


def as_list(names: Iterable[str], most_characters: int) -> str:
    """Return names as one value, the last ones left out where it would be too long."""
    line = ""
    for name in names:
        longer = f"{line}{_BETWEEN}{name}" if line else name
        if len(longer) > most_characters:
            break
        line = longer
    return line


def _words(text: str) -> list[str]:
    return [one.casefold() for one in _WORD.findall(text)]


class _OnTheWeb:
    @classmethod
    def __get_pydantic_core_schema__(cls, kind: Any, handler: Any) -> Any:  # pydantic's
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
