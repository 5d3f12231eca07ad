"""Qdrant as a store of vectors, for several servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qdrant_client import models

from app.core.types import FloatArray
from app.storage.engine import NoCollection, SearchEngine
from app.storage.files.durable import Steps
from app.storage.vectors.port import Stamps

PIECE = 256
"""Rows a request: 1.5 MB of JSON at 384 numbers a row."""

DENSE = "dense"
"""The name of a point's vector."""

ROOM = "vectors_"
"""How the names of these collections begin; words are in others of the same engine."""


class QdrantStore:
    """The VectorStore port over one engine: a collection a build."""

    def __init__(self, engine: SearchEngine, steps: Steps, *, ef_search: int) -> None:
        """Use `engine`; nothing is sent yet.

        Args:
            engine: Where the vectors go.
            steps: Told of every write.
            ef_search: How wide the engine searches at least.
        """
        self._engine = engine
        self._steps = steps
        self._ef_search = ef_search

    def prepare(self, collection: str, expected: int, sample: Callable[[int], FloatArray]) -> None:
        """Do nothing: a graph learns from no sample."""

    def upsert(
        self,
        collection: str,
        chunk_ids: Sequence[int],
        rows: FloatArray,
        stamps: Stamps,
    ) -> None:
        """Add or replace vectors, durably (see `VectorStore.upsert`)."""
        with self._steps.at("qdrant.upsert"):
            for at in range(0, len(chunk_ids), PIECE):
                ids = chunk_ids[at : at + PIECE]
                points = [
                    models.PointStruct(
                        id=chunk_id, vector={DENSE: row.tolist()}, payload=dict(stamp)
                    )
                    for chunk_id, row, stamp in zip(
                        ids, rows[at : at + PIECE], stamps.of(ids), strict=True
                    )
                ]
                self._put(collection, points, rows.shape[1])

    def _put(self, collection: str, points: Sequence[models.PointStruct], dimension: int) -> None:
        try:
            self._engine.upsert(ROOM + collection, points)
        except NoCollection:
            self._engine.create(ROOM + collection, dense={DENSE: dimension})
            self._engine.upsert(ROOM + collection, points)

    def delete(self, collection: str, chunk_ids: Sequence[int]) -> None:
        """Remove vectors, durably."""
        if chunk_ids:
            with self._steps.at("qdrant.delete"):
                self._engine.delete(ROOM + collection, chunk_ids)

    def flush(self, collection: str, *, at_once: bool) -> bool:  # noqa: ARG002
        return True

    def search(self, collection: str, query: FloatArray, n: int) -> list[int]:
        """Return the ids of up to n neighbours, nearest first.

        Raises:
            SearchAway: No node answers.
        """
        width = max(n, self._ef_search)
        found = self._engine.search(ROOM + collection, DENSE, query.tolist(), n, width=width)
        return [chunk_id for chunk_id, _ in found]

    def ids(self, collection: str) -> set[int]:
        return self._engine.ids(ROOM + collection)

    def count(self, collection: str) -> int:
        return self._engine.count(ROOM + collection)

    def collections(self) -> list[str]:
        found = self._engine.collections()
        return [name.removeprefix(ROOM) for name in found if name.startswith(ROOM)]

    def drop(self, collection: str) -> None:
        with self._steps.at("qdrant.drop"):
            self._engine.drop(ROOM + collection)

    def set_aside(self) -> str:
        """Drop every collection of vectors; the engine keeps none under another name."""
        for name in self.collections():
            self.drop(name)
        return ""

    def close(self) -> None:
        """Let the connections go."""
        self._engine.close()
