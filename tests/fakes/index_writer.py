"""An IndexWriter in memory: dictionaries instead of a catalog, for tests of what feeds it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from app.core.errors import DiskFull, NotFound
from app.core.types import (
    Chunk,
    DeleteResult,
    Document,
    DocumentDraft,
    FloatArray,
    LedgerPage,
    Library,
    Metadata,
    WriteResult,
)
from app.storage.catalog.state import BulkLedger

_AT = "2026-01-01T00:00:00Z"


class MemoryIndexWriter:
    """Keeps live revisions, chunks and vectors; counts calls that tests look at."""

    def __init__(self, ledger: BulkLedger | None = None) -> None:
        """Record pages of `store` in `ledger`."""
        self._ledger = ledger
        self._lock = threading.RLock()
        self._documents: dict[tuple[Library, str], tuple[Document, DocumentDraft]] = {}
        self._next_chunk = 1
        self.chunks: dict[int, Chunk] = {}
        self.vectors: dict[int, FloatArray] = {}
        self.originals: dict[str, bytes] = {}
        self.applied: list[Library] = []
        self.settled: list[Library] = []
        self.links: dict[str, int] = {}
        """Per document how many others link to it."""
        self.batches: list[int] = []
        """Sizes of write() calls."""
        self.fail_write: Exception | None = None
        """Raised by the next write() or store_original(), for example DiskFull."""

    def current(self, library: Library, source_key: str) -> Document | None:
        with self._lock:
            found = self._documents.get((library, source_key))
            return found[0] if found else None

    def source_revision(self, document: Document) -> str | None:
        with self._lock:
            found = self._documents.get((document.library, document.source_key))
            return found[1].source_revision if found else None

    def store_original(self, content: bytes | Path) -> str:
        if isinstance(self.fail_write, DiskFull):
            raise self.fail_write
        data = content if isinstance(content, bytes) else content.read_bytes()
        sha256 = hashlib.sha256(data).hexdigest()
        with self._lock:
            self.originals[sha256] = data
        return sha256

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        with self._lock:
            if self.fail_write is not None:
                raise self.fail_write
            self.batches.append(len(drafts))
            return [self._write_one(draft) for draft in drafts]

    def write_links(
        self,
        library: Library,
        prefix: str,
        links_of: Callable[[str], int],
        titles_of: Callable[[str, str], str],
        after: str = "",
    ) -> str | None:
        with self._lock:
            for (shelf, key), (document, _) in self._documents.items():
                if shelf is library and key.startswith(prefix) and key > after:
                    count = links_of(document.filename)
                    self.links[document.doc_id] = max(count, self.links.get(document.doc_id, 0))
        return None

    def store(
        self, drafts: Sequence[DocumentDraft], page: LedgerPage | None = None
    ) -> list[WriteResult]:
        results = self.write(drafts)
        if page is not None and self._ledger is not None:
            self._ledger.record(page.library, page.source, page.entries)
        return results

    def settle(self, library: Library) -> None:
        with self._lock:
            self.settled.append(library)

    def _write_one(self, draft: DocumentDraft) -> WriteResult:
        key = (draft.library, draft.source_key)
        old = self._documents.get(key)
        if (
            old
            and old[0].sha256 == draft.sha256
            and old[1].source_revision == draft.source_revision
        ):
            return WriteResult(draft.doc_id, old[0].revision, "unchanged", old[0].duplicate_of)
        revision = old[0].revision + 1 if old else 1
        twin = next(
            (
                d.doc_id
                for (lib, k), (d, _) in self._documents.items()
                if lib == draft.library and k != key[1] and d.sha256 == draft.sha256
            ),
            None,
        )
        self._drop_chunks(draft.doc_id)
        for span in draft.chunks:
            text = draft.text[span.start : span.end]
            self.chunks[self._next_chunk] = Chunk(
                self._next_chunk,
                draft.doc_id,
                draft.library,
                revision,
                span.ordinal,
                span.start,
                span.end,
                span.section,
                span.page,
                text,
            )
            self._next_chunk += 1
        document = Document(
            draft.doc_id, draft.library, draft.source_key, revision, draft.sha256, draft.metadata.title, draft.metadata.authors,
            draft.metadata.year, draft.type, "live", len(draft.text), len(draft.pages), len(draft.chunks), 0, twin,
            draft.source_url, draft.licence, _AT, _AT, draft.filename, draft.metadata.arxiv_id, draft.has_original, draft.flags,
        )  # fmt: skip
        self._documents[key] = (document, draft)
        return WriteResult(draft.doc_id, revision, "replaced" if old else "indexed", twin)

    def _drop_chunks(self, doc_id: str) -> int:
        gone = [chunk_id for chunk_id, chunk in self.chunks.items() if chunk.doc_id == doc_id]
        for chunk_id in gone:
            del self.chunks[chunk_id]
            self.vectors.pop(chunk_id, None)
        return len(gone)

    def pending_vectors(
        self, library: Library, limit: int, order: str = "id", doc_ids: Sequence[str] | None = None
    ) -> list[Chunk]:
        with self._lock:
            pending = [
                c for i, c in self.chunks.items() if c.library == library and i not in self.vectors
            ]
        if doc_ids is not None:
            pending = [chunk for chunk in pending if chunk.doc_id in doc_ids]
        if order == "longest":
            pending.sort(key=lambda c: (c.start - c.end, c.chunk_id))
        elif order == "linked":
            pending.sort(key=lambda c: (-self.links.get(c.doc_id, 0), c.chunk_id))
        return pending[:limit]

    def write_vectors(
        self, library: Library, chunk_ids: Sequence[int], vectors: FloatArray
    ) -> None:
        with self._lock:
            for chunk_id, row in zip(chunk_ids, vectors, strict=True):
                if chunk_id in self.chunks:
                    self.vectors[chunk_id] = row

    def apply(self, library: Library) -> None:
        with self._lock:
            self.applied.append(library)

    def delete(self, library: Library, doc_id: str, grace_s: float = 0) -> DeleteResult:
        with self._lock:
            key = self._key(library, doc_id)
            del self._documents[key]
            return DeleteResult(doc_id, self._drop_chunks(doc_id), 0, 0, 0, grace_s == 0)

    def correct(self, library: Library, doc_id: str, metadata: Metadata) -> Document:
        with self._lock:
            key = self._key(library, doc_id)
            document, draft = self._documents[key]
            document = replace(
                document, title=metadata.title, authors=metadata.authors, year=metadata.year
            )
            self._documents[key] = (document, draft)
            return document

    def _key(self, library: Library, doc_id: str) -> tuple[Library, str]:
        for key, (document, _) in self._documents.items():
            if key[0] == library and document.doc_id == doc_id:
                return key
        raise NotFound(f"no document {doc_id!r} in library {library.value!r}")

    # --- what tests look at ---

    def draft(self, library: Library, source_key: str) -> DocumentDraft:
        """The live draft under a source key."""
        return self._documents[library, source_key][1]

    def documents(self, library: Library) -> list[Document]:
        """Live documents in order of their first write."""
        return [document for (lib, _), (document, _) in self._documents.items() if lib == library]
