"""Every example of README.md, docs/doors.md and docs/connect.md, on a fresh server with the samples: it is answered, and prints what the pages print."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
import requests
import typer
from mcp import Client
from mcp_types import TextContent

from app.cli import main as entry
from app.storage.files.lock import DirectoryLock
from tests.api.conftest import Site, listening, site
from tests.browser.documents import lighthouse_pdf

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8001"
PAGES = ("doors.md", "connect.md")


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text_of(page), re.DOTALL)


def examples(language: str) -> list[tuple[str, str]]:
    """Return each program of the pages with the output that stands below it."""
    below = rf"```{language}\n([^`]*)```\n[^`]*```text\n([^`]*)```"
    found = [pair for page in PAGES for pair in re.findall(below, text_of(page))]
    assert len(found) == sum(len(blocks(page, language)) for page in PAGES)
    return found


def assert_printed(printed: str, shown: str) -> None:
    """Check that a text has what a page shows of it, in order; dots stand for what is left out."""
    said, at = " ".join(printed.split()), 0
    for piece in re.split(r"\.\.\.|\n(?! )", shown):
        wanted = " ".join(piece.split())
        at = said.find(wanted, at)
        assert at >= 0, (wanted, said)


@dataclass(frozen=True)
class Server:
    """A listening site, and the data directory by which commands find it."""

    base: str
    site: Site
    data: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("docs")
    with site(directory) as opened:
        assert opened.client.post("/api/v1/samples").status_code == 201
        lock = directory / "lock"
        with listening(opened.app, lifespan="off") as url, DirectoryLock([lock], url):
            yield Server(url, opened, lock)


def test_every_example_is_answered_as_the_pages_say(server: Server) -> None:
    for program, shown in examples("python"):
        run = subprocess.run(
            [sys.executable, "-c", program.replace(ADDRESS, server.base)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert_printed(run.stdout.replace(server.base, ADDRESS), shown)
    for lines, shown in examples("sh"):
        replies = [_sent(line, server) for line in lines.splitlines()]
        assert_printed(" ".join(replies), shown)
    for program, shown in examples("py"):  # LlamaIndex is not installed: what its class sends
        if searched := re.search(r'retriever.retrieve\("(.*?)"\)', program):
            sent = {"q": searched[1], "library": "papers", "limit": "1"}
            found = requests.get(f"{server.base}/api/v1/search", params=sent, timeout=60).json()
            assert_printed(found["hits"][0]["title"], shown)
            continue
        (model,) = re.findall(r'model="(.*?)"', program)
        (asked,) = re.findall(r'llm.complete\("(.*?)"\)', program)
        body = {"model": model, "messages": [{"role": "user", "content": asked}]}
        reply = requests.post(f"{server.base}/v1/chat/completions", json=body, timeout=60)
        assert_printed(reply.json()["choices"][0]["message"]["content"], shown)
    _readme(server)


def _sent(line: str, server: Server) -> str:
    """Send what a line with curl sends, check that it is answered, and return the answer."""
    words = shlex.split(line)
    assert words[0] == "curl"
    body, url = words[words.index("--json") + 1], words[-1].replace(ADDRESS, server.base)
    reply = requests.post(url, data=body, headers={"Content-Type": "application/json"}, timeout=60)
    assert reply.status_code == 200, reply.text
    final = re.search(r"event: final\ndata: (.*)", reply.text)
    answer = json.loads(final[1]) if final else reply.json()
    answer = answer.get("documind", answer)
    assert answer["status"] == "answered", answer
    return str(answer["answer"])


def _readme(server: Server) -> None:
    """Run what the page shows of the command line, with a paper of one's own."""
    shown = re.search(r"On the command line\n.*?\n\n(    .*?)\n\n[^ ]", README, re.DOTALL)
    assert shown
    commands = [part.splitlines() for part in re.split(r"(?m)^    \$ ", shown[1])[1:]]
    (asked, *output), (upload, *_), (question, *_) = commands
    _, *arguments = shlex.split(asked)
    run = subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        cwd=ROOT,
        env=os.environ | {"DATA_DIR": str(server.data)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert_printed(run.stdout, " ".join(output))
    assert shlex.split(upload)[1:5] == ["-F", "file=@paper.pdf", "-F", "library=papers"]
    assert server.site.upload(("paper.pdf", lighthouse_pdf()))[0] == 201
    assert "Morvane" in _sent(question.replace("localhost:8001", ADDRESS), server)


README = (ROOT / "README.md").read_text("utf-8")


def test_a_client_of_mcp_is_answered_at_the_address_of_the_pages(server: Server) -> None:
    urls = {
        entry["url"].replace(ADDRESS, server.base)
        for page in PAGES
        for entry in _clients(page)
        if "url" in entry
    }

    async def asked(url: str) -> str:
        async with Client(url) as client:
            found = await client.call_tool(
                "ask", {"question": "Who decoded the waggle dance of bees?", "library": "public"}
            )
            return cast("Sequence[TextContent]", found.content)[0].text

    for url in urls:
        assert "Karl von Frisch" in anyio.run(asked, url)


@pytest.mark.parametrize("page", PAGES)
def test_configurations_of_mcp_clients(page: str) -> None:
    assert len(_clients(page)) == 2
    for server in _clients(page):
        if "url" in server:
            assert server["url"].endswith("/mcp")
            continue
        assert server["command"].endswith("documind")
        (word,) = server["args"]
        assert word in typer.main.get_command(entry.app).commands  # type: ignore[attr-defined]  # click's own group


def _clients(page: str) -> list[dict[str, Any]]:
    return [json.loads(block)["mcpServers"]["documind"] for block in blocks(page, "json")]
