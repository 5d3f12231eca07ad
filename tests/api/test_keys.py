"""Keys: every route and tool by scope and by library; what is kept of a key; what a key changes."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from starlette.testclient import TestClient

from app.api.mcp_server import TOOLS
from app.api.middleware.access import needs_key
from app.core.access import KeyScope
from tests.api.conftest import Site, listening, site

ADMIN = "adm1n"
SCOPES = get_args(KeyScope)
HIDDEN, OWN = "walrus", "lantern"
"""A word of the public document alone, and one of the paper alone."""
TEXTS = {
    "public": f"Arctic\n\nThe {HIDDEN} lives on the ice of the north. The {HIDDEN} whistles.",
    "papers": f"Harbour\n\nThe {OWN} of the harbour burns at night. The {OWN} is green.",
}

Operation = tuple[str, str, Mapping[str, Any]]
"""Method, path and what OpenAPI says of it."""


def operations(shop: Site) -> list[Operation]:
    """Return every operation that asks for a key."""
    return [
        (method.upper(), path, operation)
        for path, methods in shop.app.openapi()["paths"].items()
        for method, operation in methods.items()
        if path.startswith(("/api/", "/v1/"))
    ]


def declared(operation: Mapping[str, Any]) -> tuple[KeyScope, bool]:
    """Return the one scope of an operation, and whether it needs every library."""
    (security,) = operation["security"]
    ((name, (scope,)),) = security.items()
    return scope, {"key": False, "key_of_every_library": True}[name]


def test_all_that_is_open_without_a_key_is_named(shop: Site) -> None:
    """A route elsewhere would be open, or know no caller (app/api/middleware/access.py)."""
    documented = set(shop.app.openapi()["paths"])
    mounted = {path for route in shop.app.routes if (path := getattr(route, "path", ""))}
    open_ = {path for path in documented | mounted if not needs_key(path)}
    page = {"/", "/assets", "/icon.svg", "/pdfjs"}
    described = {"/docs", "/docs-assets", "/openapi.json", "/redoc"}
    state = {"/health", "/health/live", "/health/ready", "/metrics"}
    assert open_ - {"/shared/{token}"} <= page | described | state


@dataclass
class Keyed:
    """A site with a document in each library, and keys."""

    site: Site
    keys: Mapping[str, str]
    documents: Mapping[str, str]
    job: str
    """The upload of the public document."""

    def send(self, key: str, method: str, path: str, **request: Any) -> Any:
        headers = {"X-API-Key": self.keys.get(key, key)}
        return self.site.client.request(method, path, headers=headers, **request)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with site(tmp_path_factory.mktemp("keys"), api_key=ADMIN) as shop:
        shop.client.headers["X-API-Key"] = ADMIN
        documents: dict[str, str] = {}
        for library, text in TEXTS.items():
            status, body = shop.upload(
                (f"{library}.txt", text.encode()), library=library, tags=f"of-{library}"
            )
            assert status == 201, body
            documents[library] = body["documents"][0]["doc_id"]  # type: ignore[index]
        job = shop.client.get("/api/v1/jobs").json()["jobs"][-1]["id"]
        keys = {}
        for scope in SCOPES:
            for libraries in ([], ["papers"]):
                name = "-".join([scope, *libraries])
                body = {"name": name, "scopes": [scope], "libraries": libraries}
                made = shop.client.post("/api/v1/keys", json=body)
                assert made.status_code == 201, made.text
                keys[name] = made.json()["key"]
        del shop.client.headers["X-API-Key"]
        yield Keyed(shop, keys, documents, job)


def test_every_operation_declares_one_scope(keyed: Keyed) -> None:
    found = operations(keyed.site)
    assert len(found) > 70
    for method, path, operation in found:
        assert declared(operation)[0] in SCOPES, (method, path)
    assert all(tool.scope in SCOPES for tool in TOOLS.values())


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_opens_what_its_scope_names_and_nothing_else(keyed: Keyed, scope: str) -> None:
    for method, path, operation in operations(keyed.site):
        needed, every_library = declared(operation)
        if (scope, method) == ("admin", "DELETE"):
            continue  # what it deletes, other tests need
        for key, limited in ((scope, False), (f"{scope}-papers", True)):
            reply = keyed.send(key, method, path.replace("{library}", "papers"))
            allowed = scope in (needed, "admin") and not (limited and every_library)
            refused = reply.status_code == 403 and reply.json().get("code", "forbidden")
            assert (refused == "forbidden") != allowed, (key, method, path, reply.text)
            if scope not in (needed, "admin"):
                assert f"lacks the scope {needed!r}" in reply.text


def request_for(keyed: Keyed, path: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request that would show, or change, what is public."""
    filled = {
        "doc_id": keyed.documents["public"], "tag": "of-public", "job_id": keyed.job,
        "library": "public", "model": "documind-public",
    }  # fmt: skip
    values = {"q": HIDDEN, "folder": "f", "start": 0, "end": 20, "confirm": "public"}
    question = f"Where does the {HIDDEN} live?"
    bodies = {
        "query": {"question": question}, "check": {"text": f"The {HIDDEN} lives on ice."},
        "correct_document": {"title": "Taken"}, "rename_tag": {"name": "taken"},
        "remove_synced": {"library": "public", "folder": "f", "source_keys": ["public.txt"]},
        "sync_zotero": {"library": "public"},
        "fetch_url": {"url": "http://127.0.0.1/x", "library": "public"},
        "openai_response": {"model": "documind-public", "input": question},
        "openai_vector_store_search": {"query": HIDDEN},
        "openai_embeddings": {"model": "documind", "input": question},
        "openai_chat_completion": {
            "model": "documind-public", "messages": [{"role": "user", "content": question}],
        },
    }  # fmt: skip
    named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    return {
        "url": re.sub(r"{(\w+)}", lambda found: filled.get(found[1], "x"), path),
        "params": {name: values[name] for name in named & set(values)},
        "json": bodies.get(operation["operationId"]),
        "files": {"file": ("own.txt", b"Taken.")} if path.endswith("/ingest") else None,
        "named": named,
    }


