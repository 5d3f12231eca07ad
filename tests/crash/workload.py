"""A fixed sequence of storage operations that notes what was acknowledged, and a checker that holds a store to it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.core.errors import Superseded
from app.core.ids import content_sha256, document_id, fingerprint8
from app.core.text import words
from app.core.types import LedgerEntry, LedgerPage, Library, Metadata
from app.core.vectors import cosine_distances
from app.storage.catalog.uploads import ORIGINALS
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from app.storage.words import writer as word_queue
from tests.fakes.embedders import HashEmbedder
from tests.unit.storage.drafts import DIMENSION, FINGERPRINT, make_draft

SOURCE = "dump"
"""The bulk source that the articles come from."""
EMBEDDER = HashEmbedder(DIMENSION)


def library_of(key: str) -> Library:
    """Articles of the bulk source are public, files are papers."""
    return Library.PUBLIC if key.startswith("wiki") else Library.PAPERS


def collection(library: Library) -> str:
    """Chroma's name for a library's vectors."""
    return f"{library.value}__{fingerprint8(FINGERPRINT)}"


def crash_options(data: Path) -> IndexOptions:
    """A small store whose Chroma is searched too."""
    return IndexOptions(data, data / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000)


@dataclass
class Journal:
    """What the workload was promised: one JSON line per fact, on disk before the next operation begins."""

    path: Path
    live: dict[str, list[str]] = field(default_factory=dict)
    """Acknowledged texts by source key; two while a replacement is under way; empty text while a
    first write or a deletion is."""
    embedded: set[str] = field(default_factory=set)
    """Source keys whose vectors were acknowledged."""
    late: dict[str, str] = field(default_factory=dict)
    """Jobs by source key that were accepted before the document was deleted, and have not ended."""
    steps: dict[str, int] = field(default_factory=dict)
    """How often each named step was entered by a workload that came to its end."""

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
        elif kind == "late":
            self.late[key] = text
        elif kind == "steps":
            self.steps = json.loads(text)


def text_of(name: str, revision: int) -> str:
    """A text whose two chunks each hold a word nothing else holds."""
    return (
        f"{name}{revision}alpha grows in the first half of it. "
        + f"{name}{revision}omega grows in the second half of it."
    )


def run(data: Path, journal_path: Path, crash_at: int | None) -> int:
    """Run all operations; return how many steps were reached."""
    journal = Journal(journal_path)
    word_queue.GROUP_S = (
        3600.0  # a group that the clock commits would be a step more on a slow machine
    )
    with IndexStore(crash_options(data), crash_at=crash_at, vector_store="foreground") as store:
        for operation in operations(store, journal):
            operation()
        reached = store.steps.reached
        journal.note("steps", "", json.dumps(store.steps.names))
        return reached


def recover(data: Path, crash_at: int) -> None:
    """Open and close the store as a fresh process would, and end at a write step of that."""
    with IndexStore(crash_options(data), crash_at=crash_at, vector_store="foreground"):
        pass


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
                drafts.append(
                    make_draft(
                        name, text, library=library_of(name), has_original=True, sha256=sha256
                    )
                )
            store.writer.write(drafts)
            for name, revision in names:
                journal.note("write", name, text_of(name, revision))

        return do

    def bulk(*names: tuple[str, int]) -> Callable[[], None]:
        """Store articles as a bulk run does: a crash before their words are committed must not lose any."""

        def do() -> None:
            for name, revision in names:
                journal.note("write?", name, text_of(name, revision))
                text = text_of(name, revision)
                draft = make_draft(
                    name, text, library=library_of(name), source_revision=str(revision)
                )
                entry = LedgerEntry(name, str(revision), "indexed", "")
                store.writer.store([draft], LedgerPage(Library.PUBLIC, SOURCE, [entry]))
                journal.note("write", name, text)
            store.ledger.record(
                Library.PUBLIC, SOURCE, [LedgerEntry("elsewhere", "1", "redirect", "")]
            )

        return do

    def settle() -> None:
        store.writer.flush(Library.PUBLIC)

    def embed(library: Library) -> Callable[[], None]:
        def do() -> None:
            store.writer.claim(library, FINGERPRINT)
            while chunks := store.writer.pending_vectors(library, 3):
                rows = EMBEDDER.embed_passages([chunk.text for chunk in chunks])
                store.writer.write_vectors(library, [chunk.chunk_id for chunk in chunks], rows)
            store.writer.apply(library)
            for document in store.catalog.documents(library)[0]:
                journal.note("embed", document.source_key)

        return do

    def delete(name: str, grace_s: float = 0) -> Callable[[], None]:
        def do() -> None:
            document = store.writer.current(library_of(name), name)
            journal.note("delete?", name, "")
            if document is not None:
                store.writer.delete(library_of(name), document.doc_id, grace_s)
            journal.note("delete", name, "")

        return do

    def fetch(name: str) -> Callable[[], None]:
        """Accept a job that brings a document, which its payload does not name."""

        def do() -> None:
            job = store.jobs.create("fetch", {"url": "https://example.org", "library": "papers"})
            journal.note("late", name, job.id)

        return do

    def restore(name: str, revision: int) -> Callable[[], None]:
        def do() -> None:
            journal.note("write?", name, text_of(name, revision))
            store.writer.restore(library_of(name), document_id(library_of(name), name))
            journal.note("write", name, text_of(name, revision))

        return do

    def correct() -> None:
        document = store.writer.current(Library.PAPERS, "bee")
        if document is not None:
            store.writer.correct(
                Library.PAPERS, document.doc_id, Metadata("Corrected title", ("Ann Li",), 2001)
            )

    def state() -> None:
        store.jobs.create("crash", {})
        talk = store.conversations.create("crash")
        store.conversations.delete(talk)

    def purge() -> None:
        store.purger.run()

    embed_papers, embed_public = embed(Library.PAPERS), embed(Library.PUBLIC)
    articles = [(f"wiki{letter}", 1) for letter in "abcd"]
    return [
        write(("ant", 1), ("bee", 1)), embed_papers, write(("cat", 1)), write(("ant", 2)), embed_papers, correct, fetch("cat"), delete("cat"),
        state, bulk(*articles), embed_public, settle, bulk(("wikie", 1), ("wikib", 2), ("wikif", 1)), embed_public, settle,
        store.rebuild, delete("bee", grace_s=3600), restore("bee", 1), delete("wikic"), purge, write(("dog", 1)), embed_papers,
    ]  # fmt: skip


def check(data: Path, journal_path: Path) -> list[str]:
    """Open the store as a fresh process would, and return every promise it breaks; then write something, as work goes on."""
    journal = Journal.read(journal_path)
    broken: list[str] = []
    with IndexStore(crash_options(data), vector_store="foreground") as store:
        for library in Library:
            broken += _check_library(store, journal, library)
        if store.database.check():
            broken.append(f"the catalog is damaged: {store.database.check()}")
        held = {row.sha256 for row in store.database.rows(ORIGINALS)}
        on_disk = {path.stem for path in (data / "originals").iterdir()}
        if held != on_disk:
            broken.append(f"originals {on_disk} for {held}")
        articles = [
            entry.article
            for entry in store.ledger.page(Library.PUBLIC, SOURCE)
            if entry.state == "indexed"
        ]
        missing = [
            key
            for key in articles
            if store.writer.current(Library.PUBLIC, key) is None and "" not in journal.live[key]
        ]
        broken += [f"{key}: in the ledger but not in the library" for key in missing]
        broken += [
            f"{key}: a job that was accepted before its deletion brings it back"
            for key, job_id in journal.late.items()
            if journal.live[key] == [""] and not _is_kept_out(store, key, job_id)
        ]
        text = text_of("next", 1)
        store.writer.write([make_draft("next", text)])
        if len(store.lexical.search(Library.PAPERS, "next1alpha", 5)) != 1:
            broken.append("what is written after the recovery is not found")
    return broken


def _is_kept_out(store: IndexStore, key: str, job_id: str) -> bool:
    draft = replace(make_draft(key, text_of(key, 2)), job_id=job_id)
    with suppress(Superseded):
        store.writer.write([draft])
        return False
    return True


def _check_library(store: IndexStore, journal: Journal, library: Library) -> list[str]:
    broken: list[str] = []
    counts = store.catalog.counts(library)
    documents = {document.source_key: document for document in store.catalog.documents(library)[0]}
    for key, texts in journal.live.items():
        if library_of(key) is not library:
            continue
        found = store.catalog.text(library, documents[key].doc_id).text if key in documents else ""
        if found not in texts:
            broken.append(f"{key}: {found!r} is none of {texts}")
        if found:
            broken += _check_document(
                store, library, key, documents[key].doc_id, found, embedded=key in journal.embedded
            )
    broken += [f"{key}: a phantom" for key in documents if key not in journal.live]
    if sum(
        document.chunks for document in documents.values()
    ) != counts.chunks or counts.documents != len(documents):
        broken.append(f"counters say {counts}")
    if store.vectors.count(library) != counts.embedded:
        broken.append(
            f"{store.vectors.count(library)} vectors can be searched, the catalog has"
            f" {counts.embedded}"
        )
    if (
        counts.embedded
        and (held := store.vector_stores[library].count(collection(library))) != counts.embedded
    ):
        broken.append(f"chroma holds {held} vectors, the catalog {counts.embedded}")
    return broken


def _check_document(
    store: IndexStore, library: Library, key: str, doc_id: str, text: str, *, embedded: bool
) -> list[str]:
    broken: list[str] = []
    if library is Library.PAPERS and content_sha256(
        store.catalog.original(library, doc_id)
    ) != content_sha256(text.encode()):
        broken.append(f"{key}: the original is not what was sent")
    for chunk in store.catalog.chunks(library, doc_id):
        word = next(word for word in words(chunk.text) if word.startswith(key))
        hits = [hit.chunk_id for hit in store.lexical.search(library, word, 10)]
        if hits != [chunk.chunk_id]:
            broken.append(f"{key}: a search for {word!r} finds {hits}, not {chunk.chunk_id}")
        if embedded:
            query = EMBEDDER.embed_query(chunk.text)
            rows = store.vectors.fetch(library, [chunk.chunk_id])
            if (
                chunk.chunk_id not in rows
                or float(cosine_distances(query, rows[chunk.chunk_id][None])[0]) > 1e-3
            ):
                broken.append(f"{key}: chunk {chunk.chunk_id} lost its vector")
            for name, found in (
                ("dense search", [hit.chunk_id for hit in store.vectors.search(library, query, 1)]),
                ("chroma", store.vector_stores[library].search(collection(library), query, 1)),
            ):
                if found != [chunk.chunk_id]:
                    broken.append(
                        f"{key}: {name} finds {found} for the vector of chunk {chunk.chunk_id}"
                    )
    return broken
