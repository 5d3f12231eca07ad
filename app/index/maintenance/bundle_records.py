"""Define a bundle's blocks field by field: the schema of foreign files.

Before anything is written.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.types import FailFast

from app.core.ids import document_id
from app.core.types import MAX_SENTENCES, MAX_TOKENS, STATE_DIMENSION, TOKEN_BITS, Library

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
ArxivId = Annotated[
    str, StringConstraints(pattern=r"^(\d{4}\.\d{4,5}|[a-z-]+(\.[A-Z]{2})?/\d{7})(v\d+)?$")
]
Flag = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_:.-]{0,63}$")]
Kind = Literal["pdf", "docx", "html", "markdown", "text", "wikitext"]
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
    created_at: Annotated[
        str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
    ]
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
    type: Kind
    text: Annotated[str, StringConstraints(min_length=1)]
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

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Hold the fields to each other."""
        if ".." in self.source_key.split("/"):
            raise ValueError(f"source_key {self.source_key!r:.100} climbs out of its folder")
        made = {document_id(library, self.source_key) for library in Library}
        if self.doc_id not in made and not (
            self.doc_id == self.source_key and _GIVEN_ID.fullmatch(self.doc_id)
        ):
            raise ValueError(f"doc_id {self.doc_id!r:.100} is not the id of its source_key")
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
        for number, start, end in self.pages:
            if not start <= end <= length:
                raise ValueError(f"pages: {number} spans {start}..{end} of {length} characters")
        if len(set(self.vectors)) != len(self.vectors) or not set(self.vectors) <= {
            chunk[0] for chunk in self.chunks
        }:
            raise ValueError("vectors: not each of one of the chunks")
        coded = {ordinal for ordinal, _, _ in self.codes}
        if len(coded) != len(self.codes) or not coded <= {chunk[0] for chunk in self.chunks}:
            raise ValueError("codes: not each of one of the chunks")
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
