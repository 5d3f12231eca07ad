"""Read and write the bundle format: checksummed blocks, constant memory.

    magic       DOCUMIND-BUNDLE 1, newline
    block*      4 bytes length, 32 bytes SHA-256 of the packed content, then the content: zstd(4
    bytes length, JSON, raw bytes)

The first block's JSON has `kind` header, the last one's trailer with the number of blocks before
it: a file that was cut short has none. A block says how large it is before it is unpacked, and no
more than its kind may take is ever unpacked.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import zstandard
from pydantic import TypeAdapter, ValidationError

from app.core.errors import IndexDamaged, InvalidInput
from app.index.maintenance.bundle_records import AnyRecord, Documents, Header, Original, Trailer

MAGIC = b"DOCUMIND-BUNDLE 1\n"
MAX_BLOCK_BYTES = 64 << 20
"""Unpacked size of a block that is no original; of an original that of its JSON."""
_LENGTH = struct.Struct("<I")
_HEAD_BYTES = _LENGTH.size + hashlib.sha256().digest_size
_PIECE_BYTES = 1 << 20
_WINDOW_BYTES = 8 << 20
"""Memory of the decompressor; what `write_block` makes needs 2 MiB."""
_RECORDS: TypeAdapter[Header | Original | Documents | Trailer] = TypeAdapter(AnyRecord)


@dataclass(frozen=True, slots=True)
class Block:
    """One unit of a bundle."""

    record: Header | Original | Documents | Trailer
    payload: bytes = b""


def write_block(file: IO[bytes], block: Block) -> None:
    """Append a block."""
    fields = block.record.model_dump_json().encode()
    packed = zstandard.ZstdCompressor(level=3).compress(
        _LENGTH.pack(len(fields)) + fields + block.payload
    )
    file.write(_LENGTH.pack(len(packed)) + hashlib.sha256(packed).digest() + packed)


def read_blocks(path: Path, max_original_bytes: int) -> Iterator[Block]:
    """Yield a bundle's blocks with checksum, size and every field checked.

    Args:
        path: The file.
        max_original_bytes: Largest original that is unpacked.

    Raises:
        InvalidInput: Not a bundle.
        IndexDamaged: A block is not what its checksum or the schema says, or the file was cut
            short; the message names both.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise InvalidInput(
                f"{path.name!r} is no bundle; expected a file made by: documind export"
            )
        count, ended = 0, False
        while head := file.read(_HEAD_BYTES):
            where = f"block {count + 1}"
            try:
                block = _read_block(file, head, max_original_bytes)
            except _Wrong as exc:
                raise damaged(path, f"{where}, {exc}") from exc
            record = block.record
            if ended or (count == 0) != isinstance(record, Header):
                raise damaged(path, f"{where}, kind: {record.kind!r} is in the wrong place")
            if isinstance(record, Trailer):
                ended = True
                if record.blocks != count:
                    raise damaged(path, f"{where} (trailer), blocks: {record.blocks} for {count}")
            count += 1
            yield block
    if not ended:
        raise damaged(path, "it is cut short: the trailer is missing")


def damaged(path: Path, what: str) -> IndexDamaged:
    """Return the error for a malformed bundle; `what` names block and field."""
    return IndexDamaged(
        f"the bundle {path.name!r} is damaged: {what}; nothing was imported: export or copy it"
        " again"
    )


class _Wrong(Exception):
    """A fault of a block: field and reason."""


def _read_block(file: IO[bytes], head: bytes, max_original_bytes: int) -> Block:
    most = MAX_BLOCK_BYTES + max_original_bytes
    if len(head) != _HEAD_BYTES:
        raise _Wrong("length: it is cut short")
    (length,) = _LENGTH.unpack_from(head)
    if length > most:
        raise _Wrong(f"length: {length:,} bytes, at most {most:,} are read")
    packed = file.read(length)
    if len(packed) != length:
        raise _Wrong(f"length: {length:,} bytes are announced, {len(packed):,} are there")
    if hashlib.sha256(packed).digest() != head[_LENGTH.size :]:
        raise _Wrong("checksum: the bytes are not those that were written")
    try:
        if (stated := zstandard.frame_content_size(packed)) > most:
            raise _Wrong(f"size: it unpacks to {stated:,} bytes, at most {most:,} are read")
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(
            packed
        ) as content:
            return _unpack(content, max_original_bytes)
    except zstandard.ZstdError as exc:
        raise _Wrong(f"content: {exc}") from exc


def _unpack(content: zstandard.ZstdDecompressionReader, max_original_bytes: int) -> Block:
    prefix = _take(content, _LENGTH.size)
    if len(prefix) != _LENGTH.size:
        raise _Wrong("fields: they are cut short")
    (size,) = _LENGTH.unpack(prefix)
    if size > MAX_BLOCK_BYTES:
        raise _Wrong(f"fields: {size:,} bytes, at most {MAX_BLOCK_BYTES:,} are read")
    fields = _take(content, size)
    if len(fields) != size:
        raise _Wrong("fields: they are cut short")
    record = _record(fields)
    room = max_original_bytes if isinstance(record, Original) else MAX_BLOCK_BYTES - size
    payload = _take(content, room + 1)
    if len(payload) > room:
        advice = "; raise MAX_FILE_SIZE_MB" if isinstance(record, Original) else ""
        raise _Wrong(f"payload ({record.kind}): more than {room:,} bytes{advice}")
    return Block(record, payload)


def _take(content: zstandard.ZstdDecompressionReader, size: int) -> bytes:
    """Return up to `size` bytes in pieces, so a false size takes no memory."""
    taken = bytearray()
    while len(taken) < size and (piece := content.read(min(_PIECE_BYTES, size - len(taken)))):
        taken += piece
    return bytes(taken)


def _record(fields: bytes) -> Header | Original | Documents | Trailer:
    try:
        return _RECORDS.validate_json(fields)
    except ValidationError as exc:
        found = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in found["loc"]) or "fields"
        raise _Wrong(f"{field}: {found['msg']}") from exc
