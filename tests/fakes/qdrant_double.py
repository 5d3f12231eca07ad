"""A double of Qdrant's server: its engine (`qdrant-edge-py`), a shard a collection, over loopback.

It speaks the part of the REST API that our client uses. It has one shard and one node: replication,
majorities and raft are not in it. Run as a process it can be killed and started again:

    python -m tests.fakes.qdrant_double FOLDER PORT
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import unquote, urlsplit

import qdrant_edge as edge

VERSION = "1.20.0"
Body = dict[str, Any]
Engines = Any
"""A value of the engine, whose types are in an extra that is not always here."""


class _Refused(Exception):
    """A reply that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _condition(body: Body) -> Engines:
    """Return a condition of a filter."""
    if "has_id" in body:
        return edge.HasIdCondition(set(body["has_id"]))
    if "key" not in body:
        return _filter(body)
    match, bounds = body.get("match"), body.get("range")
    matched = None
    if match is not None:
        kinds = {
            "value": edge.MatchValue,
            "any": edge.MatchAny,
        }
        ((kind, value),) = match.items()
        matched = kinds[kind](value)
    between = edge.RangeFloat(**bounds) if bounds else None
    return edge.FieldCondition(body["key"], match=matched, range=between)


def _filter(body: Body | None) -> Engines:
    if not body:
        return None
    parts = {
        key: [_condition(one) for one in (ones if isinstance(ones, list) else [ones])]
        for key, ones in body.items()
        if ones
    }
    return edge.Filter(**parts)


def _vector(given: object) -> Engines:
    if isinstance(given, dict):
        return edge.SparseVector(given["indices"], given["values"])
    return given


