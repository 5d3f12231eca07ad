"""A store of vectors in memory: it proposes the exact neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from app.core.types import FloatArray
from app.core.vectors import cosine_distances
from app.storage.vectors.port import Stamps


class MemoryVectorStore:
    """The VectorStore port on dictionaries."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, FloatArray]] = {}

    def prepare(self, collection: str, expected: int, sample: Callable[[int], FloatArray]) -> None:
        pass

    def upsert(
        self,
        collection: str,
        chunk_ids: Sequence[int],
        rows: FloatArray,
        stamps: Stamps,
    ) -> None:
        assert len(chunk_ids) == len(rows) == len(stamps.of(chunk_ids))
        self._rows.setdefault(collection, {}).update(
            zip(chunk_ids, np.array(rows, np.float32), strict=True)
        )

    def delete(self, collection: str, chunk_ids: Sequence[int]) -> None:
        for chunk_id in chunk_ids:
            self._rows.get(collection, {}).pop(chunk_id, None)

    def flush(self, collection: str, *, at_once: bool) -> bool:
        return True

    def search(self, collection: str, query: FloatArray, n: int) -> list[int]:
        held = self._rows.get(collection, {})
        if not held:
            return []
        ids, distances = list(held), cosine_distances(query, np.stack(list(held.values())))
        return [ids[at] for at in np.argsort(distances, kind="stable")[:n]]

    def ids(self, collection: str) -> set[int]:
        return set(self._rows.get(collection, {}))

    def count(self, collection: str) -> int:
        return len(self._rows.get(collection, {}))

    def collections(self) -> list[str]:
        return list(self._rows)

    def drop(self, collection: str) -> None:
        self._rows.pop(collection, None)

    def set_aside(self) -> str:
        was, self._rows = self._rows, {}
        return "memory" if was else ""

    def close(self) -> None:
        pass


def stamped(doc_id: str = "a") -> Stamps:
    """Return stamps that name one document."""
    return Stamps("test", lambda ids: [{"doc_id": doc_id, "section": "body"} for _ in ids])
