"""Keep points in Qdrant: its nodes, collections, writes that wait, searches; and vectors in it."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import TypeVar, cast
from urllib.parse import urlsplit

from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_client.http.models import ReplicaState

from app.core.errors import DiskFull, IndexDamaged, InvalidInput, SearchAway
from app.core.ids import without_credentials
from app.core.trace import Calls
from app.core.types import FloatArray
from app.storage.catalog.schema import pieces
from app.storage.files.durable import Steps
from app.storage.opening import Copies
from app.storage.vectors.port import SharedStore, Stamps

# Call Qdrant's nodes over HTTP: one that answers, with errors as our own.

SEARCH_S = 5
"""How long a call of a question takes at most, over all nodes, in seconds."""

SECOND_S = 0.3
"""After how many seconds without an answer a second node is asked what a question needs."""

WRITE_S = 20
"""How long a write takes at most where there are several nodes, in seconds."""

SECOND_WRITE_S = 3.0
"""After how many seconds without an answer a second node is asked to do a write too."""

KNOWN_S = 10.0
"""How long a change of collections waits until every node that answers knows of it, in seconds."""

LOOK_S = 0.05
"""Between two looks at that, in seconds."""

WRITERS = 4
"""Requests of one long write that are under way at a time: the engine works while the next is
made."""

READERS = 64
"""Calls that another node may answer too, at a time."""

SHUNNED_S = 30.0
"""How long a node that failed, or was slower than a second one, is asked last, in seconds."""

WORK_S = 60
"""How long anything else waits for a node, in seconds."""

ROUNDS = 2
"""How often every node is tried: one that has just lost a neighbour answers 500 once."""

RETRY_S = 5.0
"""After how many seconds a client should come back while no node answers."""

PREFIX = "documind_"
"""How the names of our collections begin, so that those of others in the engine are left alone."""

COPY = "@"
"""Stands between a name and what tells a collection that was filled in its place from others."""

EPOCH = "documind_epoch"
"""What the metadata of a collection name its epoch (Qdrant 1.16 and newer keep them)."""

FEWEST_SHARDS = 6
"""Shards of a collection at least, so that three nodes share it evenly, and six later."""

PROBE_S = 2
"""How long a look at the engine's health waits for a node, in seconds."""

Answer = TypeVar("Answer")
Connect = Callable[[str, str, int], QdrantClient]
"""Makes the client of a node from its address, the key and a time limit in seconds."""


class NoCollection(Exception):
    """The engine has no collection of this name."""


class _Exists(IndexDamaged):
    """A collection of this name is there."""


class _Passed(Exception):
    """A node has no answer now; another one is asked."""

    def __init__(self, message: str, *, refuses_key: bool = False) -> None:
        super().__init__(message)
        self.refuses_key = refuses_key


def connect(url: str, api_key: str, timeout_s: int) -> QdrantClient:
    """Return a client of one node; nothing is sent yet."""
    return QdrantClient(
        url=url,
        port=urlsplit(url).port or 6333,
        api_key=api_key or None,
        timeout=timeout_s,
        check_compatibility=False,
    )


