"""The MCP door, with the official client: over HTTP in both eras of the protocol, and over stdio to a real process."""

from __future__ import annotations

import errno
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent
from starlette.testclient import TestClient

from app.api.app import create_app
from app.api.mcp import McpDoor
from app.bootstrap.services import Services
from app.client import DocuMindClient, FileToSend
from app.settings import Settings
from app.storage.files.lock import DirectoryLock
from tests.api.conftest import BASE, LIBRARY, listening, settings_for, site
from tests.api.test_streaming import SlowModel
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.fakes.services import local_services

KEY = "k3y"
WAIT_S = 20.0
NAMES = ["search", "ask", "check", "list", "outline", "grep", "read", "cite", "add"]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@dataclass
class Served:
    """A server with papers, and who answers there."""

    url: str
    models: FixedModels


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("mcp")
    models = FixedModels()

    @contextmanager
    def build(given: Settings) -> Iterator[Services]:
        with local_services(given, models) as services:
            yield services

    app = create_app(settings_for(directory, api_key=KEY), build=build, on_failure=lambda _: None)
    with listening(app) as url, DocuMindClient(url, KEY, timeout_s=WAIT_S) as client:
        assert app.state.edge.startup.wait(WAIT_S)
        wait_for_door(url)
        files = [directory / name for name in LIBRARY]
        for file in files:
            file.write_text(LIBRARY[file.name], "utf-8")
        client.ingest([FileToSend(file) for file in files], "papers")
        copper = next(row for row in client.documents("papers") if row["title"] == "Copper")
        client.correct("papers", str(copper["doc_id"]), tags=["Metal"], metadata={"rating": 5})
        yield Served(url, models)


def wait_for_door(url: str) -> None:
    """The SDK is imported after the server has started."""
    deadline = time.monotonic() + WAIT_S
    headers = {"X-API-Key": KEY, "Accept": "application/json, text/event-stream"}
    while httpx2.post(f"{url}/mcp", json=PING, headers=headers, trust_env=False).status_code == 503:
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


@contextmanager
def unwrapped() -> Iterator[None]:
    """Unwrap the group that a task group puts around the one exception of its body."""
    try:
        yield
    except BaseExceptionGroup as group:
        found: BaseException = group
        while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
            found = found.exceptions[0]
        raise found from None


def text_of(result: CallToolResult) -> str:
    assert all(isinstance(part, TextContent) for part in result.content)
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_search_ask_and_read_over_http(served: Served, mode: str) -> None:
    async def visit() -> None:
        async with (
            httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {KEY}"}, timeout=WAIT_S, trust_env=False
            ) as http,
            Client(
                streamable_http_client(f"{served.url}/mcp", http_client=http), mode=mode
            ) as client,
        ):
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == NAMES
            writing = [
                tool.name
                for tool in tools
                if not (tool.annotations and tool.annotations.read_only_hint)
            ]
            assert writing == ["add"]
            assert all(tool.output_schema for tool in tools)
            assert all(tool.input_schema["properties"] for tool in tools)

            found = await client.call_tool(
                "search", {"query": "why do tides rise", "limit": 2, "verbosity": "high"}
            )
            assert not found.is_error
            assert found.structured_content["hits"][0]["title"] == "Tides"
            assert "Moon" in text_of(found)

            narrowed: list[dict[str, object]] = [{"tags": ["metal"]}, {"metadata": ["rating=4.."]}]
            melting = "What is the melting point of copper?"
            for filters in narrowed:
                tagged = await client.call_tool("search", {"query": "tides, lions", **filters})
                assert {hit["title"] for hit in tagged.structured_content["hits"]} <= {"Copper"}
                told = await client.call_tool("ask", {"question": melting, **filters})
                assert "1085" in text_of(told)
            none = await client.call_tool("ask", {"question": melting, "tags": ["no such tag"]})
            assert none.structured_content["status"] == "abstained"
            refused = await client.call_tool(
                "ask", {"question": "What do lions eat for breakfast?"}
            )
            near = next(
                one for one in refused.structured_content["nearest"] if one["title"] == "Lions"
            )
            assert refused.structured_content["status"] == "abstained"
            assert "These places come nearest:\n- \u201c" in text_of(refused)
            place = f"characters {near['start']} to {near['end']})"
            assert f"\u201c{near['quote']}\u201d (Lions, library papers" in text_of(refused)
            assert place in text_of(refused)

            answered = await client.call_tool(
                "ask", {"question": "What is the melting point of copper?", "library": "papers"}
            )
            assert "1085" in text_of(answered)
            assert "Copper (library papers, document " in text_of(answered)
            assert answered.structured_content["status"] == "answered"

            checked = await client.call_tool(
                "check", {"text": "Lions sleep twenty hours. Lions sleep twelve hours."}
            )
            assert [one["verdict"] for one in checked.structured_content["sentences"]] == [
                "supported",
                "contradicted",
            ]
            assert text_of(checked).startswith("supported: Lions sleep twenty hours.")

            read = await client.call_tool(
                "read", {"library": "papers", "document": "lions.html", "start": 6, "length": 5}
            )
            assert not read.is_error, text_of(read)
            hit = read.structured_content
            whole = await client.call_tool(
                "read", {"library": "papers", "document": hit["document"]["doc_id"]}
            )
            assert whole.structured_content["text"][6:11] == hit["text"]

    with unwrapped():
        anyio.run(visit)


