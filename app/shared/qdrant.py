"""Keep points in Qdrant: its nodes, collections, writes that wait, searches; and vectors in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar, cast
from urllib.parse import urlsplit

from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from app.core.errors import DiskFull, IndexDamaged, InvalidInput, SearchAway
from app.core.ids import without_credentials
from app.core.trace import Calls
from app.core.types import FloatArray
from app.storage.files.durable import Steps
from app.storage.vectors.port import Stamps

# Call Qdrant's nodes over HTTP: one that answers, with errors as our own.

SEARCH_S = 5
"""How long a search waits for a node, in seconds."""

WORK_S = 60
"""How long anything else waits for a node, in seconds."""

ROUNDS = 2
"""How often every node is tried: one that has just lost a neighbour answers 500 once."""

RETRY_S = 5.0
"""After how many seconds a client should come back while no node answers."""

Answer = TypeVar("Answer")
Connect = Callable[[str, str, int], QdrantClient]
"""Makes the client of a node from its address, the key and a time limit in seconds."""


class NoCollection(Exception):
    """The engine has no collection of this name."""


def connect(url: str, api_key: str, timeout_s: int) -> QdrantClient:
    """Return a client of one node; nothing is sent yet."""
    return QdrantClient(
        url=url,
        port=urlsplit(url).port or 6333,
        api_key=api_key or None,
        timeout=timeout_s,
        check_compatibility=False,
    )


class Nodes:
    """The nodes of one engine; thread-safe."""

    def __init__(
        self, urls: str, api_key: str = "", replicas: int = 1, connect: Connect = connect
    ) -> None:
        """Use the nodes in `urls`; nothing is sent yet.

        Args:
            urls: Addresses of nodes of one cluster, with commas between them.
            api_key: What the engine asks for; empty: nothing.
            replicas: Copies of every point, of which a write waits for the majority.
            connect: Makes the client of a node.

        Raises:
            InvalidInput: An address is none.
        """
        self.urls = [url.strip().rstrip("/") for url in urls.split(",")]
        for url in self.urls:
            if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
                raise InvalidInput(
                    f"SEARCH_URL {without_credentials(url)!r} is no address:"
                    " write http://HOST:6333,"
                    " several with commas"
                )
        self._key = api_key
        self._replicas = replicas
        self._connect = connect
        self._clients: dict[tuple[str, int], QdrantClient] = {}
        self._first = 0
        """Which node is asked first: the one that answered last."""
        self._lock = threading.Lock()
        self.calls = Calls("search")

    def call(
        self,
        ask: Callable[[QdrantClient], Answer],
        timeout_s: int = WORK_S,
        *,
        rounds: int = ROUNDS,
    ) -> Answer:
        """Return a node's answer; every request must be one that may be repeated.

        Raises:
            NoCollection: There is no such collection.
            SearchAway: No node answers.
            DiskFull: A node has no space.
            IndexDamaged: The engine refuses the request.
        """
        with self.calls.timed():
            return self._first_answer(ask, timeout_s, rounds)

    def _first_answer(
        self, ask: Callable[[QdrantClient], Answer], timeout_s: int, rounds: int
    ) -> Answer:
        """Return the answer of the first node that has one; each failure is counted."""
        problem = ""
        for at in range(rounds * len(self.urls)):
            node = (self._first + at) % len(self.urls)
            try:
                answer = ask(self._client(self.urls[node], timeout_s))
            except ResponseHandlingException as exc:
                self.calls.failed(exc)
                problem = (
                    f"{without_credentials(self.urls[node])} does not answer ({exc.source or exc})"
                )
            except UnexpectedResponse as exc:
                problem = self._refused(self.urls[node], exc)
            else:
                self._first = node
                return answer
        raise SearchAway(f"the search engine is away: {problem}", retry_after_s=RETRY_S)

    def _refused(self, url: str, response: UnexpectedResponse) -> str:
        """Return why a node may answer another time, or raise what it said."""
        said = response.content.decode(errors="replace")[:300]
        status = response.status_code or 500
        url = without_credentials(url)
        if status == 404:
            raise NoCollection(said)
        self.calls.failed(response)
        if "No space left" in said or "disk is full" in said.lower():
            raise DiskFull(f"the search engine {url} has no space: {said}")
        if status >= 500 or status in {401, 403, 429}:
            return f"{url} answers {status}: {said}"
        raise IndexDamaged(f"the search engine {url} refused a request ({status}): {said}")

    def _client(self, url: str, timeout_s: int) -> QdrantClient:
        with self._lock:
            key = (url, timeout_s)
            if key not in self._clients:
                self._clients[key] = self._connect(url, self._key, timeout_s)
            return self._clients[key]

    def close(self) -> None:
        """Let every connection go; a call after it opens them again."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


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

    def silent(self) -> tuple[str, ...]:
        """Return the nodes that do not answer now, all asked at once."""

        def answers(url: str) -> bool:
            try:
                self._client(url, PROBE_S).get_collections()
            except (ResponseHandlingException, UnexpectedResponse):
                return False
            return True

        with ThreadPoolExecutor(len(self.urls)) as threads:
            found = list(threads.map(answers, self.urls))
        return tuple(
            f"search engine {without_credentials(url)}"
            for url, answered in zip(self.urls, found, strict=True)
            if not answered
        )

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
        with suppress(NoCollection):
            self.call(lambda client: client.delete_collection(PREFIX + name))

    # --- points; an unknown collection has none

    def upsert(self, name: str, points: Sequence[models.PointStruct]) -> None:
        """Add or replace points; they are durable on a majority of replicas and found after it.

        Raises:
            NoCollection: There is no such collection.
        """
        self.call(lambda client: client.upsert(PREFIX + name, points=list(points), wait=True))

    def delete(self, name: str, chosen: Sequence[int] | models.Filter) -> None:
        selector = (
            models.FilterSelector(filter=chosen)
            if isinstance(chosen, models.Filter)
            else models.PointIdsList(points=list(chosen))
        )
        with suppress(NoCollection):
            self.call(
                lambda client: client.delete(PREFIX + name, points_selector=selector, wait=True)
            )

    def _found(
        self,
        none: Answer,
        ask: Callable[[QdrantClient], Answer],
        timeout_s: int = SEARCH_S,
        rounds: int = ROUNDS,
    ) -> Answer:
        try:
            return self.call(ask, timeout_s, rounds=rounds)
        except NoCollection:
            return none

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
        """Return up to n points' ids and scores, best first."""

        def ask(client: QdrantClient) -> list[tuple[int, float]]:
            found = client.query_points(
                PREFIX + name,
                query=query,
                using=using,
                limit=n,
                query_filter=chosen,
                search_params=models.SearchParams(hnsw_ef=width) if width else None,
                with_payload=False,
            )
            return [(cast("int", point.id), point.score) for point in found.points]

        return self._found([], ask, rounds=1)

    def count(self, name: str, chosen: models.Filter | None = None, *, exact: bool = True) -> int:
        """Return how many points there are; an exact count reads every id."""

        def ask(client: QdrantClient) -> int:
            return int(client.count(PREFIX + name, count_filter=chosen, exact=exact).count)

        return self._found(0, ask, WORK_S)

    def facet(self, name: str, field: str, n: int) -> dict[str, int]:
        """Return up to n values of a field with an index and their points, those of most first."""

        def ask(client: QdrantClient) -> dict[str, int]:
            found = client.facet(PREFIX + name, field, limit=n).hits
            return {str(hit.value): hit.count for hit in found}

        return self._found({}, ask, SEARCH_S if n < PIECE else WORK_S)

    def payload(self, name: str, ids: Sequence[int], field: str) -> dict[int, list[str]]:
        """Return a field of several values of points; those that are gone are absent."""

        def ask(client: QdrantClient) -> dict[int, list[str]]:
            found = client.retrieve(PREFIX + name, ids=list(ids), with_payload=[field])
            return {cast("int", point.id): (point.payload or {}).get(field, []) for point in found}

        return self._found({}, ask)

    def first_ids(self, name: str, chosen: models.Filter, n: int) -> list[int]:
        """Return the lowest ids, up to n, of the points that meet a filter."""

        def ask(client: QdrantClient) -> list[int]:
            found = client.scroll(PREFIX + name, scroll_filter=chosen, limit=n, with_payload=False)
            return [cast("int", point.id) for point in found[0]]

        return self._found([], ask)

    def ids(self, name: str, piece: int = 10_000) -> set[int]:
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


# Keep vectors in the engine: the VectorStore port.

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
