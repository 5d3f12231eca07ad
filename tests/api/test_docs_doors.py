"""The examples of docs/doors.md, run as they stand there."""

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

PAGE = (Path(__file__).parents[2] / "docs" / "doors.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with site(tmp_path_factory.mktemp("docs")) as opened:
        assert opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))[0] == 201
        with listening(opened.app, lifespan="off") as address:
            yield address


@pytest.mark.parametrize(("program", "said"), list(zip(blocks("python"), ["1085 degrees Celsius [1]", "Moon"], strict=True)))
def test_programs(program: str, said: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(program.replace("http://127.0.0.1:8001", url), "docs/doors.md", "exec"), {})
    printed = capsys.readouterr().out
    assert said in printed
    if "annotation" in program:
        assert "[1] Copper http" in printed


def test_configurations_of_mcp_clients() -> None:
    over_http, over_stdio = (json.loads(block)["mcpServers"]["documind"] for block in blocks("json"))
    assert over_http["url"].endswith("/mcp")
    assert over_stdio["command"] == "documind"
    (word,) = over_stdio["args"]
    assert word in typer.main.get_command(entry.app).commands  # type: ignore[attr-defined]  # click's own group


def test_bodies_of_the_curl_examples(url: str) -> None:
    bodies = re.findall(r"--json '(\{.*?\})' http://127.0.0.1:8001(\S+)", "".join(blocks("sh")))
    assert len(bodies) == 2
    for body, path in bodies:
        reply = requests.post(f"{url}{path}", data=body, headers={"Content-Type": "application/json"}, timeout=20)
        assert reply.status_code == 200, reply.text