def test_a_text_is_checked_against_another_and_a_model_judges(served: Served) -> None:
    served.models.model = ScriptedGenerator("no")

    async def visit() -> None:
        async with (
            httpx2.AsyncClient(headers={"X-API-Key": KEY}, timeout=WAIT_S, trust_env=False) as http,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
        ):
            text, source = "Lions sleep twenty hours.", "Zinc is a blue metal."
            alone = await client.call_tool("check", {"text": text, "against": source})
            (sentence,) = alone.structured_content["sentences"]
            assert (sentence["verdict"], sentence["better"]) == ("not_found", None)

            better = await client.call_tool(
                "check", {"text": text, "against": source, "library": "papers"}
            )
            (sentence,) = better.structured_content["sentences"]
            assert sentence["verdict"] == "not_found"
            assert 'better: "Lions live in prides and sleep twenty hours."' in text_of(better)

            judged = await client.call_tool("check", {"text": text, "judge": "tiny"})
            (sentence,) = judged.structured_content["sentences"]
            assert (sentence["verdict"], sentence["judged"]) == ("supported", "not_supported")
            assert text_of(judged).startswith(
                "supported (fake:scripted: not supported): Lions sleep twenty hours."
            )

            served.models.model = None
            served.models.reason = "no model host answers"
            refused = await client.call_tool("check", {"text": text, "judge": "tiny"})
            assert refused.is_error
            assert "no model can judge: no model host answers" in text_of(refused)

    try:
        with unwrapped():
            anyio.run(visit)
    finally:
        served.models.model, served.models.reason = None, ""


def test_what_a_model_can_mend_is_told_in_words(served: Served) -> None:
    async def visit() -> None:
        async with (
            httpx2.AsyncClient(headers={"X-API-Key": KEY}, timeout=WAIT_S, trust_env=False) as http,
            Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
        ):
            for tool, arguments, said in (
                ("search", {}, "query"),
                ("search", {"query": "x", "limit": 1000}, "limit"),
                ("search", {"query": "x", "metadata": ["rating"]}, "KEY=VALUE"),
                ("ask", {"question": "What?", "metadata": ["rating"]}, "KEY=VALUE"),
                ("ask", {"question": "What?", "collection": "none"}, "not_found: "),
                ("ask", {"question": " \u200b "}, "nothing to read"),
                ("read", {"library": "papers", "document": "nope"}, "not_found: "),
                ("read", {"library": "elsewhere", "document": "nope"}, "library"),
            ):
                result = await client.call_tool(tool, arguments)
                assert result.is_error, (tool, arguments)
                assert said in text_of(result)
            with pytest.raises(
                MCPError, match="search, ask, check, list, outline, grep, read, cite, add"
            ):
                await client.call_tool("delete_everything", {"library": "papers"})

    with unwrapped():
        anyio.run(visit)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "unauthorized"),
        ({"X-API-Key": "wrong"}, 401, "unauthorized"),
        ({"X-API-Key": KEY, "Host": "evil.example"}, 403, "host_refused"),
        ({"X-API-Key": KEY, "Origin": "http://evil.example"}, 403, "origin_refused"),
    ],
)
def test_the_closed_doors_are_closed_here_too(
    served: Served, headers: dict[str, str], status: int, code: str
) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    reply = httpx2.post(f"{served.url}/mcp", json=request, headers=headers, trust_env=False)
    assert reply.status_code == status
    assert (reply.json()["jsonrpc"], reply.json()["error"]["data"]["code"]) == ("2.0", code)


def test_there_is_no_stream_to_hold_open_without_a_question(served: Served) -> None:
    reply = httpx2.get(
        f"{served.url}/mcp",
        headers={"X-API-Key": KEY, "Accept": "text/event-stream"},
        timeout=WAIT_S,
        trust_env=False,
    )
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    assert reply.json()["error"]["data"]["code"] == "invalid_input"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_leaves_stops_the_model(served: Served, mode: str) -> None:
    model = SlowModel()
    served.models.model = model

    async def visit() -> float:
        async with (
            httpx2.AsyncClient(headers={"X-API-Key": KEY}, timeout=WAIT_S, trust_env=False) as http,
            Client(
                streamable_http_client(f"{served.url}/mcp", http_client=http), mode=mode
            ) as client,
        ):
            await client.list_tools()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    client.call_tool, "ask", {"question": "What is the melting point of copper?"}
                )
                assert await anyio.to_thread.run_sync(lambda: model.started.acquire(timeout=WAIT_S))
                tasks.cancel_scope.cancel()
        return time.monotonic()

    try:
        left = anyio.run(visit)
        while model.active:
            assert time.monotonic() - left < WAIT_S
            threading.Event().wait(0.005)
        assert model.stopped == 1
    finally:
        served.models.model = None


