"""Run the process that owns Chroma: one client, requests through two pipes.

Chroma holds the interpreter's lock while it writes, and a damaged store can end the process that
opens it. So nothing else runs here. The process answers one request at a time, searches first, and
ends when the other side of a pipe is gone. Two processes that write to one store destroy it, so a
process waits until the one before it has let the store go.

An operation that takes longer than it may is a store that hangs in Chroma's own code, where no
thread of Python runs. So the kernel ends the process then (SIGALRM), also when the server that
waited for it is gone.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chromadb
from chromadb.config import Settings
from chromadb.errors import NotFoundError

from app.core.types import FloatArray
from app.storage.files.durable import says_full, utc_now

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

MAX_FILE_BYTES = 64 << 30
"""A torn link list made a store grow a file of terabytes; a store of a million vectors has some
gigabytes."""

OWNER_NAME = "owner.lock"
"""The file in the store's directory that the process holds a lock on."""

DATABASE = "chroma.sqlite3"

OPENED_BLOCKS_S = 10_000_000 // 512
"""Blocks on disk, of 512 bytes, that are opened in a second at least: a slow disk reads 10 MB."""

Reply = tuple[int, str, Any]
"""The request's number; `done`, `full` or `failed`; the answer, or what went wrong."""


class ChromaProcess:
    """Operations of the process: the methods without a leading underscore."""

    def __init__(self, path: Path, ef_search: int, open_s: int, work_s: int) -> None:
        self._path = path
        self._ef_search = ef_search
        self._open_s = open_s
        self._work_s = work_s
        self._opened: ClientAPI | None = None
        self._known: dict[str, Collection] = {}
        self._counts: dict[str, int] = {}

    def limit_s(self, collection: str = "") -> int:
        """Return how many seconds an operation on a collection may take."""
        if self._opened is not None and (not collection or collection in self._known):
            return self._work_s
        blocks = sum(path.stat().st_blocks for path in self._path.rglob("*"))
        return self._open_s + blocks // OPENED_BLOCKS_S

    def _client(self) -> ClientAPI:
        if self._opened is None:
            self._path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._path / OWNER_NAME, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self._opened = chromadb.PersistentClient(
                path=str(self._path), settings=Settings(anonymized_telemetry=False)
            )
        return self._opened

    def _collection(self, name: str) -> Collection | None:
        if name not in self._known:
            try:
                found = self._client().get_collection(name, embedding_function=None)
            except NotFoundError:
                return None
            self._known[name], self._counts[name] = found, found.count()
        return self._known[name]

    def upsert(
        self,
        name: str,
        ids: list[str],
        rows: FloatArray,
        stamps: list[dict[str, str | int]],
        embedder: str,
    ) -> None:
        """Add or replace vectors; a stamp's `text` becomes the row's document."""
        collection = self._collection(name)
        if collection is None:
            collection = self._known[name] = self._client().create_collection(
                name,
                embedding_function=None,
                metadata={"embedding_model": embedder},
                configuration={"hnsw": {"space": "cosine", "ef_search": self._ef_search}},
            )
        now = utc_now()
        texts = [str(stamp.pop("text", "")) for stamp in stamps]
        collection.upsert(
            ids=ids,
            embeddings=rows,
            metadatas=[{**stamp, "indexed_at": now} for stamp in stamps],
            documents=texts if any(texts) else None,
        )
        self._counts[name] = collection.count()

    def delete(self, name: str, ids: list[str]) -> None:
        collection = self._collection(name)
        if collection is not None:
            collection.delete(ids=ids)
            self._counts[name] = collection.count()

    def search(self, name: str, query: FloatArray, n: int) -> list[int]:
        """Return the ids of the nearest vectors, nearest first."""
        collection = self._collection(name)
        if collection is None or not (n := min(n, self._counts[name])):
            return []
        found = collection.query(query_embeddings=[query], n_results=n, include=[])
        return [int(chunk_id) for chunk_id in found["ids"][0]]

    def count(self, name: str) -> int:
        return 0 if self._collection(name) is None else self._counts[name]

    def ids(self, name: str) -> set[int]:
        """Return a collection's ids from its database; Chroma takes 30 s for a million."""
        self._client()
        with closing(
            sqlite3.connect(f"file:{self._path / DATABASE}?mode=ro", uri=True)
        ) as connection:
            rows = connection.execute(
                "SELECT e.embedding_id FROM embeddings e JOIN segments s ON s.id = e.segment_id"
                " JOIN collections c ON c.id = s.collection WHERE s.scope = 'METADATA' AND c.name"
                " = ?",
                (name,),
            )
            return {int(row[0]) for row in rows}

    def collections(self) -> list[str]:
        return [collection.name for collection in self._client().list_collections()]

    def drop(self, name: str) -> None:
        if self._collection(name) is not None:
            self._client().delete_collection(name)
            del self._known[name], self._counts[name]


def serve(process: ChromaProcess, searches: Connection, writes: Connection) -> None:
    """Answer requests until the other side of a pipe is gone."""
    while True:
        ready = wait([searches, writes])
        connection = searches if searches in ready else writes
        try:
            number, operation, arguments = connection.recv()
            signal.alarm(process.limit_s(*arguments[:1]))
            reply = answer(getattr(process, operation), number, arguments)
            signal.alarm(0)
            connection.send(reply)
        except (EOFError, OSError):
            return


def answer(operation: Callable[..., object], number: int, arguments: tuple[object, ...]) -> Reply:
    """Return the reply to one request, also for Chroma's panics (pyo3).

    They are no `Exception`, and say what is wrong all the same.
    """
    try:
        return number, "done", operation(*arguments)
    except BaseException as exc:  # noqa: BLE001
        return (
            number,
            "full" if says_full(str(exc)) else "failed",
            f"{type(exc).__name__}: {exc}"[:300],
        )


def main() -> int:
    """Serve one store.

    The arguments are its directory, `ef_search`, the limits of opening and of any other operation
    in seconds, and two pipes.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # a terminal tells all processes of a group: the server ends this one
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    most = MAX_FILE_BYTES if hard == resource.RLIM_INFINITY else min(MAX_FILE_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    path, *numbers = sys.argv[1:]
    ef_search, open_s, work_s, searches, writes = map(int, numbers)
    process = ChromaProcess(Path(path), ef_search, open_s, work_s)
    serve(process, Connection(searches), Connection(writes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
