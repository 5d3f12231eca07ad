"""Check that a bundle's records fit together, and into the store."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import select

from app.core.errors import Conflict, NotFound
from app.core.ids import fingerprint8
from app.core.types import Fingerprint, Library
from app.index.catalog.database import Database
from app.index.catalog.schema import documents as held
from app.index.catalog.statements import pieces
from app.index.maintenance.bundle_file import Block, damaged, read_blocks
from app.index.maintenance.bundle_records import (
    DocumentRecord,
    Documents,
    Header,
    Original,
    Trailer,
    code_bytes,
)

NORM_TOLERANCE = 0.01
"""How far from 1 the norm of a vector may be; float16 rounds by less than 0.001."""


@dataclass(frozen=True, slots=True)
class BundleReport:
    """Counts of a bundle, or of an import."""

    library: str
    documents: int
    chunks: int
    vectors: int
    originals: int
    fingerprint: str | None
    """Eight hex digits; None when nothing is embedded."""


class BundleCheck:
    """Reads a whole bundle and keeps what its blocks have to agree on."""

    def __init__(self, path: Path, max_original_bytes: int) -> None:
        """Check the file `path`; nothing is read yet."""
        self._path = path
        self._max_original_bytes = max_original_bytes
        self._counts: Counter[str] = Counter()
        self._originals: set[str] = set()
        self._seen: set[str] = set()
        self.fingerprint: Fingerprint | None = None
        self.codes: str | None = None
        """Version of the codes; codes of another version are left out and rebuilt."""

    def run(self, database: Database, library: Library | None) -> BundleReport:
        """Return what the bundle says it holds, once every block was read and found right.

        Args:
            database: The catalog it is to go into.
            library: The library it is to go into; None is the one it came from.

        Raises:
            NotFound: There is no such file.
            InvalidInput: Not a bundle.
            IndexDamaged: A block or a field is wrong; the message names both.
            Conflict: A document's id or source key belongs to another document of the library.
        """
        report = BundleReport("", 0, 0, 0, 0, None)
        try:
            for number, block in enumerate(read_blocks(self._path, self._max_original_bytes), 1):
                record = block.record
                self._where = f"block {number} ({record.kind})"
                if isinstance(record, Header):
                    report = self._header(record)
                elif isinstance(record, Original):
                    self._original(record, block.payload)
                elif isinstance(record, Documents):
                    self._documents(record, block)
                    _refuse_conflicts(
                        database, library or Library(report.library), record.documents
                    )
                else:
                    self._trailer(record, report)
        except FileNotFoundError as exc:
            raise NotFound(f"no file {str(self._path)!r} to import") from exc
        return BundleReport(report.library, *self._held(), report.fingerprint)

    def _held(self) -> tuple[int, int, int, int]:
        return (
            self._counts["documents"],
            self._counts["chunks"],
            self._counts["vectors"],
            len(self._originals),
        )

    def _header(self, record: Header) -> BundleReport:
        self.codes = record.codes
        if record.fingerprint is not None:
            self.fingerprint = Fingerprint(**record.fingerprint.model_dump())
        return BundleReport(
            record.library, 0, 0, 0, 0, fingerprint8(self.fingerprint) if self.fingerprint else None
        )

    def _original(self, record: Original, payload: bytes) -> None:
        if hashlib.sha256(payload).hexdigest() != record.sha256:
            raise damaged(self._path, f"{self._where}, sha256: the payload has another")
        self._originals.add(record.sha256)

    def _documents(self, record: Documents, block: Block) -> None:
        for n, document in enumerate(record.documents):
            field = f"{self._where}, documents.{n}"
            for name in (f"doc_id {document.doc_id}", f"source_key {document.source_key}"):
                if name in self._seen:
                    raise damaged(self._path, f"{field}: {name[:100]} is there twice")
                self._seen.add(name)
            if document.has_original and document.sha256 not in self._originals:
                raise damaged(
                    self._path, f"{field}.has_original: no block before has the bytes of its sha256"
                )
        chunks, vectors = count_parts(record.documents)
        self._counts.update(documents=len(record.documents), chunks=chunks, vectors=vectors)
        codes = sum(
            sum(code_bytes(sizes)) for document in record.documents for sizes in document.codes
        )
        self._vectors(vectors, block.payload, codes)

    def _vectors(self, count: int, payload: bytes, code_size: int) -> None:
        dimension = self.fingerprint.dimension if self.fingerprint else 0
        if len(payload) != 2 * dimension * count + code_size or (count and not dimension):
            raise damaged(
                self._path,
                f"{self._where}, payload: {len(payload):,} bytes for {count} vectors of"
                f" {dimension} numbers of 2 bytes"
                f" and {code_size:,} bytes of codes",
            )
        if not count:
            return
        rows = np.frombuffer(payload[: 2 * dimension * count], dtype="<f2").reshape(
            count, dimension
        )
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
        wrong = np.flatnonzero(
            ~(np.abs(norms - 1) <= NORM_TOLERANCE)
        )  # NaN and infinity are wrong too
        if len(wrong):
            raise damaged(
                self._path, f"{self._where}, payload: vector {wrong[0]} is not finite and of norm 1"
            )

    def _trailer(self, record: Trailer, report: BundleReport) -> None:
        names = ("library", "documents", "chunks", "vectors", "originals", "fingerprint")
        for name, found in zip(
            names, (report.library, *self._held(), report.fingerprint), strict=True
        ):
            if getattr(record, name) != found:
                raise damaged(
                    self._path, f"{self._where}, {name}: {getattr(record, name)!r} for {found!r}"
                )


def count_parts(documents: list[DocumentRecord]) -> tuple[int, int]:
    """Return how many chunks and how many vectors documents have."""
    return sum(len(document.chunks) for document in documents), sum(
        len(document.vectors) for document in documents
    )


def _refuse_conflicts(
    database: Database, library: Library, documents: list[DocumentRecord]
) -> None:
    ids = {document.source_key: document.doc_id for document in documents}
    keys = {document.doc_id: document.source_key for document in documents}
    of = select(held.c.doc_id, held.c.source_key).where(held.c.library == library.value)
    rows = [
        row
        for column, names in ((held.c.doc_id, list(keys)), (held.c.source_key, list(ids)))
        for some in pieces(names)
        for row in database.rows(of.where(column.in_(some)))
    ]
    for doc_id, source_key in rows:
        if ids.get(source_key, doc_id) != doc_id or keys.get(doc_id, source_key) != source_key:
            raise Conflict(
                f"library {library.value!r} holds {source_key!r} as document {doc_id!r}, the"
                " bundle does not: delete that first;"
                " nothing was imported"
            )
