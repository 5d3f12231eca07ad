"""Write one library as one file, and import it; importing embeds nothing.

Live texts, chunks, vectors, metadata, originals, fingerprint. An import checks the whole file
before it writes, then goes batch by batch; run again after an interruption it skips
existing documents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from sqlalchemy import select

from app.core.errors import FingerprintMismatch
from app.core.ids import fingerprint8
from app.core.languages.detection import language_of
from app.core.types import (
    CODES_VERSION,
    ChunkSpan,
    DocumentDraft,
    Fingerprint,
    Library,
    Metadata,
    PageSpan,
    PassageCode,
)
from app.index.catalog.database import Database
from app.index.catalog.documents import SqliteCatalog
from app.index.catalog.loading import CatalogLoader
from app.index.catalog.passage_codes import PassageCodeStore
from app.index.catalog.rows import vector_key
from app.index.catalog.schema import chunks, documents, vectors
from app.index.catalog.statements import OF_REVISION, pieces
from app.index.files.durable import delete_file, disk_errors, sync_directory, sync_file, utc_now
from app.index.files.originals import Originals
from app.index.files.steps import Steps
from app.index.maintenance.bundle_check import BundleCheck, BundleReport, count_parts
from app.index.maintenance.bundle_file import MAGIC, Block, read_blocks, write_block
from app.index.maintenance.bundle_parts import BundleReader, Part
from app.index.maintenance.bundle_records import (
    DocumentRecord,
    Documents,
    FingerprintRecord,
    Header,
    Original,
    Trailer,
    code_bytes,
)
from app.index.writer import CatalogIndexWriter

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