def test_a_server_that_still_starts_says_so(tmp_path: Path) -> None:
    go = threading.Event()

    @contextmanager
    def slow(given: Settings) -> Iterator[Services]:
        assert go.wait(WAIT_S)
        with local_services(given) as services:
            yield services

    app = create_app(settings_for(tmp_path), build=slow, on_failure=lambda _: None)
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "ask", "arguments": {"question": "copper?"}},
    }
    with TestClient(app, base_url=BASE) as client:
        headers = {"Accept": "application/json, text/event-stream"}
        reply = client.post("/mcp", json=body, headers=headers)
        go.set()
        assert app.state.edge.startup.wait(WAIT_S)
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "1")
    assert "the server is starting" in reply.json()["error"]["message"]


def test_the_same_tools_over_stdio(served: Served, tmp_path: Path) -> None:
    """A real `documind mcp`, which finds the running server by the data directory's lock file."""
    root = Path(__file__).parents[2]
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "app", "mcp"],
        env={"DATA_DIR": str(tmp_path), "API_KEY": KEY},
        cwd=root,
    )

    async def visit() -> None:
        async with Client(server) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
            listed = (await client.list_resources()).resources
            copper = next(one for one in listed if one.title == "Copper")
            assert "1085" in str((await client.read_resource(copper.uri)).contents)
            answered = await client.call_tool(
                "ask", {"question": "What is the melting point of copper?", "library": "papers"}
            )
            assert "1085" in text_of(answered)
            refused = await client.call_tool("read", {"library": "papers", "document": "nope"})
            assert refused.is_error

    with DirectoryLock([tmp_path], served.url), unwrapped():
        anyio.run(visit)


def test_a_door_that_cannot_be_opened_does_not_end_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = McpDoor._make
    failures = [OSError(errno.EMFILE, "Too many open files")]

    def make(door: McpDoor) -> object:
        if failures:
            raise failures.pop()
        return made(door)

    monkeypatch.setattr(McpDoor, "_make", make)
    monkeypatch.setattr("app.api.mcp.RETRY_S", 0.01)
    with site(tmp_path) as opened:
        while opened.client.post("/mcp", json={}).status_code == 503:
            time.sleep(0.01)
        assert opened.client.get("/health/ready").status_code == 200
    assert failures == []


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_a_place_is_found_read_and_cited_without_a_question(
    served: Served, mode: str, version: str
) -> None:
    async def visit() -> None:
        async with (
            httpx2.AsyncClient(headers={"X-API-Key": KEY}, timeout=WAIT_S, trust_env=False) as http,
            Client(
                streamable_http_client(f"{served.url}/mcp", http_client=http), mode=mode
            ) as client,
        ):
            assert client.protocol_version == version
            papers = {"library": "papers"}
            listed = await data(client, "list", {**papers, "query": "tides"})
            (tides,) = listed["documents"]
            of = {**papers, "document": tides["doc_id"]}
            outline = await data(client, "outline", of)
            assert [one["title"] for one in outline["headings"]] == ["Tides", "Causes"]
            found = await data(client, "grep", {**of, "text": "SPRING tides"})
            (place,) = found["places"]
            assert (found["total"], "come twice" in place["line"]) == (1, True)
            where = {"start": place["start"], "end": place["end"]}
            cited = await data(client, "cite", {**of, **where})
            assert (cited["quote"], cited["section"]) == ("Spring tides", "Causes")
            assert cited["view_url"].endswith(f"start={place['start']}&end={place['end']}")
            length = place["end"] - place["start"]
            part = await data(client, "read", {**of, "start": place["start"], "length": length})
            assert part["text"] == cited["quote"]
            (template,) = (await client.list_resource_templates()).resource_templates
            uris = [one.uri for one in (await client.list_resources()).resources]
            assert template.uri_template.format(**papers, doc_id=tides["doc_id"]) in uris
            with pytest.raises(MCPError, match="not_found"):
                await client.read_resource("documind://papers/nope")

    anyio.run(visit)


def test_a_text_is_added_and_found(tmp_path: Path) -> None:
    async def visit(url: str) -> None:
        async with (
            httpx2.AsyncClient(timeout=WAIT_S, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            note = {"filename": "note.md", "text": "# Boats\n\nThe key of the shed is 4417."}
            first = await data(client, "add", note)
            again = await data(client, "add", note)
            rows = [row for one in (first, again) for row in one["documents"]]
            assert [row["status"] for row in rows] == ["indexed", "unchanged"]
            found = await data(client, "search", {"query": "key of the shed"})
            assert found["hits"][0]["doc_id"] == rows[0]["doc_id"]

    with site(tmp_path) as opened, listening(opened.app, lifespan="off") as url:
        anyio.run(visit, url)


async def data(client: Client, tool: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return what a tool returns for programs; the client holds it against the tool's schema."""
    found = await client.call_tool(tool, dict(arguments))
    assert not found.is_error, found.content
    assert found.structured_content is not None
    return dict(found.structured_content)