def test_a_limited_key_reaches_nothing_of_another_library(keyed: Keyed) -> None:
    tried = 0
    before = keyed.send(ADMIN, "GET", "/api/v1/papers", params={"library": "public"}).json()
    for method, path, operation in operations(keyed.site):
        scope, every_library = declared(operation)
        request = request_for(keyed, path, operation)
        if every_library:
            continue
        url, params, named = request["url"], request["params"], request["named"]
        for library in (None, "all", "public"):
            asked = {**params, **({"library": library} if library and "library" in named else {})}
            body = request["json"]
            if body and library and operation["operationId"] in ("query", "check"):
                body = {**body, "library": library}
            sent = {"params": asked, "json": body, "files": request["files"]}
            reply = keyed.send(f"{scope}-papers", method, url, **sent)
            shown = (
                reply.text.replace(f"The {HIDDEN} lives on ice", "")
                .replace(f"Where does the {HIDDEN} live", "")
                .replace(f'"query":"{HIDDEN}"', "")
            )
            assert HIDDEN not in shown, (method, path, asked, reply.text)
            assert "public.txt" not in shown, (method, path, asked, reply.text)
            if library == "public" and "library" in named:
                assert reply.status_code == 403, (method, path, reply.text)
                assert "limited to papers" in reply.text
            tried += 1
    assert tried > 60
    after = keyed.send(ADMIN, "GET", "/api/v1/papers", params={"library": "public"}).json()
    assert after == before


def test_only_a_key_of_all_libraries_hears_where_a_document_is(keyed: Keyed) -> None:
    hidden, own = f"/api/v1/papers/{keyed.documents['public']}", {"library": "papers"}
    told = keyed.send(ADMIN, "GET", hidden, params=own)
    assert (told.status_code, "'public' has it" in told.text) == (404, True)
    silent = keyed.send("read-papers", "GET", hidden, params=own)
    nowhere = keyed.send("read-papers", "GET", "/api/v1/papers/nowhere", params=own)
    said = silent.json()["detail"].replace(keyed.documents["public"], "nowhere")
    assert (silent.status_code, said) == (404, nowhere.json()["detail"])


def test_a_limited_key_uses_its_own_library(keyed: Keyed) -> None:
    found = keyed.send("read-papers", "GET", "/api/v1/search", params={"q": OWN}).json()
    assert found["hits"][0]["doc_id"] == keyed.documents["papers"]
    assert {hit["library"] for hit in found["hits"]} == {"papers"}
    everything = {"q": OWN, "library": "all"}
    assert keyed.send("read-papers", "GET", "/api/v1/search", params=everything).json() == found
    libraries = keyed.send("read-papers", "GET", "/api/v1/libraries").json()["libraries"]
    assert [one["library"] for one in libraries] == ["papers"]
    tags = keyed.send("read-papers", "GET", "/api/v1/tags").json()["tags"]
    assert [one["tag"] for one in tags] == ["of-papers"]
    asked = {"question": f"When does the {OWN} of the harbour burn?", "library": "all"}
    answer = keyed.send("ask-papers", "POST", "/api/v1/query", json=asked).json()
    assert "burns at night" in answer["answer"]


