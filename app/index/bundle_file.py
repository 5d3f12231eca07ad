"""The bundle format: one file of checksummed blocks, read and written in constant memory.

    magic       DOCUMIND-BUNDLE 1, newline
    block*      4 bytes length, 32 bytes SHA-256 of the packed content, then the content: zstd(4 bytes length, JSON, raw bytes)

The first block's JSON has `kind` header, the last one's trailer with the number of blocks before it: a file that was cut short
has none.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import zstandard

from app.core.errors import IndexDamaged, InvalidInput

MAGIC = b"DOCUMIND-BUNDLE 1\n"
_LENGTH = struct.Struct("<I")
MAX_BLOCK_BYTES = 1 << 30
"""No block of ours is larger; a length beyond it is damage."""


@dataclass(frozen=True, slots=True)
class Block:
    """One unit of a bundle."""

    fields: Mapping[str, object]
    payload: bytes = b""

    @property
    def kind(self) -> str:
        """header, documents, original or trailer."""
        return str(self.fields.get("kind"))


def write_block(file: IO[bytes], block: Block) -> None:
    """Append a block."""
    fields = json.dumps(block.fields, ensure_ascii=False).encode()
    packed = zstandard.ZstdCompressor(level=3).compress(_LENGTH.pack(len(fields)) + fields + block.payload)
    file.write(_LENGTH.pack(len(packed)) + hashlib.sha256(packed).digest() + packed)


def read_blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of a bundle, each checked.

    Raises:
        InvalidInput: Not a bundle.
        IndexDamaged: A block is not what its checksum says, or the file was cut short.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise InvalidInput(f"{path.name!r} is no bundle; expected a file made by: documind export")
        count, ended = 0, False
        while head := file.read(_LENGTH.size + 32):
            block = _read_block(file, head, path)
            if ended or (count == 0) != (block.kind == "header"):
                raise _damaged(path)
            if block.kind == "trailer":
                ended = True
                if block.fields.get("blocks") != count:
                    raise _damaged(path)
            count += 1
            yield block
    if not ended:
        raise _damaged(path)


def _read_block(file: IO[bytes], head: bytes, path: Path) -> Block:
    if len(head) != _LENGTH.size + 32:
        raise _damaged(path)
    (length,) = _LENGTH.unpack_from(head)
    packed = file.read(length) if length <= MAX_BLOCK_BYTES else b""
    if len(packed) != length or hashlib.sha256(packed).digest() != head[_LENGTH.size :]:
        raise _damaged(path)
    content = zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_BLOCK_BYTES)
    (size,) = _LENGTH.unpack_from(content)
    fields = json.loads(content[_LENGTH.size : _LENGTH.size + size])
    return Block(fields, content[_LENGTH.size + size :])


def _damaged(path: Path) -> IndexDamaged:
    return IndexDamaged(f"the bundle {path.name!r} is damaged or cut short: nothing was imported; export or copy it again")
