"""Write one library as one file, and import it; importing embeds nothing.

Live texts, chunks, vectors, metadata, originals, what OCR read on them, fingerprint. An import
checks the whole file before it writes, then goes batch by batch; run again after an interruption it
skips existing documents.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, replace
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
    Correction,
    Document,
    DocumentDraft,
    DocumentType,
    Fingerprint,
    Heading,
    Labels,
    Library,
    Metadata,
    PageSpan,
    PageWords,
    PassageCode,
)
from app.storage.catalog.database import Database
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
from app.storage.files.durable import delete_file, disk_errors, sync_directory, sync_file, utc_now
from app.storage.maintenance.bundle_format import (
    BATCH_DOCUMENTS,
    MAGIC,
    MAX_BLOCK_BYTES,
    Block,
    DocumentRecord,
    Documents,
    FingerprintRecord,
    Header,
    Original,
    Trailer,
    code_bytes,
    damaged,
    read_blocks,
    write_block,
)
from app.storage.maintenance.parts import Parts

NORM_TOLERANCE = 0.01
"""How far from 1 the norm of a vector may be; float16 rounds by less than 0.001."""

ROOM_BYTES = MAX_BLOCK_BYTES - (1 << 16)
"""What documents may take in a block; the rest is for what surrounds them."""

Progress = Callable[[int, int], None]
Inspect = Callable[[str], tuple[str, ...]]
"""Looks at a text and returns flags for the reader."""

_KEPT_FLAGS = re.compile(r"(?:stripped|ocr|unread|unplaced):\d+|recovered")
"""Flags that say how a text was read; all others are looked for again by the importer."""

_SAME_NAMES = (
    "doc_id source_key filename sha256 title year arxiv_id source_url licence language"
).split()
"""Fields that a document has in the catalog as in a bundle."""


@dataclass(frozen=True, slots=True)
class BundleReport:
    """Counts of a bundle, or of an import; as its trailer has them."""

    library: str
    documents: int
    chunks: int
    vectors: int
    originals: int
    fingerprint: str | None
    """Eight hex digits; None when nothing is embedded."""


def _report(header: Header, counts: Counter[str]) -> BundleReport:
    made_with = _fingerprint(header)
    return BundleReport(
        header.library,
        counts["documents"],
        counts["chunks"],
        counts["vectors"],
        counts["originals"],
        fingerprint8(made_with) if made_with else None,
    )


def _fingerprint(header: Header) -> Fingerprint | None:
    return Fingerprint(**header.fingerprint.model_dump()) if header.fingerprint else None


def _count(counts: Counter[str], records: list[DocumentRecord]) -> None:
    counts.update(
        documents=len(records),
        chunks=sum(len(record.chunks) for record in records),
        vectors=sum(len(record.vectors) for record in records),
    )


# Check that a bundle's records fit together, and into the store.


def check_bundle(
    path: Path, max_original_bytes: int, database: Database, library: Library | None
) -> tuple[Header, BundleReport]:
    """Read every block of a bundle; return its header and what it holds.

    Args:
        path: The file.
        max_original_bytes: Largest original that is taken in.
        database: The catalog it is to go into.
        library: The library it is to go into; None is the one it came from.

    Raises:
        NotFound: There is no such file.
        InvalidInput: Not a bundle.
        IndexDamaged: A block or a field is wrong; the message names both.
        Conflict: A document's id or source key belongs to another document of the library.
    """
    counts: Counter[str] = Counter()
    originals, seen = set[str](), set[str]()
    blocks = read_blocks(path, max_original_bytes)
    try:
        header = cast("Header", next(blocks).record)  # no other is the first
        for number, block in enumerate(blocks, 2):
            record = block.record
            where = f"block {number} ({record.kind})"
            if isinstance(record, Original):
                if hashlib.sha256(block.payload).hexdigest() != record.sha256:
                    raise damaged(path, f"{where}, sha256: the payload has another")
                originals.add(record.sha256)
            elif isinstance(record, Documents):
                wrong = (
                    _repeated(record.documents, seen)
                    or _without_original(record.documents, originals)
                    or _wrong_payload(record.documents, block.payload, header)
                )
                if wrong:
                    raise damaged(path, f"{where}, {wrong}")
                into = library or Library(header.library)
                _refuse_conflicts(database, into, record.documents)
                _count(counts, record.documents)
            elif isinstance(record, Trailer):
                counts["originals"] = len(originals)
                for name, found in asdict(_report(header, counts)).items():
                    if (told := getattr(record, name)) != found:
                        raise damaged(path, f"{where}, {name}: {told!r} for {found!r}")
    except FileNotFoundError as exc:
        raise NotFound(f"no file {str(path)!r} to import") from exc
    return header, _report(header, counts)


def _repeated(records: list[DocumentRecord], seen: set[str]) -> str:
    for n, record in enumerate(records):
        for name in (f"doc_id {record.doc_id}", f"source_key {record.source_key}"):
            if name in seen:
                return f"documents.{n}: {name[:100]} is there twice"
            seen.add(name)
    return ""


def _without_original(records: list[DocumentRecord], originals: set[str]) -> str:
    for n, record in enumerate(records):
        if record.has_original and record.sha256 not in originals:
            return f"documents.{n}.has_original: no block before has the bytes of its sha256"
    return ""


def _wrong_payload(records: list[DocumentRecord], payload: bytes, header: Header) -> str:
    count = sum(len(record.vectors) for record in records)
    code_size = sum(sum(code_bytes(sizes)) for record in records for sizes in record.codes)
    dimension = header.fingerprint.dimension if header.fingerprint else 0
    size = 2 * dimension * count
    if len(payload) != size + code_size or (count and not dimension):
        return (
            f"payload: {len(payload):,} bytes for {count} vectors of {dimension} numbers of 2 bytes"
            f" and {code_size:,} bytes of codes"
        )
    rows = np.frombuffer(payload[:size], dtype="<f2").reshape(count, dimension)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    wrong = np.flatnonzero(~(np.abs(norms - 1) <= NORM_TOLERANCE))  # NaN and infinity are wrong too
    return f"payload: vector {wrong[0]} is not finite and of norm 1" if len(wrong) else ""


def _refuse_conflicts(database: Database, library: Library, records: list[DocumentRecord]) -> None:
    ids = {record.source_key: record.doc_id for record in records}
    keys = {record.doc_id: record.source_key for record in records}
    of = select(documents.c.doc_id, documents.c.source_key)
    of = of.where(documents.c.library == library.value)
    rows = [
        row
        for column, names in ((documents.c.doc_id, keys), (documents.c.source_key, ids))
        for some in pieces(list(names))
        for row in database.rows(of.where(column.in_(some)))
    ]
    for doc_id, source_key in rows:
        if ids.get(source_key, doc_id) != doc_id or keys.get(doc_id, source_key) != source_key:
            raise Conflict(
                f"library {library.value!r} holds {source_key!r} as document {doc_id!r}, the bundle"
                " does not: delete that first; nothing was imported"
            )


@dataclass(frozen=True, slots=True)
class _Entry:
    """A document on its way into a block."""

    record: DocumentRecord
    vectors: bytes = b""
    """Rows of float16 in the order of the record's `vectors`."""
    codes: bytes = b""
    """In the order of the record's `codes`; of each the sentences, then the tokens."""

    def size(self) -> int:
        return len(self.record.model_dump_json().encode()) + len(self.vectors) + len(self.codes)