@pytest.mark.parametrize("limited", [False, True])
def test_every_tool_by_scope_and_library(keyed: Keyed, limited: bool) -> None:
    public = {"library": "public"}
    of = {"document": keyed.documents["public"], **public}
    arguments: Mapping[str, Mapping[str, object]] = {
        "search": {"query": HIDDEN, **public},
        "ask": {"question": f"Where does the {HIDDEN} live?", **public},
        "check": {"text": f"The {HIDDEN} whistles.", **public},
        "list": public,
        "outline": of,
        "grep": {"text": HIDDEN, **of},
        "read": of,
        "cite": {"start": 0, "end": 6, **of},
        "add": {"filename": "more.txt", "text": "More.", **public},
    }

    async def visit(url: str, scope: KeyScope) -> None:
        key = keyed.keys[f"{scope}-papers" if limited else scope]
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=20, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            listed = [tool.name for tool in (await client.list_tools()).tools]
            usable = [tool for tool in TOOLS.values() if scope in (tool.scope, "admin")]
            assert listed == [tool.name for tool in usable]
            for name, tool in TOOLS.items():
                found = await client.call_tool(name, dict(arguments[name]))
                refused = tool not in usable or limited
                assert found.is_error == refused, (scope, name, found)
                if refused:
                    assert "forbidden" in str(found.content)

            if limited and scope in ("read", "admin"):
                # what is in another library only reads as what is nowhere
                told = []
                for doc_id in (keyed.documents["public"], "nowhere"):
                    with pytest.raises(MCPError) as refusal:
                        await client.read_resource(f"documind://papers/{doc_id}")
                    told.append(str(refusal.value).replace(doc_id, ""))
                assert told[0] == told[1]

    with listening(keyed.site.app, lifespan="off") as url:
        for scope in SCOPES:
            anyio.run(visit, url, scope)