class _Collections:
    """The shards in a folder; one call at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self.shards = {
            path.name: edge.EdgeShard.load(str(path)) for path in folder.iterdir() if path.is_dir()
        }

    def shard(self, name: str) -> Engines:
        if name not in self.shards:
            raise _Refused(404, f"Not found: Collection `{name}` doesn't exist!")
        return self.shards[name]

    def create(self, name: str, body: Body) -> bool:
        if name in self.shards:
            raise _Refused(409, f"Collection `{name}` already exists!")
        vectors = {
            key: edge.EdgeVectorParams(one["size"], getattr(edge.Distance, one["distance"]))
            for key, one in (body.get("vectors") or {}).items()
        }
        sparse = {key: edge.EdgeSparseVectorParams() for key in body.get("sparse_vectors") or {}}
        path = self.folder / name
        path.mkdir()
        config = edge.EdgeConfig(vectors=vectors, sparse_vectors=sparse)
        self.shards[name] = edge.EdgeShard.create(str(path), config)
        return True

    def drop(self, name: str) -> bool:
        shard = self.shards.pop(name, None)
        if shard is not None:
            shard.close()
            shutil.rmtree(self.folder / name)
        return shard is not None

    def upsert(self, name: str, body: Body) -> Body:
        points = [
            edge.Point(
                one["id"],
                {key: _vector(vector) for key, vector in one["vector"].items()},
                one.get("payload") or {},
            )
            for one in body["points"]
        ]
        self._update(name, edge.UpdateOperation.upsert_points(points))
        return {"operation_id": 0, "status": "completed"}

    def delete(self, name: str, body: Body) -> Body:
        if "points" in body:
            operation = edge.UpdateOperation.delete_points(body["points"])
        else:
            operation = edge.UpdateOperation.delete_points_by_filter(_filter(body["filter"]))
        self._update(name, operation)
        return {"operation_id": 0, "status": "completed"}

    def index(self, name: str, body: Body) -> Body:
        schema = body["field_schema"]
        kind = getattr(edge.PayloadSchemaType, schema.capitalize())
        operation = edge.UpdateOperation.create_field_index(body["field_name"], kind)
        self._update(name, operation)
        return {"operation_id": 0, "status": "completed"}

    def _update(self, name: str, operation: Engines) -> None:
        try:
            self.shard(name).update(operation)
        except Exception as exc:  # the engine's own classes are not exported
            if isinstance(exc, _Refused):
                raise
            raise _Refused(400, f"Wrong input: {exc}") from exc

    def count(self, name: str, body: Body) -> Body:
        request = edge.CountRequest(exact=True, filter=_filter(body.get("filter")))
        return {"count": self.shard(name).count(request)}

    def scroll(self, name: str, body: Body) -> Body:
        points, after = self.shard(name).scroll(
            edge.ScrollRequest(
                offset=body.get("offset"),
                limit=body.get("limit", 10),
                filter=_filter(body.get("filter")),
                with_payload=bool(body.get("with_payload")),
            )
        )
        found = [{"id": point.id, "payload": point.payload} for point in points]
        return {"points": found, "next_page_offset": after}

    def facet(self, name: str, body: Body) -> Body:
        found = self.shard(name).facet(edge.FacetRequest(body["key"], limit=body["limit"]))
        return {"hits": [{"value": hit.value, "count": hit.count} for hit in found.hits]}

    def retrieve(self, name: str, body: Body) -> list[Body]:
        fields = body["with_payload"]
        found = self.shard(name).retrieve(body["ids"], with_payload=fields, with_vector=False)
        return [{"id": point.id, "payload": point.payload} for point in found]

    def query(self, name: str, body: Body) -> Body:
        query, params = body["query"], body.get("params") or {}
        if isinstance(query, dict) and "nearest" in query:
            query = query["nearest"]
        found = self.shard(name).query(
            edge.QueryRequest(
                limit=body["limit"],
                query=edge.Query.Nearest(_vector(query), using=body["using"]),
                filter=_filter(body.get("filter")),
                params=edge.SearchParams(
                    hnsw_ef=params.get("hnsw_ef"), exact=bool(params.get("exact"))
                ),
                with_payload=False,
            )
        )
        return {"points": [{"id": one.id, "version": 0, "score": one.score} for one in found]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: QdrantDouble

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            status, reply = (
                200,
                self.server.answer(
                    self.command,
                    [unquote(part) for part in urlsplit(self.path).path.split("/") if part],
                    json.loads(content) if content else {},
                    self.headers.get("api-key", ""),
                ),
            )
            body = {"result": reply, "status": "ok", "time": 0.0}
            if urlsplit(self.path).path == "/":  # the root alone is answered bare
                body = cast("Body", reply)
        except _Refused as exc:
            status, body = exc.status, {"status": {"error": str(exc)}, "time": 0.0}
        sent = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names of the base class


class QdrantDouble(ThreadingHTTPServer):
    """The server; a context manager in a thread of its own."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128
    """Connections that wait to be taken; more are reset."""

    def __init__(self, folder: Path, port: int = 0, api_key: str = "") -> None:
        """Serve the collections in `folder`; port 0 takes a free one."""
        self._held = _Collections(folder)
        self._key = api_key
        self.asked: list[tuple[str, str]] = []
        """Method and path of every request."""
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, method: str, path: list[str], body: Body, key: str) -> object:
        """Return the result of a request."""
        self.asked.append((method, "/".join(path)))
        if self._key and key != self._key:
            raise _Refused(401, "Must provide an API key")
        held = self._held
        with held.lock:
            if not path:
                return {"title": "double of Qdrant", "version": VERSION}
            if path == ["collections"]:
                return {"collections": [{"name": name} for name in held.shards]}
            name, operation = path[1], "/".join(path[2:])
            if operation == "points" and method == "POST":
                return held.retrieve(name, body)
            if not operation:
                return held.create(name, body) if method == "PUT" else held.drop(name)
            operations: dict[str, Callable[[str, Body], Body]] = {
                "points": held.upsert,
                "points/delete": held.delete,
                "points/count": held.count,
                "points/scroll": held.scroll,
                "points/query": held.query,
                "index": held.index,
                "facet": held.facet,
            }
            return operations[operation](name, body)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()
        self.server_close()
        with self._held.lock:
            for shard in self._held.shards.values():
                shard.close()
            self._held.shards.clear()


if __name__ == "__main__":
    QdrantDouble(Path(sys.argv[1]), int(sys.argv[2])).serve_forever()
