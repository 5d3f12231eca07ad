"""Write multipart bodies to files in constant memory, under caps.

The caps hold while the bytes arrive.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from anyio import to_thread
from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from app.core.errors import DiskFull, InvalidInput, TooLarge, UnsupportedType, made_in_data
from app.settings import Settings

MAX_FILES = 1000
MAX_FIELDS = 1100
MAX_FIELD_BYTES = 4096
_FILE_FIELDS = ("file", "files")
_TOLD = (
    "on_part_begin on_part_data on_part_end on_header_field on_header_value on_header_end"
    " on_headers_finished on_end"
).split()
"""What the parser tells; each is a method here."""
_FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One uploaded file on disk; `raw_name` is what the client called it."""

    raw_name: str
    path: Path
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Upload:
    """A received form: its files in order, its text fields by name."""

    files: tuple[StagedFile, ...]
    fields: dict[str, list[str]]


@dataclass(slots=True)
class _Part:
    """The part that is being received."""

    disposition: bytes = b""
    name: str = ""
    filename: str | None = None
    text: bytearray = field(default_factory=bytearray)
    file: BinaryIO | None = None
    path: Path | None = None
    size_bytes: int = 0


class UploadReceiver:
    """Parses a multipart body; stages its files in a new directory.

    Blocking (it writes files): call it on a worker thread. `discard` removes what was staged,
    always.
    """

    def __init__(
        self,
        content_type: str,
        staging: Path,
        *,
        max_file_bytes: int,
        allowed_fields: frozenset[str],
    ) -> None:
        """Read the boundary and make the directory.

        Raises:
            UnsupportedType: The body is not multipart/form-data.
            InvalidInput: The boundary is missing or is none (RFC 2046, section 5.1.1).
            StorageError: The data directory, where `staging` is, was moved away.
        """
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data":
            raise UnsupportedType(
                f"content type {content_type!r:.80} must be multipart/form-data; try: curl -F"
                " file=@paper.pdf"
            )
        boundary = options.get(b"boundary", b"")
        if not boundary:
            raise InvalidInput("the multipart body has no boundary in its content type")
        with _translated():
            told = {name: getattr(self, f"_{name}") for name in _TOLD}
            self._parser = MultipartParser(boundary, told)  # type: ignore[arg-type]  # a TypedDict
        self._max_file_bytes = max_file_bytes
        self._allowed_fields = allowed_fields
        self._directory = Path(tempfile.mkdtemp(dir=made_in_data(staging)))
        self._part = _Part()
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._files: list[StagedFile] = []
        self._fields: dict[str, list[str]] = {}
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body.

        Raises:
            InvalidInput: The form is malformed, or has too many or unknown fields.
            TooLarge: A file is over the cap.
            DiskFull: No space for a file.
        """
        try:
            with _translated():
                self._parser.write(data)
        except OSError as exc:
            if exc.errno not in _FULL:
                raise
            raise DiskFull(
                f"an uploaded file cannot be written ({exc.strerror}); free some space and send it"
                " again"
            ) from exc

    def finish(self) -> Upload:
        """Return what was received.

        Raises:
            InvalidInput: The body ended early or holds no file.
        """
        if not self._ended:
            raise InvalidInput("the multipart body ends before its closing boundary; send it again")
        if not self._files:
            raise InvalidInput(
                "no file in the form; send at least one part named 'file' with a file name"
            )
        return Upload(tuple(self._files), self._fields)

    def discard(self) -> None:
        """Remove the staged files; what was taken from them is elsewhere by now."""
        if self._part.file is not None:
            with suppress(OSError):  # on a full disk what is buffered cannot be written either
                self._part.file.close()
        with suppress(OSError):
            shutil.rmtree(self._directory)

    def _on_part_begin(self) -> None:
        self._part = _Part()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        if bytes(self._header_name).lower() == b"content-disposition":
            self._part.disposition = bytes(self._header_value)
        self._header_name.clear()
        self._header_value.clear()

    def _on_headers_finished(self) -> None:
        part = self._part
        _, options = parse_options_header(part.disposition)
        part.name = _text(options.get(b"name", b""))
        filename = options.get(b"filename")
        if part.name in _FILE_FIELDS:
            if filename is None:
                raise InvalidInput(f"part {part.name!r} has no file name; send it as a file")
            if len(self._files) >= MAX_FILES:
                raise InvalidInput(f"over {MAX_FILES} files in one request; send them in several")
            # as browsers send a quote (WHATWG, multipart encoding)
            part.filename = _text(filename).replace("%22", '"')
            part.path = self._directory / f"{len(self._files):04d}.part"
            part.file = part.path.open("wb")
        elif part.name not in self._allowed_fields:
            known = ", ".join(sorted((*_FILE_FIELDS, *self._allowed_fields)))
            raise InvalidInput(f"unknown form field {part.name!r:.80}; there are {known}")
        elif sum(map(len, self._fields.values())) >= MAX_FIELDS:
            raise InvalidInput(f"over {MAX_FIELDS} form fields in one request")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        part.size_bytes += end - start
        if part.file is None:
            if part.size_bytes > MAX_FIELD_BYTES:
                raise InvalidInput(f"form field {part.name!r} is over {MAX_FIELD_BYTES} bytes")
            part.text += data[start:end]
            return
        if part.size_bytes > self._max_file_bytes:
            megabytes = self._max_file_bytes / 2**20
            raise TooLarge(
                f"file {part.filename!r:.80} is over {megabytes:g} MiB (MAX_FILE_SIZE_MB)"
            )
        part.file.write(data[start:end])

    def _on_part_end(self) -> None:
        part = self._part
        if part.file is None or part.path is None or part.filename is None:
            self._fields.setdefault(part.name, []).append(_text(bytes(part.text)))
            return
        part.file.close()
        self._files.append(StagedFile(part.filename, part.path, part.size_bytes))

    def _on_end(self) -> None:
        self._ended = True


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except FormParserError as exc:
        raise InvalidInput(f"the multipart body is malformed: {exc}") from exc


def _text(raw: bytes) -> str:
    """Return header or field text: UTF-8, or Latin-1 when it is not."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


FEED_BYTES = 1024 * 1024


def form_of(**fields: object) -> dict[str, Any]:
    """Return the request body of a route that reads a form, for OpenAPI."""
    schema = {"type": "object", "required": ["file"], "properties": fields}
    content = {"multipart/form-data": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


@asynccontextmanager
async def received(
    request: Request, settings: Settings, fields: frozenset[str] = frozenset()
) -> AsyncIterator[tuple[UploadReceiver, bytes]]:
    """Yield what received a form, and its last bytes, which are still to be fed.

    What was written is removed at the end. `fields` are text fields that the form may have.

    Raises:
        InvalidInput: No such form, or a field that is not allowed.
        TooLarge: A file over MAX_FILE_SIZE_MB.
        DiskFull: No space for a file.
    """

    def opened() -> UploadReceiver:
        return UploadReceiver(
            request.headers.get("content-type", ""),
            settings.data_dir / "uploads",
            max_file_bytes=settings.max_file_size_mb * 2**20,
            allowed_fields=fields,
        )

    receiver = await to_thread.run_sync(opened)
    try:
        pending = bytearray()
        async for piece in request.stream():
            pending += piece
            if len(pending) >= FEED_BYTES:
                await to_thread.run_sync(receiver.feed, bytes(pending))
                pending.clear()
        yield receiver, bytes(pending)
    finally:
        await to_thread.run_sync(receiver.discard)
