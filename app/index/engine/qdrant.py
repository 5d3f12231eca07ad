"""Keep points in Qdrant: collections, writes that wait, searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from app.core.errors import DiskFull, IndexDamaged, InvalidInput, SearchAway
from app.core.hosts import without_credentials
from app.index.engine.nodes import SEARCH_S, NoCollection, Nodes

PREFIX = "documind_"
"""How the names of our collections begin, so that those of others in the engine are left alone."""

PROBE_S = 2
"""How long a look at the engine's health waits for a node, in seconds."""


class SearchEngine(Nodes):
    """One engine and our collections in it; thread-safe."""

    def check(self) -> None:
        """Ask the engine for its collections.

        Raises:
            InvalidInput: No node answers, or it refuses the key; the message names the address.
        """
        try:
            self.collections()
        except (SearchAway, IndexDamaged) as exc:
            raise InvalidInput(f"SEARCH_URL: {exc.message}; start the engine first") from exc

    def version(self) -> str:
        """Return the release that answers, with the key accepted.

        Raises:
            InvalidInput: No node answers, or it refuses the key; the message names the address.
        """
        try:
            self.call(lambda client: client.get_collections(), PROBE_S, rounds=1)
            return str(self.call(lambda client: client.info(), PROBE_S, rounds=1).version)
        except (SearchAway, IndexDamaged) as exc:
            raise InvalidInput(f"SEARCH_URL: {exc.message}") from exc

    def away(self) -> tuple[str, ...]:
        """Return what is missing: nothing, or the engine with its address."""
        try:
            self.call(lambda client: client.get_collections(), PROBE_S, rounds=1)
        except (SearchAway, IndexDamaged, DiskFull):
            return (f"search engine {without_credentials(self.urls[0])}",)
        return ()

    # --- collections

    def collections(self) -> list[str]:
        """Return the names of our collections, without the prefix."""
        found = self.call(lambda client: client.get_collections()).collections
        return [one.name.removeprefix(PREFIX) for one in found if one.name.startswith(PREFIX)]

    def create(
        self,
        name: str,
        *,
        dense: Mapping[str, int] | None = None,
        sparse: Sequence[str] = (),
        fields: Mapping[str, models.PayloadSchemaType] | None = None,
    ) -> None:
        """Make a collection; one that another server made at the same moment is fine.

        Args:
            name: Without the prefix.
            dense: Names of vectors and their dimensions, compared by cosine.
            sparse: Names of sparse vectors, compared by their product.
            fields: Payload fields that filters name.
        """
        vectors = {
            key: models.VectorParams(size=size, distance=models.Distance.COSINE)
            for key, size in (dense or {}).items()
        }
        words = {key: models.SparseVectorParams() for key in sparse}
        with suppress(_Exists):
            self.call(
                lambda client: _unless_there(
                    lambda: client.create_collection(
                        PREFIX + name,
                        vectors_config=vectors,
                        sparse_vectors_config=words or None,
                        replication_factor=self._replicas,
                        write_consistency_factor=self._replicas // 2 + 1,
                    )
                )
            )
        for field, schema in (fields or {}).items():
            self._index(name, field, schema)

    def _index(self, name: str, field: str, schema: models.PayloadSchemaType) -> None:
        self.call(
            lambda client: client.create_payload_index(
                PREFIX + name, field, field_schema=schema, wait=True
            )
        )

    def drop(self, name: str) -> None:
        """Remove a collection; an unknown one is fine."""
        with suppress(NoCollection):
            self.call(lambda client: client.delete_collection(PREFIX + name))

    # --- points

    def upsert(self, name: str, points: Sequence[models.PointStruct]) -> None:
        """Add or replace points; they are durable on a majority of replicas and found after it.

        Raises:
            NoCollection: There is no such collection.
        """
        self.call(lambda client: client.upsert(PREFIX + name, points=list(points), wait=True))

    def delete(self, name: str, chosen: Sequence[int] | models.Filter) -> None:
        """Remove points; ids and collections that are unknown are fine."""
        selector = (
            models.FilterSelector(filter=chosen)
            if isinstance(chosen, models.Filter)
            else models.PointIdsList(points=list(chosen))
        )
        with suppress(NoCollection):
            self.call(
                lambda client: client.delete(PREFIX + name, points_selector=selector, wait=True)
            )

    def search(
        self,
        name: str,
        using: str,
        query: list[float] | models.SparseVector,
        n: int,
        *,
        chosen: models.Filter | None = None,
        width: int | None = None,
    ) -> list[tuple[int, float]]:
        """Return up to n points' ids and scores, best first; none from an unknown collection."""
        params = models.SearchParams(hnsw_ef=width) if width else None
        try:
            found = self.call(
                lambda client: client.query_points(
                    PREFIX + name,
                    query=query,
                    using=using,
                    limit=n,
                    query_filter=chosen,
                    search_params=params,
                    with_payload=False,
                ),
                SEARCH_S,
                rounds=1,
            )
        except NoCollection:
            return []
        return [(cast("int", point.id), point.score) for point in found.points]

    def count(self, name: str, chosen: models.Filter | None = None) -> int:
        """Return how many points there are, or meet a filter; 0 for an unknown collection."""
        try:
            return int(
                self.call(
                    lambda client: client.count(PREFIX + name, count_filter=chosen, exact=True)
                ).count
            )
        except NoCollection:
            return 0

    def values(self, name: str, field: str, n: int) -> list[str]:
        """Return up to n values of a field with an index, those of most points first."""
        try:
            found = self.call(lambda client: client.facet(PREFIX + name, field, limit=n), SEARCH_S)
        except NoCollection:
            return []
        return [str(hit.value) for hit in found.hits]

    def payload(self, name: str, ids: Sequence[int], field: str) -> dict[int, list[str]]:
        """Return a field of several values of points; those that are gone are absent."""
        try:
            found = self.call(
                lambda client: client.retrieve(PREFIX + name, ids=list(ids), with_payload=[field]),
                SEARCH_S,
            )
        except NoCollection:
            return {}
        return {cast("int", point.id): (point.payload or {}).get(field, []) for point in found}

    def first_ids(self, name: str, chosen: models.Filter, n: int) -> list[int]:
        """Return the lowest ids, up to n, of the points that meet a filter."""
        try:
            points, _ = self.call(
                lambda client: client.scroll(
                    PREFIX + name, scroll_filter=chosen, limit=n, with_payload=False
                ),
                SEARCH_S,
            )
        except NoCollection:
            return []
        return [cast("int", point.id) for point in points]

    def ids(self, name: str, piece: int = 10_000) -> set[int]:
        """Return the ids of all points; empty for an unknown collection."""
        found, offset = set[int](), None
        with suppress(NoCollection):
            while True:
                after = offset
                points, offset = self.call(
                    lambda client, after=after: client.scroll(  # type: ignore[misc]
                        PREFIX + name, limit=piece, offset=after, with_payload=False
                    )
                )
                found.update(cast("int", point.id) for point in points)
                if offset is None:
                    break
        return found


class _Exists(Exception):
    """A collection of this name is there."""


def _unless_there(create: Callable[[], object]) -> None:
    try:
        create()
    except UnexpectedResponse as exc:
        if exc.status_code == 409 or b"already exists" in exc.content:
            raise _Exists from exc
        raise
