"""Chroma: approximate neighbours of libraries too large to scan. All it holds can be made again from the catalog.

Never asked with `where` (linear in the collection), never asked for counts or lists, never opened before `probe` found it healthy.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from app.core.errors import DiskFull, DocuMindError, IndexDamaged
from app.core.types import FloatArray, Library, Scored
from app.index.dense.chroma.scrub import scrub_collection
from app.index.dense.chroma.self_query import differing, held_of, unfound
from app.index.files.durable import disk_full, says_full, utc_now
from app.index.files.steps import Steps

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

log = logging.getLogger(__name__)

BATCH = 1000
PIECE = 64
"""Rows a call: Chroma holds the interpreter's lock throughout, and nothing else in the server moves meanwhile. Measured: 1,000
rows stop everything for 450 ms, 64 for 60-110 ms; its 1,200 rows a second (2,500 before) are still those of many embedders."""

LARGEST_POOL = 100
"""Most neighbours a question asks for (REQUIREMENTS B1: pools up to 96); ef_search is a multiple of it."""


class ChromaStore:
    """One persistent client for both libraries; thread-safe. `open` it after the probe; until then nothing is ready."""

    def __init__(self, path: Path, steps: Steps, *, ef_search_factor: int) -> None:
        """Use the store in directory `path`."""
        self.path = path
        self._steps = steps
        self._ef_search = ef_search_factor * LARGEST_POOL
        self._lock = threading.RLock()
        self._client: ClientAPI | None = None
        self._collections: dict[str, Collection] = {}
        self._counts: dict[str, int] = {}
        self._ready: frozenset[Library] = frozenset()
        self._write_failed = False
        self.on_failure: Callable[[], None] = lambda: None
        """Called when the store turned out damaged while serving; the keeper rebuilds it."""

    def ready(self, library: Library) -> bool:
        """Whether the library's collection is whole and may be searched."""
        return library in self._ready

    def set_ready(self, library: Library, ready: bool) -> None:
        """Say that a library's collection is whole, or is being rebuilt."""
        with self._lock:
            self._ready = self._ready | {library} if ready else self._ready - {library}

    @property
    def opened(self) -> bool:
        """Whether the store is open."""
        return self._client is not None

    def open(self) -> None:
        """Open the store; the probe has passed.

        Raises:
            IndexDamaged: Chroma cannot open it all the same.
        """
        # Imported here: chromadb takes a second to import, and a small library answers before it is needed.
        import chromadb  # noqa: PLC0415
        from chromadb.config import Settings  # noqa: PLC0415

        with self._lock, _Translated(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with self._steps.at("chroma.open"):
                self._client = chromadb.PersistentClient(path=str(self.path), settings=Settings(anonymized_telemetry=False))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock for a write; after one that met a full disk, write through a new client (ADR 0026)."""
        with self._lock:
            if self._write_failed:
                self._exchange_client()
            try:
                with _Translated(self.path):
                    yield
            except DiskFull:
                self._write_failed = True
                raise

    def _exchange_client(self) -> None:
        """Open the store anew: the old client may keep a connection whose transaction, cut short, has SQLite's write lock."""
        client, self._client = self._client, None
        self._collections = {}
        if client is not None:
            client.close()
        self.open()
        self._write_failed = False

    def _collection(self, name: str) -> Collection:
        with self._lock:
            if self._client is None:
                raise IndexDamaged(f"the vector store {self.path.name!r} is not open yet; lexical search serves meanwhile")
            found = self._collections.get(name)
            if found is None:
                with self._steps.at("chroma.create"):
                    found = self._client.get_or_create_collection(
                        name,
                        embedding_function=None,
                        configuration={"hnsw": {"space": "cosine", "ef_search": self._ef_search}},
                    )
                self._collections[name] = found
                self._counts[name] = found.count()
            return found

    def count(self, name: str) -> int:
        """Return how many vectors a collection holds, as counted when it was opened and by every write since."""
        with _Translated(self.path):
            self._collection(name)
        return self._counts[name]

    def upsert(self, name: str, chunk_ids: Sequence[int], rows: FloatArray, fields: Sequence[tuple[str, str]], model: str) -> None:
        """Add or replace vectors, durably.

        Args:
            name: The collection.
            chunk_ids: Up to BATCH chunks.
            rows: float32 `[n, dim]`, norm 1.
            fields: Per row its doc_id and section.
            model: The embedding model, kept with each row.
        """
        if not chunk_ids:
            return
        now = utc_now()
        metadatas: list[dict[str, str]] = [
            {"doc_id": doc_id, "section": section, "embedding_model": model, "chroma_collection": name, "indexed_at": now}
            for doc_id, section in fields
        ]
        with self._writing():
            collection = self._collection(name)
            with self._steps.at("chroma.upsert"):
                for at in range(0, len(chunk_ids), PIECE):
                    ids = [str(i) for i in chunk_ids[at : at + PIECE]]
                    vectors = np.asarray(rows[at : at + PIECE], np.float32)
                    collection.upsert(ids=ids, embeddings=vectors, metadatas=metadatas[at : at + PIECE])
            self._counts[name] = collection.count()

    def delete(self, name: str, chunk_ids: Sequence[int]) -> None:
        """Remove vectors; unknown ids are fine."""
        if not chunk_ids:
            return
        with self._writing():
            collection = self._collection(name)
            with self._steps.at("chroma.delete"):
                for at in range(0, len(chunk_ids), 4 * PIECE):  # a deletion costs a quarter of a row
                    collection.delete(ids=[str(i) for i in chunk_ids[at : at + 4 * PIECE]])
            self._counts[name] = collection.count()

    def query(self, name: str, query: FloatArray, n: int) -> list[Scored]:
        """Return up to n neighbours by cosine distance, ascending."""
        with _Translated(self.path):
            collection = self._collection(name)
            n = min(n, self._counts[name])
            if n < 1:
                return []
            try:
                found = collection.query(query_embeddings=[query], n_results=n, include=["distances"])
            except AttributeError:  # its client was exchanged under this question, and a closed client has lost its bindings
                found = self._collection(name).query(query_embeddings=[query], n_results=n, include=["distances"])
        distances = (found["distances"] or [[]])[0]
        hits = [Scored(int(i), max(0.0, float(d))) for i, d in zip(found["ids"][0], distances, strict=True)]
        hits.sort(key=lambda hit: (hit.score, hit.chunk_id))
        return hits

    def held_of(self, name: str, wanted: Mapping[int, FloatArray]) -> dict[int, FloatArray]:
        """Return those of some vectors whose ids a collection has."""
        with _Translated(self.path):
            return held_of(self._collection(name), wanted)

    def differing(self, name: str, wanted: Mapping[int, FloatArray]) -> list[int]:
        """Return the chunks whose vector a collection lacks, or holds otherwise."""
        with _Translated(self.path):
            return differing(self._collection(name), wanted)

    def unfound(self, name: str, wanted: Mapping[int, FloatArray]) -> list[int]:
        """Return the chunks that no search for their own vector finds (see `app.index.dense.chroma.self_query`)."""
        with _Translated(self.path):
            return unfound(self._collection(name), wanted)

    def scrub(self, name: str) -> None:
        """Zero what the collection's files hold of memory that was never used; before it may be searched."""
        with self._lock:
            scrub_collection(self.path, name, self._steps)

    def fail(self) -> None:
        """Stop searching the store: it failed, and is made again."""
        with self._lock:
            self._ready = frozenset()
        self.on_failure()

    def forget(self, name: str) -> None:
        """Remove a collection; one that is not there is fine."""
        with self._writing():
            if self._client is not None and name in self.names():
                with self._steps.at("chroma.forget"):
                    self._client.delete_collection(name)
            self._collections.pop(name, None)
            self._counts.pop(name, None)

    def names(self) -> list[str]:
        """Return the names of all collections."""
        with self._lock, _Translated(self.path):
            return [] if self._client is None else [collection.name for collection in self._client.list_collections()]

    @contextmanager
    def still(self) -> Iterator[None]:
        """Let nobody write to the store for as long as the block runs."""
        with self._lock:
            yield

    def close(self) -> None:
        """Let the store go."""
        with self._lock:
            client, self._client = self._client, None
            self._collections = {}
            self._ready = frozenset()
            self._write_failed = False
        if client is not None:
            client.close()


class _Translated:
    """Turns Chroma's errors into ours. Its Rust panics are BaseExceptions (pyo3), so an `except` clause would miss them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None or error is None or issubclass(kind, DocuMindError):
            return
        if not issubclass(kind, Exception) and kind.__module__ != "pyo3_runtime":
            return
        message = str(error)
        if says_full(message):
            raise disk_full(self._path) from error
        raise IndexDamaged(
            f"the vector store {self._path.name!r} failed ({message[:200]}): it is checked and rebuilt from the catalog"
            " at the next start; lexical search serves meanwhile"
        ) from error
