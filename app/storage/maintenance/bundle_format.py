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
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Literal, Self

import zstandard
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.types import FailFast

from app.core.corrections import Mending
from app.core.errors import IndexDamaged, InvalidInput
from app.core.ids import document_id
from app.core.types import (
    MAX_SENTENCES,
    MAX_TOKENS,
    STATE_DIMENSION,
    TOKEN_BITS,
    Correction,
    DocumentType,
    Labels,
    Library,
)

# Define a bundle's blocks field by field: the schema of foreign files.

BATCH_DOCUMENTS = 100
"""Documents per block and per transaction."""

_GIVEN_ID = re.compile(r"sample_[\w.-]+")
"""Ids that are not made from the source key: those of the bundled samples, which are their own
source keys."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Fingerprint8 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}$")]
Line = Annotated[str, StringConstraints(max_length=100_000)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=4_096)]
SourceKey = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=4_096, pattern=r"^[^/\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
    ),
]
Text = Annotated[str, StringConstraints(min_length=1)]
Time = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]
ArxivId = Annotated[
    str, StringConstraints(pattern=r"^(\d{4}\.\d{4,5}|[a-z-]+(\.[A-Z]{2})?/\d{7})(v\d+)?$")
]
Flag = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_:.-]{0,63}$")]
LanguageCode = Annotated[str, StringConstraints(pattern=r"^([a-z]{2})?$")]
Count = Annotated[int, Field(ge=0, lt=1 << 40)]
Offset = Annotated[int, Field(ge=0, lt=1 << 31)]
PageNumber = Annotated[int, Field(ge=0, lt=1 << 31)]
MOST_CHUNK_CHARACTERS = 16_000
"""Of a chunk in a bundle: twice the largest CHUNK_SIZE."""
Chunk = tuple[Offset, Offset, Offset, Line, PageNumber | None]
"""Ordinal, start, end, section, page."""
CodeSizes = tuple[
    Offset,
    Annotated[int, Field(ge=1, le=MAX_SENTENCES)],
    Annotated[int, Field(ge=1, le=MAX_TOKENS)],
]
"""Ordinal of a chunk, rows of its sentences and of its tokens, which follow behind the vectors
of the block."""
Page = tuple[PageNumber, Offset, Offset]
"""Number, start, end."""
Outlined = tuple[Offset, Offset, Offset]
"""Start, end and level of a heading."""
Points = Annotated[float, Field(gt=-1e9, lt=1e9)]
Recognised = tuple[
    Annotated[str, StringConstraints(min_length=1, max_length=1_000)],
    Points,
    Points,
    Points,
    Points,
]
"""A word with its left, top, right and bottom."""
RecognisedPage = tuple[
    Annotated[int, Field(ge=1, lt=1 << 31)],
    Annotated[Points, Field(gt=0)],
    Annotated[Points, Field(gt=0)],
    list[list[Recognised]],
]
"""Number, width, height and lines of a page that OCR has read."""


Corrected = tuple[Offset, Text, Text, Line, Line, Line, Time, bool]
"""Start, before, text, left, right, author, time and placed of a correction."""


class Record(BaseModel):
    """Values of exactly the declared types, no field more and none less."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class FingerprintRecord(Record):
    """Versions that made vectors; see `app.core.types.Fingerprint`."""

    embedding_model: Name
    model_digest: Line
    dimension: Annotated[int, Field(ge=1, le=65_536)]
    query_prefix: Line
    passage_prefix: Line
    chunker: Name
    analyzer: Name


class Header(Record):
    """The first block."""

    kind: Literal["header"] = "header"
    library: Literal["public", "papers"]
    created_at: Time
    fingerprint: FingerprintRecord | None
    codes: Name | None = None
    """Of which version the codes for late interaction are; None without any, as in bundles of
    older releases."""


class Original(Record):
    """The bytes of an upload, in the payload."""

    kind: Literal["original"] = "original"
    sha256: Sha256


