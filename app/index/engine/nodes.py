"""Call Qdrant's nodes over HTTP: one that answers, with errors as our own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from app.core.calls import Calls
from app.core.errors import DiskFull, IndexDamaged, InvalidInput, SearchAway
from app.core.hosts import without_credentials

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
                    f"SEARCH_URL {without_credentials(url)!r} is no address: write http://HOST:6333,"
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
