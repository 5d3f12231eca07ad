"""Every command and example of README.md and of the pages for users, on a server that `documind up` started.

They print what stands below them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
import requests
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from tests.api.test_up_down import free_port
from tests.browser.documents import lighthouse_pdf

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
ADDRESS = "http://127.0.0.1:8001"
EXAMPLES = ("doors.md", "connect.md")
PAGES = ("first-hour.md", *EXAMPLES)
LEFT_OUT = {
    "cd documind # the folder with these sources": "names the reader's own folder",
    "make run": "fetches packages",
    "API_PORT=8100 make run": "fetches packages",
    "make setup EXTRAS=ocr": "fetches packages",
    "pipx install documind_server-*.whl": "fetches packages",
    "pip install openai": "fetches a package",
    "pip install langchain-openai": "fetches a package",
    "pip install './documind_server-0.2.0-py3-none-any.whl[langchain]'": "fetches packages",
    "pip install llama-index-llms-openai-like": "fetches a package",
    "pip install './documind_server-0.2.0-py3-none-any.whl[llama-index]'": "fetches packages",
    "ollama pull llama3.2": "needs Ollama",
    "documind models use llama3.2 --for answers": "needs Ollama",
}
"""Commands of the pages that no test runs, and why; of those with make the steps are listed."""
TYPED = {
    "documind chat": "Who decoded the waggle dance of bees?\n",
    "documind keys add laptop --scope read --scope ask --library papers": "y\n",
}
"""What a person types while a command runs; one without it gets the end of its input."""
PROGRAM = r"(?:[A-Z_]+=\S+ )?(?:documind|make|pip|pipx|ollama|curl|which|cd)(?: [^`]+)?"


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text("utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text_of(page), re.DOTALL)


def commands(page: str) -> list[str]:
    """Return the commands of a page: lines of its blocks of sh, indented ones, and in backticks.

    The bare name of the program is also that of a model.
    """
    prose = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    found = [line for block in blocks(page, "sh") for line in block.splitlines()]
    found += re.findall(r"(?m)^    (\S.*)$", prose)
    found += re.findall(rf"`({PROGRAM})`", prose)
    return [line for each in found if (line := " ".join(each.split())) != "documind"]


def examples(language: str) -> list[tuple[str, str]]:
    """Return each program of the pages with the output that stands below it."""
    below = rf"```{language}\n([^`]*)```\n[^`]*```text\n([^`]*)```"
    found = [pair for page in EXAMPLES for pair in re.findall(below, text_of(page))]
    assert len(found) == sum(len(blocks(page, language)) for page in EXAMPLES)
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
    """A server of its own process, and what its reader's shell has."""

    base: str
    folder: Path
    env: dict[str, str]

    def run(self, command: str, typed: str = "") -> str:
        """Run a line of a page in a shell, with this server's address; return what it printed."""
        done = subprocess.run(
            ["/bin/bash", "-c", command.replace(ADDRESS, self.base)],
            cwd=self.folder,
            env=self.env,
            input=typed,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder, port = tmp_path_factory.mktemp("docs"), free_port()
    own = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DATA_DIR": str(folder / "data"),
        "API_PORT": str(port),
        "OLLAMA_BASE_URL": f"http://127.0.0.1:{free_port()}",
        "BROWSER": "true",
    }
    opened = Server(f"http://127.0.0.1:{port}", folder, os.environ | own)
    opened.run("documind up --no-open")
    try:
        opened.run("documind samples")
        yield opened
    finally:
        opened.run("documind down")


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
        assert_printed(" ".join(answer(server.run(line)) for line in lines.splitlines()), shown)
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


def answer(printed: str) -> str:
    """Return the answer that curl printed, as JSON or as events."""
    final = re.search(r"event: final\ndata: (.*)", printed)
    found = json.loads(final[1] if final else printed)
    found = found.get("documind", found)
    assert found["status"] == "answered", found
    return str(found["answer"])


def test_the_readme_shows_what_commands_print(server: Server) -> None:
    shown = re.search(r"On the command line\n.*?\n\n(    .*?)\n\n[^ ]", README, re.DOTALL)
    assert shown
    parts = [part.splitlines() for part in re.split(r"(?m)^    \$ ", shown[1])[1:]]
    (asked, *output), (upload, *_), (question, *_) = [
        [line.replace("localhost:8001", ADDRESS) for line in part] for part in parts
    ]
    assert_printed(server.run(asked.removeprefix(".venv/bin/")), " ".join(output))
    (server.folder / "paper.pdf").write_bytes(lighthouse_pdf())
    assert json.loads(server.run(upload))["documents"][0]["status"] == "indexed"
    assert "Morvane" in answer(server.run(question))


def test_every_command_of_the_pages_runs(server: Server) -> None:
    """A key closes the server, so the command that makes one comes last."""
    found = {line for page in PAGES for line in commands(page)}
    assert found >= LEFT_OUT.keys() | TYPED.keys()
    makes = [line for line in LEFT_OUT if "make " in line]
    for line in makes:
        assert server.run(line.replace("make ", f"make -C {ROOT} --dry-run ")), line
    for line in sorted(found - LEFT_OUT.keys(), key=lambda line: ("keys add" in line, line)):
        needs = line in {"documind ask", "documind sync", "documind bulk", "documind keys add"}
        server.run(f"{line} --help" if needs else line, TYPED.get(line, ""))
    server.run("documind keys revoke laptop --yes")


def test_routes_that_the_pages_name_are_there_and_searches_answer(server: Server) -> None:
    routes = json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))["paths"]
    named = [
        pair
        for page in PAGES
        for pair in re.findall(r"(GET|POST|PUT|PATCH|DELETE)\s+(/[\w/{}-]+)", text_of(page))
    ]
    assert len(named) >= 15
    for method, path in named:
        assert method.lower() in routes[path], path
    for path in re.findall(r"`GET (/[^`{]+)`", text_of("doors.md")):
        sent = f"{server.base}{path}" if path != "/api/v1/search" else f"{server.base}{path}?q=bees"
        assert requests.get(sent, timeout=60).status_code == 200, path


def test_clients_of_mcp_are_answered_with_the_configurations_of_the_pages(server: Server) -> None:
    async def asked(door: str | StdioServerParameters) -> str:
        async with Client(door) as client:
            found = await client.call_tool(
                "ask", {"question": "Who decoded the waggle dance of bees?", "library": "public"}
            )
            return cast("Sequence[TextContent]", found.content)[0].text

    for page in EXAMPLES:
        clients = [json.loads(block)["mcpServers"]["documind"] for block in blocks(page, "json")]
        assert len(clients) == 2
        for entry in clients:
            assert "Karl von Frisch" in anyio.run(asked, door_of(entry, server))


def door_of(entry: dict[str, Any], server: Server) -> str | StdioServerParameters:
    """Return the address or process of a client's configuration, with this server's data."""
    if "url" in entry:
        return str(entry["url"]).replace(ADDRESS, server.base)
    command = Path(sys.executable).with_name(Path(entry["command"]).name)
    return StdioServerParameters(command=str(command), args=entry["args"], env=server.env)
