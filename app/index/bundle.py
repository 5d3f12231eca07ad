"""One library as one file: live texts, chunks, vectors, metadata, originals, fingerprint. Importing embeds nothing.

An import checks the whole file before it writes, then goes batch by batch; run again after an interruption it skips what is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, TypedDict, cast

from app.core.errors import FingerprintMismatch, NotFound
from app.core.ids import fingerprint8
from app.core.types import ChunkSpan, Document, DocumentDraft, Fingerprint, Library, Metadata, PageSpan
from app.index.bundle_file import MAGIC, Block, read_blocks, write_block
from app.index.catalog import SqliteCatalog
from app.index.database import Database
from app.index.durable import disk_errors, remove_file, sync_directory, sync_file, utc_now
from app.index.loading import CatalogLoader
from app.index.originals import Originals
from app.index.rows import id_list
from app.index.schema import BUILD_SHIFT
from app.index.steps import Steps
from app.index.writer import CatalogIndexWriter

BATCH_DOCUMENTS = 100
"""Documents per block and per transaction."""

Progress = Callable[[int, int], None]


class DocumentRecord(TypedDict):
    """A document as a bundle holds it; `vectors` are the ordinals of chunks whose vectors follow in the payload, in order."""

    doc_id: str
    source_key: str
    filename: str
    sha256: str
    type: str
    text: str
    title: str
    authors: list[str]
    year: int | None
    arxiv_id: str | None
    chunks: list[list[object]]
    pages: list[list[int]]
    source_url: str | None
    licence: str | None
    flags: list[str]
    has_original: bool
    source_revision: str | None
    vectors: list[int]


@dataclass(frozen=True, slots=True)
class BundleReport:
    """What a bundle holds, or what an import found in it."""

    library: str
    documents: int
    chunks: int
    vectors: int
    originals: int
    fingerprint: str | None
    """Eight hex digits; None when nothing is embedded."""


@dataclass(frozen=True, slots=True)
class Bundler:
    """Exports and imports libraries of one store."""

    database: Database
    catalog: SqliteCatalog
    loader: CatalogLoader
    writer: CatalogIndexWriter
    originals: Originals
    steps: Steps

    # --- export

    def export(self, library: Library, target: Path, progress: Progress | None = None) -> BundleReport:
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
            remove_file(part, self.steps, "bundle.discard")
            raise
        with self.steps.at("bundle.rename"):
            part.replace(target)
        sync_directory(target.parent, self.steps, "bundle.fsync_directory")
        return report

    def _write(self, file: IO[bytes], library: Library, progress: Progress | None) -> BundleReport:
        fingerprint = self.catalog.fingerprint(library)
        held = asdict(fingerprint) if fingerprint else None
        write_block(file, Block({"kind": "header", "library": library.value, "created_at": utc_now(), "fingerprint": held}))
        total = self.catalog.counts(library).documents
        counts: Counter[str] = Counter(blocks=1)
        for records, payload, shas in self._batches(library):
            for path in (self.originals.path(sha256) for sha256 in shas):
                if path.exists():
                    write_block(file, Block({"kind": "original", "sha256": path.stem}, path.read_bytes()))
                    counts.update(originals=1, blocks=1)
            write_block(file, Block({"kind": "documents", "documents": records}, payload))
            counts.update(
                blocks=1,
                documents=len(records),
                chunks=sum(len(record["chunks"]) for record in records),
                vectors=sum(len(record["vectors"]) for record in records),
            )
            if progress is not None:
                progress(counts["documents"], total)
        report = BundleReport(
            library.value,
            counts["documents"],
            counts["chunks"],
            counts["vectors"],
            counts["originals"],
            fingerprint8(fingerprint) if fingerprint else None,
        )
        write_block(file, Block({"kind": "trailer", "blocks": counts["blocks"], **asdict(report)}))
        return report

    def _batches(self, library: Library) -> Iterator[tuple[list[DocumentRecord], bytes, list[str]]]:
        after = 0
        build = self.loader.live_build(library)
        while docs := self.loader.live_docs(library, after, BATCH_DOCUMENTS):
            records: list[DocumentRecord] = []
            blobs: list[bytes] = []
            shas: list[str] = []
            for document, source_revision in self.loader.live_documents(docs):
                held = self._vectors(library, document, build.number) if build else []
                try:
                    records.append(self._record(document, source_revision, [ordinal for ordinal, _ in held]))
                except NotFound:
                    continue  # deleted meanwhile
                blobs += [blob for _, blob in held]
                if document.has_original:
                    shas.append(document.sha256)
            yield records, b"".join(blobs), sorted(set(shas))
            after = docs[-1]

    def _record(self, document: Document, source_revision: str | None, vectors: list[int]) -> DocumentRecord:
        library, doc_id, revision = document.library, document.doc_id, document.revision
        chunks = self.catalog.chunks(library, doc_id, revision)
        return {
            "doc_id": document.doc_id,
            "source_key": document.source_key,
            "filename": document.filename,
            "sha256": document.sha256,
            "type": document.type,
            "text": self.catalog.text(library, doc_id, revision=revision).text,
            "title": document.title,
            "authors": list(document.authors),
            "year": document.year,
            "arxiv_id": document.arxiv_id,
            "chunks": [[chunk.ordinal, chunk.start, chunk.end, chunk.section, chunk.page] for chunk in chunks],
            "pages": [[page.number, page.start, page.end] for page in self.catalog.pages(library, doc_id, revision)],
            "source_url": document.source_url,
            "licence": document.licence,
            "flags": list(document.flags),
            "has_original": document.has_original,
            "source_revision": source_revision,
            "vectors": vectors,
        }

    def _vectors(self, library: Library, document: Document, build: int) -> list[tuple[int, bytes]]:
        with self.database.read_raw() as cursor:
            return cursor.execute(
                "SELECT c.ordinal, v.vector FROM documents d JOIN chunks c ON c.doc = d.doc AND c.revision = ?"
                " JOIN vectors v ON v.key = ? | c.chunk_id WHERE d.library = ? AND d.doc_id = ? ORDER BY c.ordinal",
                (document.revision, build << BUILD_SHIFT, library.value, document.doc_id),
            ).fetchall()

    # --- import

    def load(self, source: Path, library: Library | None = None, progress: Progress | None = None) -> BundleReport:
        """Add a bundle's documents and vectors to a library.

        Args:
            source: A file that `export` wrote.
            library: Where to; None is the library it came from.
            progress: Called with documents done and in all.

        Raises:
            InvalidInput: Not a bundle.
            IndexDamaged: A byte is wrong or missing; nothing was written.
            FingerprintMismatch: The library holds vectors of another model; nothing was written.
            DiskFull: No space; run it again, it goes on.
        """
        report, fingerprint = self._verify(source)
        into = library or Library(report.library)
        held = self.catalog.fingerprint(into)
        if fingerprint is not None:
            if held is not None and held != fingerprint and self.catalog.counts(into).embedded:
                raise FingerprintMismatch(
                    f"the bundle's vectors are of {fingerprint.embedding_model!r} ({fingerprint8(fingerprint)}), library"
                    f" {into.value!r} holds {held.embedding_model!r} ({fingerprint8(held)}): import into an empty library,"
                    f" or run: documind reembed --library {into.value}"
                )
            self.writer.claim(into, fingerprint)
        done = 0
        try:
            for block in read_blocks(source):
                if block.kind == "original":
                    self.originals.store(block.payload)
                elif block.kind == "documents":
                    done += self._load_batch(into, block, fingerprint)
                    if progress is not None:
                        progress(done, report.documents)
        finally:
            self.writer.settle(into)  # cut short too: what was stored is found, and the next upload does not take its time
        self.writer.apply(into)
        return report

    def _verify(self, source: Path) -> tuple[BundleReport, Fingerprint | None]:
        """Read the whole file once, so that damage is found before anything is written."""
        fingerprint: Fingerprint | None = None
        report = BundleReport("", 0, 0, 0, 0, None)
        try:
            for block in read_blocks(source):
                if block.kind == "header" and block.fields["fingerprint"] is not None:
                    fingerprint = Fingerprint(**cast("dict[str, Any]", block.fields["fingerprint"]))
                if block.kind == "trailer":
                    fields = {name: block.fields[name] for name in BundleReport.__dataclass_fields__}
                    report = BundleReport(**cast("dict[str, Any]", fields))
        except FileNotFoundError as exc:
            raise NotFound(f"no file {str(source)!r} to import") from exc
        return report, fingerprint

    def _load_batch(self, library: Library, block: Block, fingerprint: Fingerprint | None) -> int:
        records = cast("list[DocumentRecord]", block.fields["documents"])
        results = self.writer.store([_draft(library, record) for record in records])
        width = 2 * fingerprint.dimension if fingerprint else 0
        blobs: dict[int, bytes] = {}
        at = 0
        for record, result in zip(records, results, strict=True):
            ids = self._chunk_ids(library, result.doc_id)
            for ordinal in record["vectors"]:
                if ordinal in ids:
                    blobs[ids[ordinal]] = block.payload[at : at + width]
                at += width
        if blobs:
            self.writer.write_packed_vectors(library, self._without_vector(library, blobs))
        return len(records)

    def _chunk_ids(self, library: Library, doc_id: str) -> dict[int, int]:
        with self.database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT c.ordinal, c.chunk_id FROM documents d JOIN chunks c ON c.doc = d.doc AND c.revision = d.revision"
                " WHERE d.library = ? AND d.doc_id = ?",
                (library.value, doc_id),
            ).fetchall()
        return dict(rows)

    def _without_vector(self, library: Library, blobs: dict[int, bytes]) -> dict[int, bytes]:
        build = self.loader.live_build(library)
        if build is None:
            return blobs
        with self.database.read_raw() as cursor:
            rows = cursor.execute(
                "SELECT k.value FROM json_each(?) k CROSS JOIN vectors v ON v.key = ? | k.value",
                (id_list(list(blobs)), build.number << BUILD_SHIFT),
            ).fetchall()
        held = {row[0] for row in rows}
        return {chunk_id: blob for chunk_id, blob in blobs.items() if chunk_id not in held}


def _draft(library: Library, record: DocumentRecord) -> DocumentDraft:
    return DocumentDraft(
        library=library,
        doc_id=record["doc_id"],
        source_key=record["source_key"],
        filename=record["filename"],
        sha256=record["sha256"],
        type=record["type"],
        text=record["text"],
        metadata=Metadata(record["title"], tuple(record["authors"]), record["year"], record["arxiv_id"]),
        chunks=tuple(ChunkSpan(*cast("tuple[Any, ...]", chunk)) for chunk in record["chunks"]),
        pages=tuple(PageSpan(*page) for page in record["pages"]),
        source_url=record["source_url"],
        licence=record["licence"],
        flags=tuple(record["flags"]),
        has_original=record["has_original"],
        source_revision=record["source_revision"],
    )
