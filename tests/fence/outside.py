"""What people and programs see of the product, as text: commands, settings, errors, tools, metrics."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main
from prometheus_client.parser import text_string_to_metric_families

from app.api.deps import AppState
from app.api.errors import status_of
from app.api.mcp_server import make_server
from app.cli import main as command_line
from app.core.errors import DocuMindError, error_classes
from app.core.types import NoticeCode
from app.evaluation.report import to_csv, to_json, to_markdown
from app.settings import Settings
from tests.fakes.ollama_double import DoubleModel, OllamaDouble
from tests.fence.server import fence_server
from tests.unit.evaluation.test_runner import a_report, an_experiment

SCRIPTS = (
    "build_public_corpus",
    "bulk_index_public",
    "bulk_ingest_arxiv",
    "generate_production_corpus",
    "materialize_institutional_corpus",
    "refresh_stakeholder_views",
    "report_corpus_scale",
    "run_query_eval",
    "run_retrieval_ablation",
    "run_retrieval_ablation_offline",
    "run_wiki_public_bench",
    "stream_wikipedia_to_txt",
)
WIDTH = 100


def commands() -> str:
    """Return the help text of every command, and the exit codes of errors."""
    texts = [_help(typer.main.get_command(command_line.app), "documind", None)]
    exits = [f"{cls.code}: {code}" for cls, code in command_line.EXIT_CODES]
    return "\n\n".join([*texts, "exit codes\n" + "\n".join(exits)])


def _help(command: Any, name: str, parent: Any) -> str:  # typer's own classes
    context = command.context_class(command, info_name=name, parent=parent, terminal_width=WIDTH)
    texts = [f"$ {context.command_path} --help\n{command.get_help(context).strip()}"]
    for below in getattr(command, "commands", {}):
        texts.append(_help(command.commands[below], below, context))
    return "\n\n".join(texts)


def scripts() -> str:
    """Return the help text of every script that people run."""
    return "\n\n".join(f"$ python -m scripts.{name} --help\n{_script(name)}" for name in SCRIPTS)


def _script(name: str) -> str:
    out = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.suppress(SystemExit),
    ):
        patch.setattr(sys, "argv", [name, "--help"])
        patch.setenv("COLUMNS", str(WIDTH))
        importlib.import_module(f"scripts.{name}").main()
    return out.getvalue().strip()


def settings() -> str:
    """Return every setting with its type and default."""
    return "\n".join(
        f"{name.upper()}: {_type(field.annotation)} = {field.get_default(call_default_factory=True)!r}"
        for name, field in sorted(Settings.model_fields.items())
    )


def _type(annotation: object) -> str:
    values = get_args(annotation)
    named = annotation.__name__ if isinstance(annotation, type) else None
    return named or " | ".join(sorted(map(str, values))).replace("<class '", "").replace("'>", "")


def errors_and_notices() -> str:
    """Return the codes of errors with status and retryable, and the codes of notices."""
    codes: dict[str, type[DocuMindError]] = {}
    for cls in sorted(error_classes().values(), key=lambda cls: len(cls.__mro__)):
        codes.setdefault(cls.code, cls)  # the most general one if several share it
    rows = [
        f"{code}: {status_of(cls)}{' retryable' if cls.retryable else ''}"
        for code, cls in sorted(codes.items())
    ]
    return "\n".join(["errors", *rows, "", "notices", *sorted(get_args(NoticeCode))])


def tools() -> str:
    """Return the MCP tools with their schemas."""
    with fence_server() as server:
        listed = asyncio.run(_listed(server.edge))
    return json.dumps(listed, indent=1, sort_keys=True, ensure_ascii=False)


async def _listed(edge: AppState) -> list[Mapping[str, object]]:
    from mcp import Client  # noqa: PLC0415  # half a second

    async with Client(make_server(edge, "fence")) as client:
        found = await client.list_tools()
    return [tool.model_dump(mode="json", exclude_none=True) for tool in found.tools]


def metrics() -> str:
    """Return the names, kinds and labels of metrics after one question."""
    with fence_server() as server:
        server.client.post("/api/v1/query", json={"question": "How do tides work?"})
        page = server.client.get("/metrics").text
    return "\n".join(sorted(_families(page)))


def _families(page: str) -> Iterator[str]:
    for family in text_string_to_metric_families(page):
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        yield f"{family.name} {family.type} {' '.join(labels)}".rstrip()


def stream() -> str:
    """Return the names of a stream's events in order, with the fields of each."""
    asked = {"question": "How do tides work?", "library": "public", "stream": True}
    with (
        OllamaDouble([DoubleModel("fence:8b", parameter_size="8.0B")]) as double,
        fence_server(ollama_base_url=double.url, embedding_provider="minilm") as server,
    ):
        server.client.post("/api/v1/samples?wait=true")
        sent = [
            server.client.post("/api/v1/query", json={**asked, **model}).text
            for model in ({}, {"model": "fence:8b"})
        ]
    return "\n\n".join("\n".join(dict.fromkeys(_events(text))) for text in sent)


def _events(text: str) -> Iterator[str]:
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in lines:
            yield f"{lines['event']}: {' '.join(sorted(set(_fields(json.loads(lines['data'])))))}"


def _fields(value: object, at: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _fields(below, f"{at}.{name}".lstrip("."))
    elif isinstance(value, list) and value:
        for below in value:
            yield from _fields(below, f"{at}[]")
    else:
        yield at


def reports() -> str:
    """Return the columns of an evaluation's CSV, the keys of its JSON and the heads of its tables."""
    report = a_report(an_experiment())
    heads = [line for line in to_markdown(report).splitlines() if line.startswith(("#", "| arm"))]
    keys = sorted(set(_fields(json.loads(to_json(report)))))
    return "\n".join(["csv", to_csv(report).splitlines()[0], "markdown", *heads, "json", *keys])


PARTS: Mapping[str, Callable[[], str]] = {
    "commands.txt": commands,
    "scripts.txt": scripts,
    "settings.txt": settings,
    "errors.txt": errors_and_notices,
    "tools.json": tools,
    "metrics.txt": metrics,
    "reports.txt": reports,
    "stream.txt": stream,
}
GOLDEN = Path(__file__).parent / "golden"
