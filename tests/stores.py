"""Real stores, for tests of what feeds them: of documents, answers, conversations, findings, accounts."""

from __future__ import annotations

import atexit
import hashlib
import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

from app.core.ids import document_id
from app.core.ports import Embedder
from app.core.types import (
    Chunk,
    ChunkSpan,
    Document,
    DocumentDraft,
    FloatArray,
    Library,
    Metadata,
    Passage,
    WriteResult,
)
from app.ingest.embedding import VectorBackfill, fingerprint_of
from app.ingest.options import IngestOptions
from app.storage.catalog.answers import AnswerStore
from app.storage.catalog.database import Database
from app.storage.catalog.ledger import BulkLedger
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.writer import CatalogIndexWriter

_NUMBERS = itertools.count()
OPENED: list[IndexStore | Database] = []
"""What tests have open, in the order in which it was opened."""
_SHELVES: dict[str, IndexStore] = {}


def close_opened(but: int = 0) -> None:
    """Close all but the first of what is open; a store has ten threads."""
    while len(OPENED) > but:
        OPENED.pop().close()


@cache
def _folder() -> Path:
    """Return this process's folder; it goes when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="documind-catalogs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(close_opened)
    return folder


@cache
def _empty() -> bytes:
    path = _folder() / "empty.sqlite3"
    SqliteDatabase(path, Steps()).close()
    return path.read_bytes()


def catalog_file() -> Path:
    """Return an empty catalog of its own, copied from one that was made once."""
    path = _folder() / f"catalog{next(_NUMBERS)}.sqlite3"
    path.write_bytes(_empty())
    return path


def catalog_database() -> Database:
    OPENED.append(database := SqliteDatabase(catalog_file(), Steps()))
    return database


def catalog_with_documents_of(store: IndexStore) -> Database:
    """Return a catalog of its own that has the documents of a store, to write to."""
    path = _folder() / f"catalog{next(_NUMBERS)}.sqlite3"
    source = sqlite3.connect(store.options.data_dir / "catalog.sqlite3")
    with closing(source), closing(sqlite3.connect(path)) as copy:
        source.backup(copy)
    OPENED.append(database := SqliteDatabase(path, Steps()))
    return database


def passage(
    text: str,
    *,
    key: str = "doc",
    library: Library = Library.PAPERS,
    ordinal: int = 0,
    chunk_id: int | None = None,
    title: str | None = None,
    section: str = "body",
    start: int = 0,
    revision: int = 1,
    flags: tuple[str, ...] = (),
) -> Passage:
    """Return a live chunk with its document; the chunk's text is the document's text from `start` on."""
    doc_id = document_id(library, key)
    chunk = Chunk(
        chunk_id=chunk_id if chunk_id is not None else int(doc_id[:6], 16) * 100 + ordinal,
        doc_id=doc_id,
        library=library,
        revision=revision,
        ordinal=ordinal,
        start=start,
        end=start + len(text),
        section=section,
        page=None,
        text=text,
    )
    document = Document(
        doc_id=doc_id,
        library=library,
        source_key=key,
        revision=revision,
        sha256="0" * 64,
        title=title or key.replace("-", " ").title(),
        authors=("A. Writer",),
        year=2024,
        type="text",
        state="live",
        characters=start + len(text),
        pages=0,
        chunks=1,
        embedded=1,
        duplicate_of=None,
        source_url=None,
        licence=None,
        added_at="2026-01-01T00:00:00Z",
        updated_at="2026-01-01T00:00:00Z",
        filename=f"{key}.txt",
        flags=flags,
    )
    return Passage(chunk, document)


def kept_answers(store: AnswerStore) -> list[str]:
    """Return the ids of the answers that a store keeps, newest first."""
    return [str(record["answer_id"]) for record in store.list()]


class OpenWriter(CatalogIndexWriter):
    """The writer of a store in a folder of its own, and what tests look at in it."""

    def __init__(self, search_url: str = "") -> None:
        folder = _folder() / f"store{next(_NUMBERS)}"
        folder.mkdir()
        (folder / "catalog.sqlite3").write_bytes(_empty())
        options = IndexOptions(
            folder,
            folder / "chroma",
            search_url=search_url,
            tantivy_threads=1,
            tantivy_heap_bytes=15_000_000,
        )
        self.opened = store = IndexStore(options, vector_store="off")
        OPENED.append(store)
        parts = store.database, store.catalog, store.projector, store.originals
        super().__init__(*parts, store.builds)
        self.ledger = BulkLedger(store.database)
        self.batches: list[int] = []
        """Sizes of write() calls."""

    def write(self, drafts: Sequence[DocumentDraft]) -> list[WriteResult]:
        self.batches.append(len(drafts))
        return super().write(drafts)

    def documents(self, library: Library) -> list[Document]:
        """Live documents in order of their first write."""
        found, cursor = self.opened.catalog.documents(library, limit=1000)
        while cursor is not None:
            more, cursor = self.opened.catalog.documents(library, cursor=cursor, limit=1000)
            found += more
        return found[::-1]

    def text(self, library: Library, source_key: str) -> str:
        document = self.current(library, source_key)
        return "" if document is None else self.opened.catalog.text(library, document.doc_id).text

    @property
    def chunks(self) -> dict[int, Chunk]:
        return {
            chunk.chunk_id: chunk
            for library in Library
            for document in self.documents(library)
            for chunk in self.opened.catalog.chunks(library, document.doc_id)
        }

    @property
    def vectors(self) -> dict[int, FloatArray]:
        ids = list(self.chunks)
        return {
            chunk_id: row
            for library in Library
            for chunk_id, row in self.opened.vectors.fetch(library, ids).items()
        }

    def shelve(self, passages: Sequence[Passage], embedder: Embedder | None = None) -> None:
        """Write the documents of passages, each of their texts a chunk; embed them where asked."""
        held: dict[str, list[Passage]] = {}
        for one in passages:
            held.setdefault(one.document.doc_id, []).append(one)
        self.write([_draft(some) for some in held.values()])
        if embedder is not None:
            for library in {one.document.library for one in passages}:
                options = IngestOptions()
                self.claim(library, fingerprint_of(embedder.identity, options))
                VectorBackfill(self, embedder, options).run(library)


def _draft(passages: Sequence[Passage]) -> DocumentDraft:
    document, text, spans = passages[0].document, "", []
    for ordinal, one in enumerate(passages):
        start = max(len(text), one.chunk.start)
        text = text.ljust(start) + one.chunk.text
        spans.append(ChunkSpan(ordinal, start, len(text), one.chunk.section))
    facts = Metadata(document.title, document.authors, document.year, language=document.language)
    return DocumentDraft(
        document.library, document.doc_id, document.source_key, document.filename,
        hashlib.sha256(text.encode()).hexdigest(), document.type, text, facts, tuple(spans),
        flags=document.flags,
    )  # fmt: skip


def shelved(
    *passages: Passage, embedder: Embedder | None = None, bare: Sequence[Passage] = ()
) -> IndexStore:
    """Return an open store of these passages, to be read only: tests of the same share it.

    With an embedder, they have vectors, all but the `bare` ones. The last few stores stay open.
    """
    key = repr((passages, bare, embedder and embedder.identity))
    if key not in _SHELVES:
        writer = OpenWriter()
        OPENED.remove(writer.opened)
        writer.shelve(passages, embedder)
        writer.shelve(bare)
        _SHELVES[key] = writer.opened
        if len(_SHELVES) > 6:
            _SHELVES.pop(next(iter(_SHELVES))).close()
    return _SHELVES[key]
