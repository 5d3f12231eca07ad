"""Write one library as one file, and import it; importing embeds nothing.

Live texts, chunks, vectors, metadata, originals, fingerprint. An import checks the whole file
before it writes, then goes batch by batch; run again after an interruption it skips
existing documents.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from sqlalchemy import Select, and_, select

from app.core.errors import Conflict, FingerprintMismatch, NotFound, TooLarge
from app.core.ids import fingerprint8
from app.core.languages import language_of
from app.core.types import (
    CODES_VERSION,
    STATE_DIMENSION,
    TOKEN_BITS,
    ChunkSpan,
    Document,
    DocumentDraft,
    Fingerprint,
    Library,
    Metadata,
    PageSpan,
    PassageCode,
)
from app.storage.catalog.database import Database
from app.storage.catalog.documents import SqliteCatalog
from app.storage.catalog.passage_codes import PassageCodeStore
from app.storage.catalog.reading import CatalogLoader
from app.storage.catalog.rows import Build, usable, vector_key
from app.storage.catalog.schema import (
    OF_REVISION,
    chunks,
    documents,
    key_of,
    passage_codes,
    pieces,
    vectors,
)
from app.storage.catalog.schema import documents as held
from app.storage.files.durable import (
    Steps,
    delete_file,
    disk_errors,
    sync_directory,
    sync_file,
    utc_now,
)
from app.storage.files.originals import Originals
from app.storage.maintenance.bundle_format import (
    BATCH_DOCUMENTS,
    MAGIC,
    MAX_BLOCK_BYTES,
    Block,
    DocumentRecord,
    Documents,
    FingerprintRecord,
    Header,
    Kind,
    Original,
    Trailer,
    code_bytes,
    damaged,
    read_blocks,
    write_block,
)
from app.storage.writer import CatalogIndexWriter

# Check that a bundle's records fit together, and into the store.

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


# Read a library's documents for a bundle, in batches that fit a block.

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


Progress = Callable[[int, int], None]
Inspect = Callable[[str], tuple[str, ...]]
"""Looks at a text and returns flags for the reader."""

_KEPT_FLAGS = re.compile(r"stripped:\d+|recovered")
"""Flags that say how a text was read; all others are looked for again by the importer."""


@dataclass(frozen=True, slots=True)
class Bundler:
    """Exports and imports libraries of one store."""

    database: Database
    catalog: SqliteCatalog
    loader: CatalogLoader
    writer: CatalogIndexWriter
    originals: Originals
    codes: PassageCodeStore
    steps: Steps
    max_original_bytes: int
    """Largest original that is taken in."""

    # --- export

    def export(
        self, library: Library, target: Path, progress: Progress | None = None
    ) -> BundleReport:
        """Write the library into the file `target`, which appears when it is complete.

        Args:
            library: What to export.
            target: The file; one that is there is replaced.
            progress: Called with documents done and in all.

        Raises:
            DiskFull: No space; nothing stays.
        """
        part = target.with_name(target.name + ".part")
        try:
            with disk_errors(target), part.open("wb") as file:
                file.write(MAGIC)
                report = self._write(file, library, progress)
            sync_file(part, self.steps, "bundle.fsync")
        except BaseException:
            delete_file(part, self.steps, "bundle.discard")
            raise
        with self.steps.at("bundle.rename"):
            part.replace(target)
        sync_directory(target.parent, self.steps, "bundle.fsync_directory")
        return report

    def _write(self, file: IO[bytes], library: Library, progress: Progress | None) -> BundleReport:
        fingerprint = self.catalog.fingerprint(library)
        held = FingerprintRecord(**asdict(fingerprint)) if fingerprint else None
        write_block(
            file,
            Block(
                Header(
                    library=library.value,
                    created_at=utc_now(),
                    fingerprint=held,
                    codes=CODES_VERSION,
                )
            ),
        )
        total = self.catalog.counts(library).documents
        counts: Counter[str] = Counter(blocks=1)
        written: set[str] = set()
        reader = BundleReader(self.database, self.catalog, self.loader, self.originals)
        for parts in reader.batches(library):
            records = [part.record for part in parts]
            for sha256 in sorted(
                {record.sha256 for record in records if record.has_original} - written
            ):
                write_block(
                    file, Block(Original(sha256=sha256), self.originals.path(sha256).read_bytes())
                )
                written.add(sha256)
                counts.update(blocks=1)
            write_block(file, Block(Documents(documents=records), _payload(parts)))
            chunks, vectors = count_parts(records)
            counts.update(blocks=1, documents=len(records), chunks=chunks, vectors=vectors)
            if progress is not None:
                progress(counts["documents"], total)
        report = BundleReport(
            library.value,
            counts["documents"],
            counts["chunks"],
            counts["vectors"],
            len(written),
            fingerprint8(fingerprint) if fingerprint else None,
        )
        write_block(file, Block(Trailer(blocks=counts["blocks"], **asdict(report))))
        return report

    # --- import

    def load(
        self,
        source: Path,
        library: Library | None = None,
        progress: Progress | None = None,
        inspect: Inspect = lambda _: (),
    ) -> BundleReport:
        """Add a bundle's documents and vectors to a library.

        Args:
            source: A file that `export` wrote.
            library: Where to; None is the library it came from.
            progress: Called with documents done and in all.
            inspect: Finds flags in each text; what the bundle says of them is not believed.

        Raises:
            InvalidInput: Not a bundle.
            IndexDamaged: A byte or a field is wrong or missing; nothing was written.
            Conflict: A document of the library has the id or the source key of another one; nothing
                was written.
            FingerprintMismatch: The library holds vectors of another model; nothing was written.
            DiskFull: No space; run it again, it goes on.
        """
        check = BundleCheck(source, self.max_original_bytes)
        report, fingerprint = check.run(self.database, library), check.fingerprint
        into = library or Library(report.library)
        held = self.catalog.fingerprint(into)
        if fingerprint is not None:
            if held is not None and held != fingerprint and self.catalog.counts(into).embedded:
                raise FingerprintMismatch(
                    f"the bundle's vectors are of {fingerprint.embedding_model!r}"
                    f" ({fingerprint8(fingerprint)}), library"
                    f" {into.value!r} holds {held.embedding_model!r} ({fingerprint8(held)}):"
                    " import into an empty library,"
                    f" or run: documind reembed --library {into.value}"
                )
            self.writer.claim(into, fingerprint)
        done = 0
        try:
            for block in read_blocks(source, self.max_original_bytes):
                if isinstance(block.record, Original):
                    self.originals.store(block.payload)
                elif isinstance(block.record, Documents):
                    done += self._load_batch(
                        into,
                        block.record.documents,
                        block.payload,
                        fingerprint,
                        inspect,
                        with_codes=check.codes == CODES_VERSION,
                    )
                    if progress is not None:
                        progress(done, report.documents)
        finally:
            self.writer.settle(
                into
            )  # cut short too: what was stored is found, and the next upload does not take its time
        self.writer.apply(into)
        return replace(report, library=into.value)

    def _load_batch(
        self,
        library: Library,
        records: list[DocumentRecord],
        payload: bytes,
        fingerprint: Fingerprint | None,
        inspect: Inspect,
        *,
        with_codes: bool,
    ) -> int:
        results = self.writer.store([_draft(library, record, inspect) for record in records])
        width = 2 * fingerprint.dimension if fingerprint else 0
        blobs: dict[int, bytes] = {}
        codes: dict[int, PassageCode] = {}
        at, code_at = 0, width * sum(len(record.vectors) for record in records)
        for record, result in zip(records, results, strict=True):
            ids = self._chunk_ids(library, result.doc_id)
            for ordinal in record.vectors:
                if ordinal in ids:
                    blobs[ids[ordinal]] = payload[at : at + width]
                at += width
            for sizes in record.codes:
                middle, end = code_at + code_bytes(sizes)[0], code_at + sum(code_bytes(sizes))
                if sizes[0] in ids:
                    codes[ids[sizes[0]]] = PassageCode(payload[code_at:middle], payload[middle:end])
                code_at = end
        if with_codes:
            self.codes.write_codes(codes)
        if blobs:
            self.writer.write_packed_vectors(library, self._without_vector(library, blobs))
        return len(records)

    def _chunk_ids(self, library: Library, doc_id: str) -> dict[int, int]:
        of = (documents.c.library == library.value) & (documents.c.doc_id == doc_id)
        rows = self.database.rows(
            select(chunks.c.ordinal, chunks.c.chunk_id).join(documents, OF_REVISION).where(of)
        )
        return dict(rows)

    def _without_vector(self, library: Library, blobs: dict[int, bytes]) -> dict[int, bytes]:
        build = self.loader.live_build(library)
        if build is None:
            return blobs
        keys = {vector_key(build.number, chunk_id): chunk_id for chunk_id in blobs}
        held = {
            keys[row.key]
            for some in pieces(list(keys))
            for row in self.database.rows(select(vectors.c.key).where(vectors.c.key.in_(some)))
        }
        return {chunk_id: blob for chunk_id, blob in blobs.items() if chunk_id not in held}


def _payload(parts: list[Part]) -> bytes:
    """Return the vectors of a block's documents, then their codes."""
    return b"".join(
        [blob for part in parts for blob in part.blobs]
        + [blob for part in parts for blob in part.codes]
    )


def _draft(library: Library, record: DocumentRecord, inspect: Inspect) -> DocumentDraft:
    return DocumentDraft(
        library=library,
        doc_id=record.doc_id,
        source_key=record.source_key,
        filename=record.filename,
        sha256=record.sha256,
        type=record.type,
        text=record.text,
        metadata=Metadata(
            record.title,
            tuple(record.authors),
            record.year,
            record.arxiv_id,
            record.language or language_of(record.text),
        ),
        chunks=tuple(ChunkSpan(*chunk) for chunk in record.chunks),
        pages=tuple(PageSpan(*page) for page in record.pages),
        source_url=record.source_url,
        licence=record.licence,
        flags=(
            *inspect(record.text),
            *(flag for flag in record.flags if _KEPT_FLAGS.fullmatch(flag)),
        ),
        has_original=record.has_original,
        source_revision=record.source_revision,
    )