def contents(directory: Path) -> dict[str, str]:
    """Return a digest of every file's bytes, of all that lies in a directory."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        # -shm is the memory in which SQLite's readers take their places, rebuilt at each opening
        if path.is_file() and path.suffix != ".sqlite3-shm"
    }


def test_a_read_key_changes_no_byte(tmp_path: Path) -> None:
    with site(tmp_path, api_key=ADMIN) as shop:
        shop.client.headers["X-API-Key"] = ADMIN
        documents = {}
        for library, text in TEXTS.items():
            _, body = shop.upload((f"{library}.txt", text.encode()), library=library)
            documents[library] = body["documents"][0]["doc_id"]  # type: ignore[index]
        keys = {}
        for name, libraries in (("read", []), ("read-papers", ["papers"])):
            body = {"name": name, "scopes": ["read"], "libraries": libraries}
            keys[name] = shop.client.post("/api/v1/keys", json=body).json()["key"]
        job = shop.client.get("/api/v1/jobs").json()["jobs"][0]["id"]
        keyed = Keyed(shop, keys, documents, job)
        assert shop.services.store.supervisor.wait(60)  # what uploads began in the background
        shop.services.store.supervisor.stop()
        before = contents(shop.settings.data_dir)
        sent = 0
        while sent < 2000:
            for method, path, operation in operations(shop):
                request = request_for(keyed, path, operation)
                url = request.pop("url")
                del request["named"]
                for key in keys:
                    keyed.send(key, method, url, **request)
                    sent += 1
        assert contents(shop.settings.data_dir) == before


def test_what_is_kept_of_a_key_opens_nothing(tmp_path: Path) -> None:
    with site(tmp_path, api_key=ADMIN) as shop:
        headers = {"X-API-Key": ADMIN}
        body = {"name": "laptop", "scopes": ["read"]}
        made = shop.client.post("/api/v1/keys", json=body, headers=headers)
        key = made.json()["key"]
        again = shop.client.post("/api/v1/keys", json=body, headers=headers)
        assert (again.status_code, again.json()["code"]) == (409, "conflict")
        reading = {"Authorization": f"Bearer {key}"}
        assert shop.client.get("/api/v1/papers", headers=reading).status_code == 200
        listed = shop.client.get("/api/v1/keys", headers=headers).json()
        assert key not in json.dumps(listed)
        assert listed["keys"][0]["used_at"] is not None
    for path in (tmp_path / "data").rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes()
    with site(tmp_path, api_key=ADMIN) as shop:  # when it was used is written at the stop
        kept = shop.client.get("/api/v1/keys", headers=headers).json()["keys"]
        assert kept == listed["keys"]
        assert shop.client.get("/api/v1/papers", headers=reading).status_code == 200
        gone = shop.client.delete("/api/v1/keys/laptop", headers=headers)
        assert gone.json()["name"] == "laptop"
        assert shop.client.get("/api/v1/papers", headers=reading).status_code == 401
        assert shop.client.delete("/api/v1/keys/laptop", headers=headers).status_code == 404


def test_the_first_key_closes_and_the_last_opens_when_that_is_confirmed(shop: Site) -> None:
    client: TestClient = shop.client
    assert client.get("/api/v1/keys").json() == {"keys": [], "open": True}
    body: dict[str, object] = {"name": "me", "scopes": ["admin"]}
    refused = client.post("/api/v1/keys", json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "asks every request for a key" not in refused.text
    assert "ask every request for a key" in refused.text
    assert client.get("/api/v1/papers").status_code == 200
    key = client.post("/api/v1/keys", json={**body, "confirm": True}).json()["key"]
    assert client.get("/api/v1/papers").status_code == 401
    assert "documind_documents" not in client.get("/metrics").text
    assert client.get("/health").json()["libraries"] is None
    mine = {"X-API-Key": key}
    assert client.get("/health", headers=mine).json()["libraries"] is not None
    assert client.get("/api/v1/papers", headers=mine).status_code == 200
    last = client.delete("/api/v1/keys/me", headers=mine)
    assert (last.status_code, "open to all" in last.text) == (409, True)
    assert client.delete("/api/v1/keys/me?confirm=true", headers=mine).status_code == 200
    assert client.get("/api/v1/papers").status_code == 200


def test_a_change_is_one_line_of_the_log(keyed: Keyed, caplog: pytest.LogCaptureFixture) -> None:
    name = "note-of-the-audit.txt"
    with caplog.at_level(logging.INFO, logger="app.audit"):
        keyed.send("read", "GET", "/api/v1/papers")
        reply = keyed.send(
            "write-papers", "POST", "/api/v1/ingest", files={"file": (name, b"A note of one line.")}
        )
        (document,) = reply.json()["documents"]
        keyed.send("write", "DELETE", f"/api/v1/papers/{document['doc_id']}?library=papers")
    lines = [record.getMessage() for record in caplog.records if record.name == "app.audit"]
    assert lines == [
        f"key 'write-papers': POST /api/v1/ingest 201, documents: '{name}'",
        f"key 'write': DELETE /api/v1/papers/{document['doc_id']} 200,"
        f" documents: '{document['doc_id']}'",
    ]


SETTINGS = (
    ("PUT", "/api/v1/models/answering", {"model": None}),
    ("PUT", "/api/v1/models/host", {"base_url": "http://127.0.0.1:9", "model": "m"}),
    ("POST", "/api/v1/models/pull", {"model": "m"}),
    ("POST", "/api/v1/models/test", {"model": None}),
    ("POST", "/api/v1/reembed", {"library": "papers", "model": "other"}),
    ("POST", "/api/v1/keys", {"name": "laptop", "scopes": ["read"], "confirm": True}),
    ("DELETE", "/api/v1/keys/laptop", None),
)


def test_closed_settings_change_nothing_for_any_key(tmp_path: Path) -> None:
    with site(tmp_path, api_key=ADMIN, allow_settings=False) as shop:
        send = shop.client.request
        key = {"X-API-Key": ADMIN}
        for method, path, body in SETTINGS:
            reply = send(method, path, headers=key, json=body)
            assert (reply.status_code, reply.json()["code"]) == (403, "forbidden"), path
            assert "ALLOW_SETTINGS=false" in reply.json()["detail"]
            assert send(method, path, json=body).status_code == 401, path
        assert send("GET", "/api/v1/keys", headers=key).json()["keys"] == []
        assert send("GET", "/api/v1/models", headers=key).status_code == 200
        assert shop.client.get("/health").json()["settings"] is False
        # each route that an administrator's key changes settings with is one of these
        changing = {
            (method, path)
            for method, path, _ in operations(shop)
            if method != "GET"
            and path.startswith(("/api/v1/models", "/api/v1/keys", "/api/v1/reembed"))
        }
        assert changing == {(m, path.replace("laptop", "{name}")) for m, path, _ in SETTINGS}
