"""`documind status`: how things are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import typer

from app.cli.connection import connect
from app.cli.models import answering
from app.cli.options import JsonOption
from app.cli.output import emit, out, say, size, table
from app.client import Json
from app.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(status)


def status(as_json: JsonOption = False) -> None:
    """Show the libraries, the models in use and running jobs.

    Example: documind status
    """
    with connect(Settings()) as client:
        found = {
            "health": client.health(),
            "libraries": client.libraries(),
            "jobs": client.jobs(10),
        }
        found["models"] = client.get("/api/v1/models/tests")
        found["answering"] = client.get("/api/v1/models")
    if as_json:
        emit(found)
        return
    health = found["health"]
    say(f"answers: {answering(found['answering'])}")
    say(f"embeds: {health['embedder']}")
    if advice := found["models"]["advice"]:
        say(f"models tested: {advice}")
    libraries = cast("Sequence[Json]", found["libraries"]["libraries"])
    table(
        ("library", "documents", "chunks", "embedded", "size", "index"),
        [
            (
                r["library"],
                r["documents"],
                r["chunks"],
                r["embedded"],
                size(cast("float", r["bytes"])),
                r["build"],
            )
            for r in libraries
        ],
        right=(1, 2, 3, 4),
    )
    jobs = [
        row
        for row in cast("Sequence[Json]", found["jobs"]["jobs"])
        if row["state"] not in ("done", "cancelled")
    ]
    if jobs:
        out.print()
        table(
            ("job", "kind", "state", "done", "of", "unit"),
            [tuple(r[k] for k in ("id", "kind", "state", "done", "total", "unit")) for r in jobs],
        )
