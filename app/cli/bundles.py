"""Commands for a library in one file: export, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from app.cli.connection import connect
from app.cli.jobs import run_job
from app.cli.options import JsonOption, check_library
from app.cli.output import emit, say
from app.client import Json
from app.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("export")(export_library)
    app.command("import")(import_library)


def export_library(
    library: Annotated[str, typer.Argument(help="public or papers")],
    file: Annotated[Path, typer.Argument(help="the file to write; it must not exist")],
    as_json: JsonOption = False,
) -> None:
    """Write a library with texts, vectors and originals into one checksummed file.

    Example: documind export papers papers.documind
    """
    check_library(library)
    with connect(Settings()) as client:
        job = client.post("/api/v1/export", {"library": library, "path": str(file.absolute())})
        _show_bundle(
            cast("Json", run_job(client, job, f"exporting {library}")["result"]),
            "written",
            as_json=as_json,
        )


def import_library(
    file: Annotated[Path, typer.Argument(help="a file that `documind export` wrote")],
    library: Annotated[
        str | None,
        typer.Option(
            "--library", "-l", help="target: public or papers [default: the one it came from]"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import an exported file into a library; embed nothing again.

    After an interruption, the same command continues.

    Example: documind import papers.documind --library papers
    """
    with connect(Settings()) as client:
        job = client.post("/api/v1/import", {"path": str(file.absolute()), "library": library})
        _show_bundle(
            cast("Json", run_job(client, job, f"importing {file.name}")["result"]),
            "imported",
            as_json=as_json,
        )


def _show_bundle(found: Json, done: str, *, as_json: bool) -> None:
    if as_json:
        emit(found)
        return
    say(
        f"{done}: {found['documents']} documents, {found['chunks']} chunks, {found['vectors']}"
        " vectors"
    )