class SearchEngine:
    """One engine, its nodes and our collections in it; thread-safe."""

    def __init__(
        self,
        urls: str,
        api_key: str = "",
        replicas: int = 1,
        shards: int = 0,
        connect: Connect = connect,
    ) -> None:
        """Use the nodes in `urls`; nothing is sent yet.

        Args:
            urls: Addresses of nodes of one cluster, with commas between them.
            api_key: What the engine asks for; empty: nothing.
            replicas: Copies of every point. A write waits for all that answer, and one suffices:
                the catalog can fill the engine again, and a node that is away stops nothing.
            shards: Of a new collection; 0: twice the nodes of the cluster, at least 6.
            connect: Makes the client of a node.

        Raises:
            InvalidInput: An address is none.
        """
        self.urls = [url.strip().rstrip("/") for url in urls.split(",")]
        for url in self.urls:
            if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
                raise InvalidInput(
                    f"SEARCH_URL {without_credentials(url)!r} is no address: write"
                    " http://HOST:6333, several with commas"
                )
        self._key = api_key
        self._replicas = replicas
        self._shards = shards
        self._connect = connect
        self._clients: dict[tuple[str, int], QdrantClient] = {}
        self._turns = itertools.count(secrets.randbelow(len(self.urls)))
        """Which node is asked first: each in turn, and processes begin with different ones."""
        self._shunned = dict.fromkeys(range(len(self.urls)), 0.0)
        """Until when each node is asked last."""
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="search")
        self.writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="search-write")
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
            problem = _Passed("it has no node")
            for node in self._order() * rounds:
                try:
                    return self._answer(node, ask, timeout_s)
                except _Passed as exc:
                    problem = exc
        raise _away(str(problem)) from problem

    def read(
        self,
        ask: Callable[[QdrantClient], Answer],
        timeout_s: int = SEARCH_S,
        second_s: float | None = None,
    ) -> Answer:
        """Return a node's answer in this time; a slow node and a second one are both asked.

        The second one is asked after `second_s` seconds, by default SECOND_S.

        Raises:
            NoCollection, SearchAway, DiskFull, IndexDamaged: As `call`.
        """
        until_s = time.monotonic() + timeout_s
        patience_s = SECOND_S if second_s is None else second_s
        problem = f"no node answers in {timeout_s} s"
        left = iter(self._order() * ROUNDS)
        asked: dict[Future[Answer], int] = {}
        with self.calls.timed():
            while (left_s := until_s - time.monotonic()) > 0:
                node = next(left, None) if len(asked) < 2 else None  # a second
                if node is not None:
                    asked[self._readers.submit(self._answer, node, ask, timeout_s)] = node
                elif not asked:
                    break
                alone = len(asked) == 1 < len(self.urls)
                done, _ = wait(asked, min(patience_s, left_s) if alone else left_s, FIRST_COMPLETED)
                for one in done:
                    del asked[one]
                    try:
                        answer = one.result()
                    except _Passed as exc:
                        problem = str(exc)
                        continue
                    for slower in asked.values():
                        self._shun(slower)
                    return answer
        raise _away(problem)

    def write(self, ask: Callable[[QdrantClient], Answer]) -> Answer:
        """Return a node's answer to a write that may be done twice; a frozen node holds up none.

        Raises:
            NoCollection, SearchAway, DiskFull, IndexDamaged: As `call`.
        """
        return self.read(ask, WRITE_S if len(self.urls) > 1 else WORK_S, SECOND_WRITE_S)

    def _order(self) -> list[int]:
        """Yield each node once, round-robin, recently failed ones last."""
        first, now = next(self._turns), time.monotonic()
        turns = [(first + at) % len(self.urls) for at in range(len(self.urls))]
        return sorted(turns, key=lambda node: self._shunned[node] > now)

    def _shun(self, node: int) -> None:
        self._shunned[node] = time.monotonic() + SHUNNED_S

    def _answer(self, node: int, ask: Callable[[QdrantClient], Answer], timeout_s: int) -> Answer:
        """Return what a node says; a failure that another node may not have is counted.

        Raises:
            _Passed: The node does not answer, or not now; the message names it.
        """
        url, key = self.urls[node], False
        try:
            return ask(self._client(url, timeout_s))
        except ResponseHandlingException as exc:
            self.calls.failed(exc)
            problem = f"{without_credentials(url)} does not answer ({exc.source or exc})"
        except ResourceExhaustedResponse as exc:
            self.calls.failed(exc)
            problem = f"{without_credentials(url)} answers 429: {exc}"
        except UnexpectedResponse as exc:
            problem, key = self._refused(url, exc), exc.status_code in {401, 403}
        self._shun(node)
        raise _Passed(problem, refuses_key=key)

    def _refused(self, url: str, response: UnexpectedResponse) -> str:
        """Return why a node may answer another time, or raise what it said."""
        said = response.content.decode(errors="replace")[:300]
        status = response.status_code or 500
        url = without_credentials(url)
        if status == 404:
            raise NoCollection(said)
        if status == 409 or "already exists" in said:
            raise _Exists(f"the search engine {url} refused a request ({status}): {said}")
        self.calls.failed(response)
        if "No space left" in said or "disk is full" in said.lower():
            raise DiskFull(f"the search engine {url} has no space: {said}")
        if status >= 500 or status in {401, 403, 408, 429}:  # 408: a copy elsewhere is frozen
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

    def check(self) -> None:
        """Ask the engine for its collections.

        Raises:
            InvalidInput: No node answers, which causes it, or it refuses the key; the message names
                the address.
        """
        try:
            self.collections()
        except (SearchAway, IndexDamaged) as exc:
            said = f"SEARCH_URL: {exc.message}; start the engine first"
            if isinstance(exc.__cause__, _Passed) and exc.__cause__.refuses_key:
                raise InvalidInput(said) from None  # that does not pass by itself
            raise InvalidInput(said) from exc

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

    def _made(self, timeout_s: int = WORK_S) -> list[str]:
        """Return the collections of ours that there are, without the prefix."""
        found = self.call(lambda client: client.get_collections(), timeout_s).collections
        return [one.name.removeprefix(PREFIX) for one in found if one.name.startswith(PREFIX)]

    def collections(self) -> list[str]:
        """Return the names under which our collections are asked, without the prefix."""
        return sorted({one.partition(COPY)[0] for one in self._made()})

    def _serving(self, name: str) -> str:
        """Return the collection that a name means: the target of its alias, or its own."""
        found = self.call(lambda client: client.get_aliases()).aliases
        of = {one.alias_name: one.collection_name.removeprefix(PREFIX) for one in found}
        return str(of.get(PREFIX + name, name))

    def shadow_collection(self, name: str) -> str:
        """Return a name that no fill had, for a collection in the place of one that serves.

        What a process still sends that seemed to be dead goes to no other.
        """
        return f"{name}{COPY}{secrets.token_hex(4)}"

    def delete_unserved(self, name: str, filled: str = "") -> None:
        """Remove every collection that was filled in the place of one and does not serve.

        Or only `filled`.
        """
        serving = self._serving(name)
        for left in self._made():
            unwanted = left == filled if filled else left.startswith(name + COPY)
            if unwanted and left != serving:
                self.drop(left)

    def promote(self, name: str, filled: str, *, empty: bool) -> bool:
        """Let a name mean the collection that was filled; remove the one that it meant before.

        Args:
            name: Which serves.
            filled: The other one.
            empty: Whether nothing was put into it, so that it may not be there.

        Returns:
            Whether there is a collection.

        Raises:
            IndexDamaged: Another process removed what was filled.
        """
        serving = self._serving(name)
        if filled not in self._made():
            if not empty:
                raise IndexDamaged(f"{filled} was removed while it was filled")
            self.drop(name)
            return False
        if serving == name:  # an alias cannot have the name of a collection
            self.drop(name, copies=False)
        alias = models.CreateAlias(collection_name=PREFIX + filled, alias_name=PREFIX + name)

        def knows(client: QdrantClient) -> bool:
            aliases = client.get_aliases().aliases
            return any(one.model_dump() == alias.model_dump() for one in aliases)

        self.call(
            lambda client: client.update_collection_aliases(
                [
                    models.DeleteAliasOperation(
                        delete_alias=models.DeleteAlias(alias_name=PREFIX + name)
                    ),
                    models.CreateAliasOperation(create_alias=alias),
                ]
            )
        )
        self._known(knows)
        if serving not in {name, filled}:
            self.drop(serving)
        return True

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

        Raises:
            SearchAway: The cluster has fewer nodes than copies are asked for.
        """
        peers = self.peers()
        if peers < self._replicas:  # it would keep one copy forever
            raise SearchAway(
                f"SEARCH_REPLICAS={self._replicas} needs as many nodes, and the search engine has"
                f" {peers}: start the other nodes, or lower SEARCH_REPLICAS",
                retry_after_s=RETRY_S,
            )
        vectors = {
            key: models.VectorParams(size=size, distance=models.Distance.COSINE)
            for key, size in (dense or {}).items()
        }
        words = {key: models.SparseVectorParams() for key in sparse}
        with suppress(_Exists):
            self.call(
                lambda client: client.create_collection(
                    PREFIX + name,
                    vectors_config=vectors,
                    sparse_vectors_config=words or None,
                    shard_number=self.shards_for(peers),
                    replication_factor=self._replicas,
                    write_consistency_factor=1,
                )
            )
        self._known(lambda client: PREFIX + name in _names(client))
        for field, schema in (fields or {}).items():
            self._index(name, field, schema)

    def peers(self) -> int:
        """Return how many nodes the cluster has."""
        return len(self._nodes()) or 1

    def _nodes(self) -> list[int]:
        """Return the ids of the nodes of the cluster; none of one that is alone."""
        status = self.call(lambda client: client.cluster_status(), PROBE_S)
        clustered = isinstance(status, models.ClusterStatusOneOf1)
        return [int(peer) for peer in status.peers] if clustered else []

    def epochs(self) -> dict[str, str]:
        """Return the epoch of each collection that is asked for; empty: not noted."""
        return {name: self.epoch(name) or "" for name in self.collections()}

    def shards_for(self, peers: int) -> int:
        """Return the shards of a new collection: they cannot be split when nodes join later."""
        return self._shards or max(FEWEST_SHARDS, 2 * peers)

    def copies(self) -> list[Copies]:
        """Return how the cluster keeps each collection of ours.

        Raises:
            SearchAway: No node answers.
        """
        nodes = self._nodes()
        found, wanted = [], (self._replicas, self.shards_for(len(nodes) or 1))
        for name in self._made(PROBE_S):
            with suppress(NoCollection):
                info = self.call(methodcaller("collection_cluster_info", PREFIX + name), PROBE_S)
                copies = [*info.local_shards, *info.remote_shards]
                active = Counter({one.shard_id: 0 for one in copies})
                active.update(one.shard_id for one in copies if one.state == ReplicaState.ACTIVE)
                dead = sum(one.state == ReplicaState.DEAD for one in copies)
                held = Counter(dict.fromkeys(nodes or [info.peer_id], 0))
                held.update([info.peer_id] * len(info.local_shards))
                held.update(one.peer_id for one in info.remote_shards)
                fewest = min(active.values())
                found.append(Copies(name, info.shard_count, fewest, dead, *wanted, held))
        return found

    def adopt(self, fields: Mapping[str, Mapping[str, models.PayloadSchemaType]]) -> None:
        """Bring collections that an earlier release or a killed process made to what is needed.

        One copy suffices for a write, and every field that filters name has its index.

        Args:
            fields: Those fields, by how the names of collections begin.
        """
        one = models.CollectionParamsDiff(write_consistency_factor=1)
        for name in self._made():
            of = PREFIX + name
            with suppress(NoCollection):
                made = self.call(methodcaller("get_collection", of))
                if made.config.params.write_consistency_factor != 1:
                    self.call(methodcaller("update_collection", of, collection_params=one))
                for room, schemas in fields.items():
                    for field in schemas.keys() - made.payload_schema.keys():
                        if name.startswith(room):
                            self._index(name, field, schemas[field])

    def epoch(self, name: str) -> str | None:
        """Return what `set_epoch` noted, empty: nothing; None for an unknown collection."""
        try:
            made = self.call(methodcaller("get_collection", PREFIX + name), PROBE_S)
        except NoCollection:
            return None
        return str((made.config.metadata or {}).get(EPOCH, ""))

    def set_epoch(self, name: str, epoch: str) -> None:
        """Note of which state of the catalog a collection is; an unknown one is fine."""
        of = PREFIX + self._serving(name)
        with suppress(NoCollection):
            self.call(methodcaller("update_collection", of, metadata={EPOCH: epoch}), PROBE_S)

    def _index(self, name: str, field: str, schema: models.PayloadSchemaType) -> None:
        self.call(
            lambda client: client.create_payload_index(
                PREFIX + name, field, field_schema=schema, wait=True
            )
        )

    def drop(self, name: str, *, copies: bool = True) -> None:
        """Remove a collection, and what is asked by its name or filled in its place."""
        for one in self._made():
            if one == name or (copies and one.startswith(name + COPY)):
                self.call(methodcaller("delete_collection", PREFIX + one))
                self._known(partial(_lacks, PREFIX + one))

    def _known(self, knows: Callable[[QdrantClient], bool]) -> None:
        """Wait until every node that answers knows of a change of collections.

        The cluster agrees on one by one node and tells it to the others, and requests go to all in
        turn. One that does not answer is told before it answers again.

        Raises:
            SearchAway: A node does not know it in KNOWN_S.
        """
        until_s = time.monotonic() + KNOWN_S
        for url in self.urls:
            client = self._client(url, PROBE_S)
            with suppress(ResponseHandlingException, UnexpectedResponse):
                while not knows(client):
                    if time.monotonic() > until_s:
                        raise _away(f"{without_credentials(url)} does not follow the others")
                    time.sleep(LOOK_S)

    # --- points; an unknown collection has none

    def upsert(self, name: str, points: Sequence[models.PointStruct]) -> None:
        """Add or replace points; they are durable on a copy and found after it.

        A copy that failed in the meantime is not asked again before it has caught up.

        Raises:
            NoCollection: There is no such collection.
        """
        self.write(lambda client: client.upsert(PREFIX + name, points=list(points), wait=True))

    def delete(self, name: str, chosen: Sequence[int] | models.Filter) -> None:
        if not isinstance(chosen, models.Filter) and not chosen:
            return  # the engine refuses an update of nothing
        selector = (
            models.FilterSelector(filter=chosen)
            if isinstance(chosen, models.Filter)
            else models.PointIdsList(points=list(chosen))
        )
        with suppress(NoCollection):
            self.write(
                lambda client: client.delete(PREFIX + name, points_selector=selector, wait=True)
            )

    def _found(
        self, none: Answer, ask: Callable[[QdrantClient], Answer], timeout_s: int = SEARCH_S
    ) -> Answer:
        try:
            return self.read(ask, timeout_s)
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
        """Return up to n points' ids and scores, best first.

        Raises:
            NoCollection: There is no such collection.
        """

        def ask(client: QdrantClient) -> list[tuple[int, float]]:
            found = client.query_points(
                PREFIX + name,
                query=query,
                using=using,
                limit=n,
                query_filter=chosen,
                search_params=models.SearchParams(hnsw_ef=width) if width else None,
                with_payload=False,
                timeout=SEARCH_S,
            )
            return [(cast("int", point.id), point.score) for point in found.points]

        return self.read(ask)

    def count(
        self,
        name: str,
        chosen: models.Filter | None = None,
        *,
        exact: bool = True,
        agreed: bool = False,
        timeout_s: int = SEARCH_S,
    ) -> int:
        """Return how many points there are; an exact count reads every id.

        With `agreed` as most copies of a shard say: a single one may be behind.
        """
        asked = models.CountRequest(filter=chosen, exact=exact)
        by = models.ReadConsistencyType.MAJORITY if agreed else None

        def ask(client: QdrantClient) -> int:
            count = client.http.points_api.count_points
            found = count(PREFIX + name, by, timeout_s, asked).result
            return found.count if found else 0

        return self._found(0, ask, timeout_s)

    def facet(self, name: str, field: str, n: int) -> dict[str, int]:
        """Return up to n values of a field with an index and their points, those of most first."""
        timeout_s = SEARCH_S if n < PIECE else WORK_S

        def ask(client: QdrantClient) -> dict[str, int]:
            found = client.facet(PREFIX + name, field, limit=n, timeout=timeout_s).hits
            return {str(hit.value): hit.count for hit in found}

        return self._found({}, ask, timeout_s)

    def payload(self, name: str, ids: Sequence[int], field: str) -> dict[int, list[str]]:
        """Return a field of several values of points; those that are gone are absent."""

        def ask(client: QdrantClient) -> dict[int, list[str]]:
            found = client.retrieve(PREFIX + name, list(ids), [field], timeout=SEARCH_S)
            return {cast("int", point.id): (point.payload or {}).get(field, []) for point in found}

        return self._found({}, ask)

    def first_ids(self, name: str, chosen: models.Filter, n: int) -> list[int]:
        """Return the lowest ids, up to n, of the points that meet a filter."""

        def ask(client: QdrantClient) -> list[int]:
            found = client.scroll(PREFIX + name, chosen, n, with_payload=False, timeout=SEARCH_S)
            return [cast("int", point.id) for point in found[0]]

        return self._found([], ask)

    def ids_after(self, name: str, after: int, most: int) -> list[int]:
        """Return the lowest ids, up to so many, above one."""
        try:
            found = self.call(
                lambda client: client.scroll(
                    PREFIX + name, limit=most, offset=after + 1, with_payload=False
                )
            )
        except NoCollection:
            return []
        return [cast("int", point.id) for point in found[0]]

    def ids(self, name: str, piece: int = 10_000) -> set[int]:
        found, after = set[int](), 0
        while page := self.ids_after(name, after, piece):
            found.update(page)
            after = page[-1]
        return found


def _names(client: QdrantClient) -> set[str]:
    return {one.name for one in client.get_collections().collections}


def _lacks(name: str, client: QdrantClient) -> bool:
    return name not in _names(client)


def _away(problem: str) -> SearchAway:
    return SearchAway(f"the search engine is away: {problem}", retry_after_s=RETRY_S)


# Keep vectors in the engine: the VectorStore port.

PIECE = 256
"""Rows a request: 1.5 MB of JSON at 384 numbers a row."""

DENSE = "dense"
"""The name of a point's vector."""

