"""A fixed sequence of storage operations that notes what was acknowledged, and a checker that holds a store to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app.core.ids import content_sha256, fingerprint8
from app.core.text import words
from app.core.types import Library, Metadata
from app.core.vectors import cosine_distances
from app.index.options import IndexOptions
from app.index.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.unit.index.drafts import DIMENSION, FINGERPRINT, make_draft

PAPERS = Library.PAPERS
COLLECTION = f"papers__{fingerprint8(FINGERPRINT)}"
EMBEDDER = HashEmbedder(DIMENSION)


def crash_options(data: Path) -> IndexOptions:
    """A small store whose Chroma is searched too."""
    return IndexOptions(data, data / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)


@dataclass
class Journal:
    """What the workload was promised: one JSON line per fact, on disk before the next operation begins."""

    path: Path
    live: dict[str, list[str]] = field(default_factory=dict)
    """Acknowledged texts by source key; two while a replacement is under way; empty text while a first write or a deletion is."""
    embedded: set[str] = field(default_factory=set)
    """Source keys whose vectors were acknowledged."""

    def note(self, kind: str, key: str, text: str = "") -> None:
        with self.path.open("a") as file:
            file.write(json.dumps([kind, key, text]) + "\n")
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, path: Path) -> Journal:
        journal = cls(path)
        lines = path.read_text().splitlines() if path.exists() else []
        for line in lines:
            kind, key, text = json.loads(line)
            journal.apply(kind, key, text)
        return journal

    def apply(self, kind: str, key: str, text: str) -> None:
        if kind in ("write?", "delete?"):
            self.live[key] = [*self.live.get(key, [""]), text]
            self.embedded.discard(key)
        elif kind in ("write", "delete"):
            self.live[key] = [text]
        elif kind == "embed":
            self.embedded.add(key)


def text_of(name: str, revision: int) -> str:
    """A text whose two chunks each hold a word nothing else holds."""
    return f"{name}{revision}alpha grows in the first half of it. " + f"{name}{revision}omega grows in the second half of it."


def run(data: Path, journal_path: Path, crash_at: int | None) -> int:
    """Run all operations; return how many steps were reached."""
    journal = Journal(journal_path)
    with IndexStore(crash_options(data), crash_at=crash_at, vector_store="foreground") as store:
        for operation in operations(store, journal):
            operation()
        return store.steps.reached


def operations(store: IndexStore, journal: Journal) -> list[Callable[[], None]]:
    """What is done, in order."""

    def write(*names: tuple[str, int]) -> Callable[[], None]:
        def do() -> None:
            for name, revision in names:
                journal.note("write?", name, text_of(name, revision))
            drafts = []
            for name, revision in names:
                text = text_of(name, revision)
                sha256 = store.writer.store_original(text.encode())
                drafts.append(make_draft(name, text, has_original=True, sha256=sha256))
            store.writer.write(drafts)
            for name, revision in names:
                journal.note("write", name, text_of(name, revision))

        return do

    def embed() -> None:
        store.writer.claim(PAPERS, FINGERPRINT)
        chunks = store.writer.pending_vectors(PAPERS, 100)
        if chunks:
            store.writer.write_vectors(PAPERS, [c.chunk_id for c in chunks], EMBEDDER.embed_passages([c.text for c in chunks]))
        store.writer.apply(PAPERS)
        for document in store.catalog.documents(PAPERS)[0]:
            journal.note("embed", document.source_key)

    def delete(name: str) -> Callable[[], None]:
        def do() -> None:
            document = store.writer.current(PAPERS, name)
            journal.note("delete?", name, "")
            if document is not None:
                store.writer.delete(PAPERS, document.doc_id)
            journal.note("delete", name, "")

        return do

    def correct() -> None:
        document = store.writer.current(PAPERS, "bee")
        if document is not None:
            store.writer.correct(PAPERS, document.doc_id, Metadata("Corrected title", ("Ann Li",), 2001))

    def state() -> None:
        store.jobs.create("crash", {})
        talk = store.conversations.create("crash")
        store.conversations.delete(talk)

    return [
        write(("ant", 1), ("bee", 1)), embed, write(("cat", 1)), write(("ant", 2)), embed, correct, delete("cat"), state, embed,
    ]  # fmt: skip


def check(data: Path, journal_path: Path) -> list[str]:
    """Open the store as a fresh process would and return every promise it breaks."""
    journal = Journal.read(journal_path)
    broken: list[str] = []
    with IndexStore(crash_options(data), vector_store="foreground") as store:
        counts = store.catalog.counts(PAPERS)
        documents = {document.source_key: document for document in store.catalog.documents(PAPERS)[0]}
        for key, texts in journal.live.items():
            found = store.catalog.text(PAPERS, documents[key].doc_id).text if key in documents else ""
            if found not in texts:
                broken.append(f"{key}: {found!r} is none of {texts}")
            if found:
                broken += _check_document(store, key, documents[key].doc_id, found, embedded=key in journal.embedded)
        broken += [f"{key}: a phantom" for key in documents if key not in journal.live]
        if sum(document.chunks for document in documents.values()) != counts.chunks or counts.documents != len(documents):
            broken.append(f"counters say {counts}")
        if store.vectors.count(PAPERS) != counts.embedded:
            broken.append(f"{store.vectors.count(PAPERS)} vectors can be searched, the catalog has {counts.embedded}")
        if store.database.check():
            broken.append(f"the catalog is damaged: {store.database.check()}")
        held = store.catalog.original_names()
        on_disk = {path.stem for path in (data / "originals").iterdir()}
        if held != on_disk:
            broken.append(f"originals {on_disk} for {held}")
    return broken


def _check_document(store: IndexStore, key: str, doc_id: str, text: str, *, embedded: bool) -> list[str]:
    broken: list[str] = []
    if content_sha256(store.catalog.original(PAPERS, doc_id)) != content_sha256(text.encode()):
        broken.append(f"{key}: the original is not what was sent")
    for chunk in store.catalog.chunks(PAPERS, doc_id):
        word = next(word for word in words(chunk.text) if word.startswith(key))
        hits = [hit.chunk_id for hit in store.lexical.search(PAPERS, word, 10)]
        if hits != [chunk.chunk_id]:
            broken.append(f"{key}: a search for {word!r} finds {hits}, not {chunk.chunk_id}")
        if embedded:
            query = EMBEDDER.embed_query(chunk.text)
            rows = store.vectors.fetch(PAPERS, [chunk.chunk_id])
            if chunk.chunk_id not in rows or float(cosine_distances(query, rows[chunk.chunk_id][None])[0]) > 1e-3:
                broken.append(f"{key}: chunk {chunk.chunk_id} lost its vector")
            for name, found in (
                ("dense search", store.vectors.search(PAPERS, query, 1)),
                ("chroma", store.chroma.query(COLLECTION, query, 1)),
            ):
                if not found or found[0].chunk_id != chunk.chunk_id:
                    broken.append(f"{key}: {name} finds {found} for the vector of chunk {chunk.chunk_id}")
    return broken