class DocumentRecord(Record):
    """A document; `vectors` and `codes` list ordinals of chunks in the payload."""

    doc_id: Name
    source_key: SourceKey
    filename: Line
    sha256: Sha256
    type: DocumentType
    text: str
    """Empty: a scan that waits for OCR."""
    title: Line
    authors: list[Line]
    year: Annotated[int, Field(ge=-9_999, le=9_999)] | None
    arxiv_id: ArxivId | None
    chunks: Annotated[list[Chunk], FailFast()]
    pages: Annotated[list[Page], FailFast()]
    source_url: Line | None
    licence: Line | None
    flags: list[Flag]
    has_original: bool
    source_revision: Line | None
    vectors: Annotated[list[Offset], FailFast()]
    codes: Annotated[list[CodeSizes], FailFast()] = []
    language: LanguageCode = ""
    """Empty: unknown, or of an older release."""
    outline: Annotated[list[Outlined], FailFast()] = []
    tags: list[Line] = []
    metadata: dict[Line, str | int | float] = {}
    words: Annotated[list[RecognisedPage], FailFast()] = []
    """What OCR read on pages of the original."""
    corrections: Annotated[list[Corrected], FailFast()] = []

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if ".." in self.source_key.split("/"):
            raise ValueError(f"source_key {self.source_key!r:.100} climbs out of its folder")
        made = {document_id(library, self.source_key) for library in Library}
        if self.doc_id not in made and not (
            self.doc_id == self.source_key and _GIVEN_ID.fullmatch(self.doc_id)
        ):
            raise ValueError(f"doc_id {self.doc_id!r:.100} is not the id of its source_key")
        try:
            Labels.of(self.tags, self.metadata)
        except InvalidInput as exc:
            raise ValueError(f"tags and metadata: {exc.message}") from exc
        length = len(self.text)
        before = -1
        for ordinal, start, end, _, _ in self.chunks:
            if not before < ordinal or not start < end <= min(
                length, start + MOST_CHUNK_CHARACTERS
            ):
                raise ValueError(
                    f"chunks: {ordinal} spans {start}..{end} of {length} characters, after chunk"
                    f" {before}; a chunk has at most {MOST_CHUNK_CHARACTERS:,}"
                )
            before = ordinal
        spans = [("pages", start, end) for _, start, end in self.pages]
        spans += [("outline", start, end) for start, end, _ in self.outline]
        for name, start, end in spans:
            if not start <= end <= length:
                raise ValueError(f"{name}: {start}..{end} of {length} characters")
        ordinals = {chunk[0] for chunk in self.chunks}
        coded = [ordinal for ordinal, _, _ in self.codes]
        for name, of in (("vectors", self.vectors), ("codes", coded)):
            if len(set(of)) != len(of) or not ordinals.issuperset(of):
                raise ValueError(f"{name}: not each of one of the chunks")
        return self

    @model_validator(mode="after")
    def _corrections_fit(self) -> Self:
        if not Mending([Correction(*one) for one in self.corrections]).fits(self.text):
            raise ValueError("corrections: not each at its place in the text")
        return self

    @model_validator(mode="after")
    def _words_fit(self) -> Self:
        boxes = (word for _, _, _, lines in self.words for line in lines for word in line)
        if (self.words and not self.has_original) or any(
            left > right or top > bottom for _, left, top, right, bottom in boxes
        ):
            raise ValueError("words: without an original, or in a box that ends before it begins")
        return self


class Documents(Record):
    """A batch of documents, and in the payload the float16 rows of their vectors."""

    kind: Literal["documents"] = "documents"
    documents: Annotated[list[DocumentRecord], Field(max_length=BATCH_DOCUMENTS), FailFast()]


class Trailer(Record):
    """The last block: what the bundle holds."""

    kind: Literal["trailer"] = "trailer"
    blocks: Count
    library: Literal["public", "papers"]
    documents: Count
    chunks: Count
    vectors: Count
    originals: Count
    fingerprint: Fingerprint8 | None
    """None when nothing is embedded."""


def code_bytes(sizes: CodeSizes) -> tuple[int, int]:
    """Return the bytes of a code's sentences and of its tokens."""
    return sizes[1] * STATE_DIMENSION, sizes[2] * TOKEN_BITS // 8


AnyRecord = Annotated[Header | Original | Documents | Trailer, Field(discriminator="kind")]


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
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
    try:
        if (stated := zstandard.frame_content_size(packed)) > most:
            raise _Wrong(f"size: it unpacks to {stated:,} bytes, at most {most:,} are read")
        with unpacker.stream_reader(packed) as content:
            prefix = _take(content, _LENGTH.size)
            size = _LENGTH.unpack(prefix)[0] if len(prefix) == _LENGTH.size else 1
            if size > MAX_BLOCK_BYTES:
                raise _Wrong(f"fields: {size:,} bytes, at most {MAX_BLOCK_BYTES:,} are read")
            fields = _take(content, size)
            if len(fields) != size:
                raise _Wrong("fields: they are cut short")
            record = _record(fields)
            room = max_original_bytes if isinstance(record, Original) else MAX_BLOCK_BYTES - size
            payload = _take(content, room + 1)
    except zstandard.ZstdError as exc:
        raise _Wrong(f"content: {exc}") from exc
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
