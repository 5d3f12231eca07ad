"""A double of Qdrant's server: its engine (`qdrant-edge-py`), a shard a collection, over loopback.

It speaks the part of the REST API that our client uses. Its points are in one shard on one node; with
several `peers` it keeps a table of the copies that a cluster of so many would have, and refuses as
one does: what a copy on a peer that is `down` lacks, and what too few copies confirm. Raft is not in
it. Run as a process it can be killed and started again:

    python -m tests.fakes.qdrant_double FOLDER PORT
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import parse_qsl, unquote, urlsplit

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
        kinds = {"value": edge.MatchValue, "any": edge.MatchAny}
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

    def __init__(self, folder: Path, peers: int) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self.shards = {
            path.name: edge.EdgeShard.load(str(path)) for path in folder.iterdir() if path.is_dir()
        }
        self.peers = peers
        self.down: set[int] = set()
        """Peers that are dead, full or frozen, from 1."""
        self.behind = 0
        """Points that the copy lacks which answers a count for itself, without `consistency`."""
        self._kept = folder / "collections.json"
        kept = json.loads(self._kept.read_text()) if self._kept.exists() else [{}, {}]
        self.settings: dict[str, Body] = kept[0]
        """What each collection was made with; its indexes; the state of each copy by shard."""
        self.aliases: dict[str, str] = kept[1]

    def _keep(self) -> None:
        """Write both whole or not at all: the double is killed in the campaigns."""
        new = self._kept.with_suffix(".new")
        new.write_text(json.dumps([self.settings, self.aliases]))
        new.replace(self._kept)

    def shard(self, name: str) -> Engines:
        return self.shards[self.real(name)]

    def real(self, name: str) -> str:
        """Return the collection that a name or an alias means."""
        name = self.aliases.get(name, name)
        if name not in self.shards:
            raise _Refused(404, f"Not found: Collection `{name}` doesn't exist!")
        return name

    def read(self, name: str) -> Engines:
        """Return the shard, if an active copy of each part of it is on a peer that answers."""
        for number, copies in enumerate(self.settings[self.real(name)]["copies"]):
            if not [peer for peer, state in copies if state == "Active" and peer not in self.down]:
                raise _Refused(500, f"Service internal error: shard {number} has no active replica")
        return self.shard(name)

    def recover(self) -> None:
        """Make every copy on a peer that answers whole again, as a cluster does by itself."""
        for one in self.settings.values():
            for copies in one["copies"]:
                for copy in copies:
                    copy[1] = "Dead" if copy[0] in self.down else "Active"

    def _confirm(self, name: str) -> None:
        """Mark copies that lack a write as dead; refuse it where too few confirm it."""
        one = self.settings[self.real(name)]
        for copies in one["copies"]:
            active = [copy for copy in copies if copy[1] == "Active"]
            failed = [copy for copy in active if copy[0] in self.down]
            wanted = min(one["write_consistency_factor"], len(copies))
            if len(active) - len(failed) < wanted:
                raise _Refused(
                    500, f"Service internal error: fewer than {wanted} replicas confirm the update"
                )
            for copy in failed:
                copy[1] = "Dead"

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
        copies = body.get("replication_factor") or 1
        shards = body.get("shard_number") or self.peers
        self.settings[name] = {
            "vectors": body.get("vectors") or {},
            "shard_number": shards,
            "replication_factor": copies,
            "write_consistency_factor": body.get("write_consistency_factor") or 1,
            "fields": {},
            "metadata": dict(body.get("metadata") or {}),
            "copies": [
                [[1 + (at + n) % self.peers, "Active"] for n in range(min(copies, self.peers))]
                for at in range(shards)
            ],
        }
        self._keep()
        return True

    def change(self, name: str, body: Body) -> bool:
        one = self.settings[self.real(name)]
        one.update(body.get("params") or {})
        one["metadata"].update(body.get("metadata") or {})  # what is there stays
        self._keep()
        return True

    def info(self, name: str) -> Body:
        one = self.settings[self.real(name)]
        kept_apart = {"fields", "copies", "metadata"}
        params = {key: value for key, value in one.items() if key not in kept_apart}
        fields = {key: {"data_type": kind, "points": 0} for key, kind in one["fields"].items()}
        config = {
            "params": params,
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
            "optimizer_config": {"default_segment_number": 0, "flush_interval_sec": 5},
            "metadata": one["metadata"],
        }
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "config": config,
            "payload_schema": fields,
        }

    def cluster(self, name: str) -> Body:
        """Return where the copies of a collection are, as the first peer sees them."""
        copies = [
            {"shard_id": number, "peer_id": peer, "state": state}
            for number, of_shard in enumerate(self.settings[self.real(name)]["copies"])
            for peer, state in of_shard
        ]
        local = [{**one, "points_count": 0} for one in copies if one["peer_id"] == 1]
        return {
            "peer_id": 1,
            "shard_count": len(self.settings[self.real(name)]["copies"]),
            "local_shards": local,
            "remote_shards": [one for one in copies if one["peer_id"] != 1],
            "shard_transfers": [],
        }

    def peer_list(self) -> Body:
        if self.peers == 1:
            return {"status": "disabled"}
        return {
            "status": "enabled",
            "peer_id": 1,
            "peers": {str(1 + n): {"uri": f"http://qdrant-{n}:6335"} for n in range(self.peers)},
            "raft_info": {"term": 1, "commit": 1, "pending_operations": 0, "is_voter": True},
            "consensus_thread_status": {
                "consensus_thread_status": "working",
                "last_update": "2026-11-01T00:00:00Z",
            },
            "message_send_failures": {},
        }

    def change_aliases(self, body: Body) -> bool:
        for action in body["actions"]:
            ((kind, one),) = action.items()
            if kind == "delete_alias":
                self.aliases.pop(one["alias_name"], None)
                continue
            if one["alias_name"] in self.shards:
                raise _Refused(409, f"Collection `{one['alias_name']}` already exists!")
            self.aliases[one["alias_name"]] = self.real(one["collection_name"])
        self._keep()
        return True

    def drop(self, name: str) -> bool:
        shard = self.shards.pop(name, None)
        if shard is not None:
            shard.close()
            shutil.rmtree(self.folder / name)
            del self.settings[name]
            self.aliases = {one: real for one, real in self.aliases.items() if real != name}
            self._keep()
        return shard is not None

    def upsert(self, name: str, body: Body) -> Body:
        if not body["points"]:
            raise _Refused(400, "Wrong input: Empty update request")
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
        if body.get("points") == []:
            raise _Refused(400, "Wrong input: Empty update request")
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
        self.settings[self.real(name)]["fields"][body["field_name"]] = schema
        self._keep()
        return {"operation_id": 0, "status": "completed"}

    def _update(self, name: str, operation: Engines) -> None:
        self._confirm(name)
        try:
            self.shard(name).update(operation)
        except Exception as exc:  # the engine's own classes are not exported
            if isinstance(exc, _Refused):
                raise
            raise _Refused(400, f"Wrong input: {exc}") from exc

    def count(self, name: str, body: Body) -> Body:
        request = edge.CountRequest(exact=True, filter=_filter(body.get("filter")))
        behind = 0 if body.get("consistency") else self.behind
        return {"count": max(0, self.read(name).count(request) - behind)}

    def scroll(self, name: str, body: Body) -> Body:
        points, after = self.read(name).scroll(
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
        found = self.read(name).facet(edge.FacetRequest(body["key"], limit=body["limit"]))
        return {"hits": [{"value": hit.value, "count": hit.count} for hit in found.hits]}

    def retrieve(self, name: str, body: Body) -> list[Body]:
        fields = body["with_payload"]
        found = self.read(name).retrieve(body["ids"], with_payload=fields, with_vector=False)
        return [{"id": point.id, "payload": point.payload} for point in found]

    def query(self, name: str, body: Body) -> Body:
        query, params = body["query"], body.get("params") or {}
        if isinstance(query, dict) and "nearest" in query:
            query = query["nearest"]
        found = self.read(name).query(
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


def alias_list(aliases: Mapping[str, str]) -> Body:
    return {
        "aliases": [{"alias_name": name, "collection_name": real} for name, real in aliases.items()]
    }


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
                    dict(parse_qsl(urlsplit(self.path).query)) | json.loads(content or "{}"),
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
        if status == 429:  # too many requests
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of the base class


class QdrantDouble(ThreadingHTTPServer):
    """The server; a context manager in a thread of its own."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128
    """Connections that wait to be taken; more are reset."""

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        api_key: str = "",
        peers: int = 1,
        beside: QdrantDouble | None = None,
    ) -> None:
        """Serve the collections in `folder`; port 0 takes a free one.

        With `beside` it is another node of the same cluster: it serves what that one holds.
        """
        self.held: _Collections = beside.held if beside else _Collections(folder, peers)
        self._knew: tuple[set[str], dict[str, str]] = set(), {}
        self._key = api_key
        self.refusals: list[tuple[int, str]] = []
        """Status and words of the next requests for points, which are not done."""
        self.stale = 0
        """Next requests that are answered by the collections and aliases of before the last change
        of them, as those of a node that has not heard of it yet are."""
        self.awake = threading.Event()
        """Cleared: requests wait, as those of a frozen node do."""
        self.awake.set()
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
        self.awake.wait()
        held = self.held
        with held.lock:
            if not path:
                return {"title": "double of Qdrant", "version": VERSION}
            names, aliases = self._known()
            if path == ["collections"]:
                return {"collections": [{"name": name} for name in names]}
            if path == ["cluster"]:
                return held.peer_list()
            if path == ["aliases"]:
                return alias_list(aliases)
            if path == ["collections", "aliases"]:
                return held.change_aliases(body)
            name, operation = path[1], "/".join(path[2:])
            if operation and aliases.get(name, name) not in names:
                raise _Refused(404, f"Not found: Collection `{name}` doesn't exist!")
            if operation.startswith("points") and self.refusals:
                raise _Refused(*self.refusals.pop(0))
            if operation == "cluster":
                return held.cluster(name)
            if operation == "points" and method == "POST":
                return held.retrieve(name, body)
            if not operation and method == "GET":
                return held.info(name)
            if not operation and method == "PATCH":
                return held.change(name, body)
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

    def _known(self) -> tuple[set[str], dict[str, str]]:
        """Return the collections and aliases that this node knows of."""
        now = set(self.held.shards), dict(self.held.aliases)
        if self.stale and now != self._knew:
            self.stale -= 1
        else:
            self._knew = now
        return self._knew

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
        with self.held.lock:
            for shard in self.held.shards.values():
                shard.close()
            self.held.shards.clear()


if __name__ == "__main__":
    QdrantDouble(Path(sys.argv[1]), int(sys.argv[2])).serve_forever()