class Bundler(Parts):
    """Exports and imports libraries of one store."""

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
        made_with = self.catalog.fingerprint(library)
        header = Header(
            library=library.value,
            created_at=utc_now(),
            fingerprint=FingerprintRecord(**asdict(made_with)) if made_with else None,
            codes=CODES_VERSION,
        )
        write_block(file, Block(header))
        total = self.catalog.counts(library).documents
        counts: Counter[str] = Counter(blocks=1)
        written = set[str]()
        for entries in self._batches(library):
            records = [entry.record for entry in entries]
            for sha256 in sorted({r.sha256 for r in records if r.has_original} - written):
                content = self.originals.path(sha256).read_bytes()
                write_block(file, Block(Original(sha256=sha256), content))
                written.add(sha256)
            payload = [entry.vectors for entry in entries] + [entry.codes for entry in entries]
            write_block(file, Block(Documents(documents=records), b"".join(payload)))
            _count(counts, records)
            counts["blocks"] += 1
            if progress is not None:
                progress(counts["documents"], total)
        counts["originals"] = len(written)
        report = _report(header, counts)
        blocks = counts["blocks"] + len(written)
        write_block(file, Block(Trailer(blocks=blocks, **asdict(report))))
        return report

    def _batches(self, library: Library) -> Iterator[list[_Entry]]:
        """Yield live documents for one block at a time, within its limits.

        Raises:
            TooLarge: The text of one alone is.
        """
        batch: list[_Entry] = []
        size = 0
        for entry in self._entries(library):
            if (taken := entry.size()) > ROOM_BYTES:
                # Vectors and codes are made again after the import, words when it is sent again.
                bare = entry.record.model_copy(update={"vectors": [], "codes": [], "words": []})
                entry = _Entry(bare)  # noqa: PLW2901
                if (taken := entry.size()) > ROOM_BYTES:
                    raise TooLarge(
                        f"document {bare.doc_id!r} takes {taken:,} bytes; a block of a bundle holds"
                        f" {ROOM_BYTES:,}"
                    )
            if len(batch) == BATCH_DOCUMENTS or (batch and size + taken > ROOM_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(entry)
            size += taken
        if batch:
            yield batch

    def _entries(self, library: Library) -> Iterator[_Entry]:
        build = self.loader.live_build(library)
        for docs in self.loader.live_docs(library, BATCH_DOCUMENTS):
            for document, source_revision in self.loader.live_documents(docs):
                rows = self._vectors(document, build) if build else []
                columns = chunks.c.ordinal, passage_codes.c.sentences, passage_codes.c.tokens
                has = passage_codes.c.chunk_id == chunks.c.chunk_id
                codes = self.database.rows(_of(select(*columns).join(passage_codes, has), document))
                of = {
                    "source_revision": source_revision,
                    "vectors": [ordinal for ordinal, _ in rows],
                    "codes": [
                        (n, len(s) // STATE_DIMENSION, len(t) * 8 // TOKEN_BITS)
                        for n, s, t in codes
                    ],
                }
                try:
                    record = self._record(document).model_copy(update=of)
                except NotFound:
                    continue  # deleted while we read
                packed = b"".join(part for _, *pair in codes for part in pair)
                yield _Entry(record, b"".join(row for _, row in rows), packed)

    def _record(self, document: Document) -> DocumentRecord:
        library, doc_id, revision = document.library, document.doc_id, document.revision
        has_original = document.has_original and self.originals.exists(document.sha256)
        return DocumentRecord.model_construct(
            **{name: getattr(document, name) for name in _SAME_NAMES},
            type=cast("DocumentType", document.type),
            text=self.catalog.text(library, doc_id, revision=revision).text,
            authors=list(document.authors),
            chunks=[
                (chunk.ordinal, chunk.start, chunk.end, chunk.section, chunk.page)
                for chunk in self.catalog.chunks(library, doc_id, revision)
            ],
            pages=[astuple(page) for page in self.catalog.pages(library, doc_id, revision)],
            outline=[
                (heading.start, heading.end, heading.level)
                for heading in self.catalog.outline(library, doc_id, revision)
            ],
            corrections=[
                astuple(one) for one in self.catalog.corrections(library, doc_id, revision)
            ],
            flags=list(document.flags),
            tags=list(document.tags),
            metadata=dict(document.metadata),
            has_original=has_original,
            words=[
                (page.page, page.width, page.height, [list(line) for line in page.lines])
                for page in (self.writer.page_words(document.sha256) if has_original else ())
            ],
        )

    def _vectors(self, document: Document, build: Build) -> list[tuple[int, bytes]]:
        has = vectors.c.key == key_of(build.number)
        found = _of(select(chunks.c.ordinal, vectors.c.vector).join(vectors, has), document)
        rows = [(row.ordinal, row.vector) for row in self.database.rows(found)]
        fit = usable([row for _, row in rows], build.dimension)
        return [row for row, good in zip(rows, fit, strict=True) if good]

    # --- import

    def load(
        self,
        source: Path,
        library: Library | None = None,
        progress: Progress | None = None,
        inspect: Inspect = lambda _: (),
        job_id: str = "",
    ) -> BundleReport:
        """Add a bundle's documents and vectors to a library.

        Args:
            source: A file that `export` wrote.
            library: Where to; None is the library it came from.
            progress: Called with documents done and in all.
            inspect: Finds flags in each text; what the bundle says of them is not believed.
            job_id: The job that imports it; documents that were deleted or replaced after that are
                left out.

        Raises:
            InvalidInput: Not a bundle.
            IndexDamaged: A byte or a field is wrong or missing; nothing was written.
            Conflict: A document of the library has the id or the source key of another one; nothing
                was written.
            FingerprintMismatch: The library holds vectors of another model; nothing was written.
            DiskFull: No space; run it again, it goes on.
            Superseded: The library was cleared after the job was accepted.
        """
        most = self.options.max_file_bytes
        header, report = check_bundle(source, most, self.database, library)
        into = library or Library(report.library)
        held, fingerprint = self.catalog.fingerprint(into), _fingerprint(header)
        if fingerprint is not None:
            if held is not None and held != fingerprint and self.catalog.counts(into).embedded:
                raise FingerprintMismatch(
                    f"the bundle's vectors are of {fingerprint.embedding_model!r}"
                    f" ({fingerprint8(fingerprint)}), library {into.value!r} holds"
                    f" {held.embedding_model!r} ({fingerprint8(held)}): import into an empty"
                    f" library, or run: documind reembed --library {into.value}"
                )
            self.writer.claim(into, fingerprint)
        done = 0
        try:
            for block in read_blocks(source, most):
                if isinstance(block.record, Original):
                    self.originals.store(block.payload)
                elif isinstance(block.record, Documents):
                    records = block.record.documents
                    self.writer.store([_draft(into, record, inspect, job_id) for record in records])
                    for record in records:
                        pages = [PageWords.from_json(page) for page in record.words]
                        self.writer.keep_words(record.sha256, pages)
                    self._load_payload(into, records, block.payload, header)
                    done += len(records)
                    if progress is not None:
                        progress(done, report.documents)
        finally:
            # Cut short too: what was stored is found, and the next upload does not take its time.
            self.writer.flush(into)
        self.writer.apply(into)
        return replace(report, library=into.value)

    def _load_payload(
        self, library: Library, records: list[DocumentRecord], payload: bytes, header: Header
    ) -> None:
        """Store vectors of chunks that have none, and codes if they are of this release."""
        width = 2 * header.fingerprint.dimension if header.fingerprint else 0
        blobs: dict[int, bytes] = {}
        codes: dict[int, PassageCode] = {}
        at, code_at = 0, width * sum(len(record.vectors) for record in records)
        for record in records:
            of = and_(documents.c.library == library.value, documents.c.doc_id == record.doc_id)
            columns = select(chunks.c.ordinal, chunks.c.chunk_id)
            ids = dict(self.database.rows(columns.join(documents, OF_REVISION).where(of)))
            for ordinal in record.vectors:
                if ordinal in ids:
                    blobs[ids[ordinal]] = payload[at : at + width]
                at += width
            for sizes in record.codes:
                middle, end = code_at + code_bytes(sizes)[0], code_at + sum(code_bytes(sizes))
                if (chunk_id := ids.get(sizes[0])) is not None:
                    codes[chunk_id] = PassageCode(payload[code_at:middle], payload[middle:end])
                code_at = end
        if header.codes == CODES_VERSION:
            self.codes.write_codes(codes)
        build = self.loader.live_build(library)
        keys = {vector_key(build.number, chunk_id): chunk_id for chunk_id in blobs} if build else {}
        for some in pieces(list(keys)):
            for row in self.database.rows(select(vectors.c.key).where(vectors.c.key.in_(some))):
                del blobs[keys[row.key]]  # it has one
        self.writer.write_packed_vectors(library, blobs)


def _of(query: Select[Any], document: Document) -> Select[Any]:
    """Return a query on chunks for those of a document's revision alone, in order."""
    of = and_(documents.c.library == document.library.value, documents.c.doc_id == document.doc_id)
    return (
        query.join(documents, documents.c.doc == chunks.c.doc)
        .where(of, chunks.c.revision == document.revision)
        .order_by(chunks.c.ordinal)
    )


def _draft(
    library: Library, record: DocumentRecord, inspect: Inspect, job_id: str
) -> DocumentDraft:
    language = record.language or language_of(record.text)
    kept = (flag for flag in record.flags if _KEPT_FLAGS.fullmatch(flag))
    return DocumentDraft(
        library=library,
        doc_id=record.doc_id,
        source_key=record.source_key,
        filename=record.filename,
        sha256=record.sha256,
        type=record.type,
        text=record.text,
        metadata=Metadata(
            record.title, tuple(record.authors), record.year, record.arxiv_id, language
        ),
        chunks=tuple(ChunkSpan(*chunk) for chunk in record.chunks),
        pages=tuple(PageSpan(*page) for page in record.pages),
        headings=tuple(Heading(*heading, "") for heading in record.outline),
        corrections=tuple(Correction(*one) for one in record.corrections),
        source_url=record.source_url,
        licence=record.licence,
        flags=(*inspect(record.text), *kept),
        has_original=record.has_original,
        source_revision=record.source_revision,
        job_id=job_id,
        labels=Labels.of(record.tags or None, record.metadata),
    )
