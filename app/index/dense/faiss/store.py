"""faiss as a store of vectors: 70 bytes each in memory, candidates for the catalog to score."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from app.core.errors import IndexDamaged, StorageError
from app.core.types import FloatArray
from app.index.dense.faiss.collection import LEAST_KEPT, CodedCollection
from app.index.dense.faiss.lists import sample_size
from app.index.files.durable import delete_tree, disk_errors, move_aside, sync_directory
from app.index.files.steps import Steps

LEARN_FROM = 40_000
"""Vectors from which on codes are kept and not rows; fewer are searched exactly, in 60 MB."""

_DROPPED = ".dropped"


class FaissStore:
    """The VectorStore port on a directory per collection; thread-safe."""

    def __init__(
        self,
        path: Path,
        steps: Steps,
        *,
        learn_from: int = LEARN_FROM,
        least_kept: int = LEAST_KEPT,
    ) -> None:
        """Use the store in directory `path`.

        Args:
            path: Made when it is not there.
            steps: Told of every write.
            learn_from: Vectors of a collection from which on codes are kept and not rows.
            least_kept: Changes of a collection before its file is written again.
        """
        self.path = path
        self._steps = steps
        self._learn_from = learn_from
        self._least_kept = least_kept
        self._lock = threading.RLock()
        self._open: dict[str, CodedCollection] = {}

    def prepare(self, collection: str, expected: int, sample: Callable[[int], FloatArray]) -> None:
        """Learn from a sample how to divide `expected` vectors; see `VectorStore.prepare`."""
        if expected >= self._learn_from:
            with self._errors(collection):
                self._made(collection).prepare(sample(sample_size(expected)), expected)

    def upsert(
        self,
        collection: str,
        chunk_ids: Sequence[int],
        rows: FloatArray,
        fields: Sequence[tuple[str, str]],  # noqa: ARG002  # nobody looks into codes
    ) -> None:
        """Add or replace vectors, durably (see `VectorStore.upsert`)."""
        with self._errors(collection):
            self._made(collection).upsert(np.array(chunk_ids, np.int64), rows)

    def delete(self, collection: str, chunk_ids: Sequence[int]) -> None:
        """Remove vectors, durably."""
        with self._errors(collection):
            if chunk_ids and (held := self._of(collection)) is not None:
                held.delete(np.array(chunk_ids, np.int64))

    def search(self, collection: str, query: FloatArray, n: int) -> list[int]:
        """Return the ids of up to n neighbours, nearest first as far as codes tell."""
        with self._errors():
            held = self._of(collection)
            return [] if held is None else held.search(query, n)

    def ids(self, collection: str) -> set[int]:
        """Return the ids of all vectors."""
        with self._errors():
            held = self._of(collection)
            return set() if held is None else held.ids()

    def count(self, collection: str) -> int:
        """Return how many vectors there are."""
        with self._errors():
            held = self._of(collection)
            return 0 if held is None else held.count

    def collections(self) -> list[str]:
        """Return the names of all collections."""
        if not self.path.is_dir():
            return []
        return [
            unquote(entry.name)
            for entry in self.path.iterdir()
            if entry.is_dir() and not entry.name.endswith(_DROPPED)
        ]

    def drop(self, collection: str) -> None:
        """Remove a collection; what a crash leaves of it is not listed."""
        directory = self._directory(collection)
        gone = directory.with_name(directory.name + _DROPPED)
        with self._errors(collection), self._lock:
            if (held := self._open.pop(collection, None)) is not None:
                held.close()
            delete_tree(gone, self._steps, "faiss.drop")
            if directory.exists():
                with self._steps.at("faiss.drop"):
                    directory.rename(gone)
                sync_directory(self.path, self._steps, "faiss.fsync_directory")
                delete_tree(gone, self._steps, "faiss.drop")

    def set_aside(self) -> str:
        """Keep the files under another name and continue empty; return that name."""
        with self._lock:
            self.close()
            if not self.path.exists() or not any(self.path.iterdir()):
                return ""
            return move_aside(self.path, self._steps, "faiss.move_aside").name

    def close(self) -> None:
        """Let every collection go."""
        with self._lock:
            for held in self._open.values():
                held.close()
            self._open = {}

    def _directory(self, collection: str) -> Path:
        return self.path / quote(collection, safe="")

    def _of(self, collection: str) -> CodedCollection | None:
        if (held := self._open.get(collection)) is not None:
            return held
        with self._lock:
            if collection in self._open:
                return self._open[collection]
            return self._read(collection) if self._directory(collection).exists() else None

    def _read(self, collection: str) -> CodedCollection:
        self._open[collection] = CodedCollection(
            self._directory(collection),
            self._steps,
            learn_from=self._learn_from,
            least_kept=self._least_kept,
        )
        return self._open[collection]

    def _made(self, collection: str) -> CodedCollection:
        with self._lock:
            if (held := self._of(collection)) is not None:
                return held
            directory = self._directory(collection)
            with disk_errors(directory):
                directory.mkdir(parents=True)
            sync_directory(self.path, self._steps, "faiss.fsync_directory")
            return self._read(collection)

    @contextmanager
    def _errors(self, written: str | None = None) -> Iterator[None]:
        """Translate errors; a collection whose write failed is read from disk again."""
        try:
            yield
        except StorageError:
            self._close_collection(written)
            raise
        except (OSError, RuntimeError, ValueError) as exc:
            self._close_collection(written)
            raise IndexDamaged(
                f"the vector store {self.path.name!r} failed ({type(exc).__name__}: {exc});"
                " lexical search serves until it is back"
            ) from exc

    def _close_collection(self, collection: str | None) -> None:
        with self._lock:
            if collection and (held := self._open.pop(collection, None)) is not None:
                held.close()
