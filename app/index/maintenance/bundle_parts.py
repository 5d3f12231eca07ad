"""Read a library's documents for a bundle, in batches that fit a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Select, and_, select

from app.core.errors import NotFound, TooLarge
from app.core.types import STATE_DIMENSION, TOKEN_BITS, Document, Library
from app.index.catalog.build_rows import Build
from app.index.catalog.database import Database
from app.index.catalog.documents import SqliteCatalog
from app.index.catalog.loading import CatalogLoader
from app.index.catalog.rows import usable
from app.index.catalog.schema import chunks, documents, passage_codes, vectors
from app.index.catalog.statements import key_of
from app.index.files.originals import Originals
from app.index.maintenance.bundle_file import MAX_BLOCK_BYTES
from app.index.maintenance.bundle_records import BATCH_DOCUMENTS, DocumentRecord, Kind

ROOM_BYTES = MAX_BLOCK_BYTES - (1 << 16)
"""What documents may take in a block; the rest is for what surrounds them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A document on its way into a block."""

    record: DocumentRecord
    blobs: list[bytes]
    """Its vectors, float16, in the order of the record's `vectors`."""
    codes: list[bytes]
    """Its codes in the order of the record's `codes`, each its sentences, then its tokens."""
    size: int
    """Bytes that it takes in its block."""


@dataclass(frozen=True, slots=True)
class BundleReader:
    """Reads the live documents of a library from an open store."""

    database: Database
    catalog: SqliteCatalog
    loader: CatalogLoader
    originals: Originals

    def batches(self, library: Library) -> Iterator[list[Part]]:
        """Yield documents for one block at a time, within its limits."""
        batch: list[Part] = []
        size = 0
        for part in self._parts(library):
            if len(batch) == BATCH_DOCUMENTS or (batch and size + part.size > ROOM_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(part)
            size += part.size
        if batch:
            yield batch

    def _parts(self, library: Library) -> Iterator[Part]:
        after = 0
        build = self.loader.live_build(library)
        while docs := self.loader.live_docs(library, after, BATCH_DOCUMENTS):
            for document, source_revision in self.loader.live_documents(docs):
                held = self._vectors(library, document, build) if build else []
                try:
                    record = self._record(
                        document, source_revision, [ordinal for ordinal, _ in held]
                    )
                except NotFound:
                    continue  # deleted while we read
                codes = self._codes(library, document)
                sizes = [
                    (n, len(s) // STATE_DIMENSION, len(t) * 8 // TOKEN_BITS) for n, s, t in codes
                ]
                record = record.model_copy(update={"codes": sizes})
                part = _part(
                    record,
                    [blob for _, blob in held],
                    [blob for _, *pair in codes for blob in pair],
                )
                yield part if part.size <= ROOM_BYTES else _without_vectors(part)
            after = docs[-1]

    def _record(
        self, document: Document, source_revision: str | None, vectors: list[int]
    ) -> DocumentRecord:
        library, doc_id, revision = document.library, document.doc_id, document.revision
        chunks = self.catalog.chunks(library, doc_id, revision)
        return DocumentRecord.model_construct(
            doc_id=document.doc_id,
            source_key=document.source_key,
            filename=document.filename,
            sha256=document.sha256,
            type=cast("Kind", document.type),
            text=self.catalog.text(library, doc_id, revision=revision).text,
            title=document.title,
            authors=list(document.authors),
            year=document.year,
            arxiv_id=document.arxiv_id,
            chunks=[
                (chunk.ordinal, chunk.start, chunk.end, chunk.section, chunk.page)
                for chunk in chunks
            ],
            pages=[
                (page.number, page.start, page.end)
                for page in self.catalog.pages(library, doc_id, revision)
            ],
            source_url=document.source_url,
            licence=document.licence,
            flags=list(document.flags),
            has_original=document.has_original and self.originals.exists(document.sha256),
            source_revision=source_revision,
            vectors=vectors,
            language=document.language,
        )

    def _vectors(
        self, library: Library, document: Document, build: Build
    ) -> list[tuple[int, bytes]]:
        has = vectors.c.key == key_of(build.number)
        found = _of(
            select(chunks.c.ordinal, vectors.c.vector).join(vectors, has), library, document
        )
        rows = [(row.ordinal, row.vector) for row in self.database.rows(found)]
        fit = usable([row[1] for row in rows], build.dimension)
        return [row for row, good in zip(rows, fit, strict=True) if good]

    def _codes(self, library: Library, document: Document) -> list[tuple[int, bytes, bytes]]:
        columns = (chunks.c.ordinal, passage_codes.c.sentences, passage_codes.c.tokens)
        has = passage_codes.c.chunk_id == chunks.c.chunk_id
        found = _of(select(*columns).join(passage_codes, has), library, document)
        return [(row.ordinal, row.sentences, row.tokens) for row in self.database.rows(found)]


def _of(query: Select[Any], library: Library, document: Document) -> Select[Any]:
    """Return a query on chunks for those of a document's revision alone, in order."""
    of = and_(documents.c.library == library.value, documents.c.doc_id == document.doc_id)
    revision = chunks.c.revision == document.revision
    return (
        query.join(documents, documents.c.doc == chunks.c.doc)
        .where(of, revision)
        .order_by(chunks.c.ordinal)
    )


def _part(record: DocumentRecord, blobs: list[bytes], codes: list[bytes]) -> Part:
    size = len(record.model_dump_json().encode()) + sum(map(len, blobs)) + sum(map(len, codes))
    return Part(record, blobs, codes, size)


def _without_vectors(part: Part) -> Part:
    """Return an over-large document without vectors and codes.

    They are made again after the import.

    Raises:
        TooLarge: Its text alone is.
    """
    bare = _part(part.record.model_copy(update={"vectors": [], "codes": []}), [], [])
    if bare.size > ROOM_BYTES:
        raise TooLarge(
            f"document {part.record.doc_id!r} takes {bare.size:,} bytes; a block of a bundle holds"
            f" {ROOM_BYTES:,}"
        )
    return bare
