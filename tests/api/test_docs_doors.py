"""The examples of docs/doors.md and docs/connect.md, run as they stand there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import typer

from app.cli import main as entry
from tests.api.conftest import LIBRARY, listening, site

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


PROGRAMS = [
    (page, program) for page in ("doors.md", "connect.md") for program in blocks(page, "python")
]
SAID = ["1085 degrees Celsius [1]", "Moon", "1085 degrees Celsius [1]", "1085 degrees Celsius [1]"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with site(tmp_path_factory.mktemp("docs")) as opened:
        assert opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))[0] == 201
        with listening(opened.app, lifespan="off") as address:
            yield address


@pytest.mark.parametrize(
    ("page", "program", "said"), [(*one, said) for one, said in zip(PROGRAMS, SAID, strict=True)]
)
def test_programs(
    page: str, program: str, said: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(
        compile(program.replace("http://127.0.0.1:8001", url), page, "exec"),
        {"__name__": "example"},
    )
    printed = capsys.readouterr().out
    assert said in printed
    if "annotation" in program:
        assert "Copper http" in printed


@pytest.mark.parametrize("page", ["doors.md", "connect.md"])
def test_configurations_of_mcp_clients(page: str) -> None:
    servers = [json.loads(block)["mcpServers"]["documind"] for block in blocks(page, "json")]
    assert len(servers) == 2
    for server in servers:
        if "url" in server:
            assert server["url"].endswith("/mcp")
            continue
        assert server["command"].endswith("documind")
        (word,) = server["args"]
        assert word in typer.main.get_command(entry.app).commands  # type: ignore[attr-defined]  # click's own group


def test_bodies_of_the_curl_examples(url: str) -> None:
    lines = "".join(block for page in ("doors.md", "connect.md") for block in blocks(page, "sh"))
    bodies = re.findall(r"--json '(\{.*?\})' http://127.0.0.1:8001(\S+)", lines)
    assert len(bodies) == 3
    for body, path in bodies:
        reply = requests.post(
            f"{url}{path}", data=body, headers={"Content-Type": "application/json"}, timeout=20
        )
        assert reply.status_code == 200, reply.text