ROOM = "vectors_"
"""How the names of these collections begin; words are in others of the same engine."""


class QdrantStore(SharedStore):
    """Vectors in one engine: a collection a build."""

    def __init__(self, engine: SearchEngine, steps: Steps, *, ef_search: int) -> None:
        """Use `engine`, searching `ef_search` wide at least; nothing is sent yet."""
        self._engine = engine
        self._steps = steps
        self._ef_search = ef_search
        self._seen: set[str] = set()
        """Collections that were there: one of them that is gone was lost."""

    def upsert(
        self, collection: str, chunk_ids: Sequence[int], rows: FloatArray, stamps: Stamps
    ) -> None:
        with self._steps.at("qdrant.upsert"):
            for at, ids in enumerate(pieces(chunk_ids, PIECE)):
                some = zip(ids, rows[at * PIECE :][: len(ids)], stamps.of(ids), strict=True)
                points = [
                    models.PointStruct(id=i, vector={DENSE: row.tolist()}, payload=dict(stamp))
                    for i, row, stamp in some
                ]
                self._put(collection, points, rows.shape[1])

    def _put(self, collection: str, points: Sequence[models.PointStruct], dimension: int) -> None:
        try:
            self._engine.upsert(ROOM + collection, points)
        except NoCollection as exc:
            self._refuse_lost(collection, exc)
            self._engine.create(ROOM + collection, dense={DENSE: dimension})
            self._engine.upsert(ROOM + collection, points)
        self._seen.add(collection)

    def _refuse_lost(self, collection: str, cause: NoCollection) -> None:
        """Refuse to go on with a collection that was there and is not."""
        if collection in self._seen:
            self._seen.discard(collection)
            raise IndexDamaged(f"the search engine lost the vectors {collection}") from cause

    def delete(self, collection: str, chunk_ids: Sequence[int]) -> None:
        if chunk_ids:
            with self._steps.at("qdrant.delete"):
                self._engine.delete(ROOM + collection, chunk_ids)

    def search(self, collection: str, query: FloatArray, n: int) -> list[int]:
        width = max(n, self._ef_search)
        try:
            found = self._engine.search(ROOM + collection, DENSE, query.tolist(), n, width=width)
        except NoCollection as exc:
            self._refuse_lost(collection, exc)
            return []
        self._seen.add(collection)
        return [chunk_id for chunk_id, _ in found]

    def ids(self, collection: str) -> set[int]:
        return self._engine.ids(ROOM + collection)

    def count(self, collection: str) -> int:
        return self._engine.count(ROOM + collection, timeout_s=WORK_S)

    def count_agreed(self, collection: str) -> int:
        return self._engine.count(ROOM + collection, agreed=True, timeout_s=WORK_S)

    def collections(self) -> list[str]:
        found = self._engine.collections()
        return [name.removeprefix(ROOM) for name in found if name.startswith(ROOM)]

    def ids_after(self, collection: str, after: int, most: int) -> list[int]:
        return self._engine.ids_after(ROOM + collection, after, most)

    def epoch(self, collection: str) -> str | None:
        return self._engine.epoch(ROOM + collection)

    def set_epoch(self, collection: str, epoch: str) -> None:
        with self._steps.at("qdrant.epoch"):
            self._engine.set_epoch(ROOM + collection, epoch)

    def shadow_collection(self, collection: str) -> str:
        return self._engine.shadow_collection(ROOM + collection).removeprefix(ROOM)

    def delete_unserved(self, collection: str, filled: str = "") -> None:
        with self._steps.at("qdrant.delete_unserved"):
            self._engine.delete_unserved(ROOM + collection, filled and ROOM + filled)

    def promote(self, collection: str, filled: str) -> None:
        empty = filled not in self._seen
        with self._steps.at("qdrant.switch"):
            made = self._engine.promote(ROOM + collection, ROOM + filled, empty=empty)
        self._seen -= {collection, filled}
        if made:
            self._seen.add(collection)

    def drop(self, collection: str) -> None:
        self._seen.discard(collection)
        with self._steps.at("qdrant.drop"):
            self._engine.drop(ROOM + collection)

    def set_aside(self) -> str:
        """Drop every collection of vectors; the engine keeps none under another name."""
        for name in self.collections():
            self.drop(name)
        return ""

    def close(self) -> None:
        self._engine.close()
