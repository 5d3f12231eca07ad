"""Files as a form, read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class FileToSend:
    """A file for ingest; `source_key` None takes the file's name."""

    path: Path
    source_key: str | None = None


def multipart(
    fields: Sequence[tuple[str, str]], files: Sequence[Path], boundary: str
) -> Iterator[bytes]:
    """Yield a form body piece by piece, so that no file is in memory as a whole."""
    for name, value in fields:
        yield (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        ).encode("utf-8", "replace")
    for path in files:
        # As browsers do it (WHATWG, multipart/form-data encoding): quotes and line ends
        # percent-encoded.
        shown = path.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        yield (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="file"; filename="{shown}"\r\n\r\n'
        ).encode("utf-8", "replace")
        with path.open("rb") as source:
            while piece := source.read(_PIECE_BYTES):
                yield piece
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()
