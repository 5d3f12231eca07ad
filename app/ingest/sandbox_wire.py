"""Exchange frames of a JSON header and a body between server and parsing child.

Nothing is unpickled: what comes from a child that may have been taken over by a hostile file is
only ever read as text and numbers.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

from app.core.errors import DocuMindError, InputError, error_classes
from app.core.types import Heading, PageBoxes, PageSpan, PageText, ParsedDocument

_SIZES = struct.Struct(">II")
_BLOCK_BYTES = 1 << 20
_TITLE_CHARACTERS = 2_000
_AUTHORS = 1_000

Header = Mapping[str, Any]
"""Decoded JSON; every field is checked by the constructor that it goes into."""


class FrameTooLarge(Exception):
    """The other side announced more bytes than the limit."""


def send_frame(sock: socket.socket, header: Mapping[str, object], body: bytes = b"") -> None:
    """Write one frame; the socket's timeout applies."""
    head = json.dumps(header).encode()
    sock.sendall(_SIZES.pack(len(head), len(body)) + head)
    if body:
        sock.sendall(body)


def receive_frame(
    sock: socket.socket, *, limit_bytes: int = 1 << 32, deadline: float | None = None
) -> tuple[Header, bytes] | None:
    """Return the next frame; None if the other side closed.

    Before a frame or inside one.

    Args:
        sock: The socket.
        limit_bytes: Of header and body together.
        deadline: Of `time.monotonic()`; None waits for ever.

    Raises:
        FrameTooLarge: The announced size passes the limit.
        TimeoutError: The deadline passed.
    """
    sizes = _receive(sock, _SIZES.size, deadline)
    if sizes is None:
        return None
    head_size, body_size = _SIZES.unpack(sizes)
    if head_size + body_size > limit_bytes:
        raise FrameTooLarge(f"{head_size + body_size:,} bytes")
    head = _receive(sock, head_size, deadline)
    body = _receive(sock, body_size, deadline)
    return None if head is None or body is None else (json.loads(head), body)


def _receive(sock: socket.socket, size: int, deadline: float | None) -> bytes | None:
    buffer = bytearray()
    while len(buffer) < size:
        if deadline is not None:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            sock.settimeout(remaining)
        block = sock.recv(min(_BLOCK_BYTES, size - len(buffer)))
        if not block:
            return None
        buffer += block
    return bytes(buffer)


def pack_document(parsed: ParsedDocument) -> tuple[dict[str, object], bytes]:
    """Return a frame's header and body for a parsed document."""
    header: dict[str, object] = {
        "media_type": parsed.media_type,
        "pages": [(p.number, p.start, p.end) for p in parsed.pages],
        "headings": [(h.start, h.end, h.level, h.title) for h in parsed.headings],
        "title": parsed.title,
        "authors": parsed.authors,
        "year": parsed.year,
        "warnings": parsed.warnings,
        "stripped": parsed.stripped_characters,
    }
    return header, parsed.text.encode()


def unpack_document(header: Header, body: bytes) -> ParsedDocument:
    """Return the parsed document of a frame; titles and names are cut to a limit.

    They are read on by expressions in the server, where nothing limits the time.
    """
    return ParsedDocument(
        text=body.decode(),
        media_type=str(header["media_type"]),
        pages=tuple(PageSpan(int(n), int(start), int(end)) for n, start, end in header["pages"]),
        headings=tuple(
            Heading(int(start), int(end), int(level), str(title)[:_TITLE_CHARACTERS])
            for start, end, level, title in header["headings"]
        ),
        title=None if header["title"] is None else str(header["title"])[:_TITLE_CHARACTERS],
        authors=tuple(str(author)[:_TITLE_CHARACTERS] for author in header["authors"][:_AUTHORS]),
        year=None if header["year"] is None else int(header["year"]),
        warnings=tuple(map(str, header["warnings"])),
        stripped_characters=int(header["stripped"]),
    )


def pack_pages(pages: Sequence[PageText]) -> list[tuple[int, str, int, int]]:
    """Return page texts as JSON values."""
    return [(page.number, page.text, page.start, page.end) for page in pages]


def unpack_pages(values: Sequence[Sequence[Any]]) -> list[PageText]:
    """Return page texts from JSON values."""
    return [
        PageText(int(number), str(text), int(start), int(end))
        for number, text, start, end in values
    ]


def pack_boxes(boxes: Sequence[PageBoxes]) -> dict[str, object]:
    """Return a frame's header for boxes."""
    return {"boxes": [(box.page, box.width, box.height, box.rects) for box in boxes]}


def unpack_boxes(header: Header) -> tuple[PageBoxes, ...]:
    """Return the boxes of a frame."""
    return tuple(
        PageBoxes(
            int(page),
            float(width),
            float(height),
            tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in rects),
        )
        for page, width, height, rects in header["boxes"]
    )


def pack_error(error: DocuMindError) -> dict[str, object]:
    """Return a frame's header for an error about the file."""
    return {"error": type(error).__name__, "message": error.message}


def unpack_error(header: Header) -> DocuMindError:
    """Return the error of a frame; a class that is no input error becomes the base."""
    found = error_classes().get(str(header["error"]), InputError)
    return (found if issubclass(found, InputError) else InputError)(str(header["message"]))
