"""Commands for the vectors of a library: re-embed, calibrate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, cast

import typer

from app.cli.connection import connect
from app.cli.jobs import run_job
from app.cli.options import JsonOption, check_library
from app.cli.output import emit, say
from app.client import Json
from app.core.errors import InvalidInput
from app.settings import Settings

NEW_VECTORS_FIND_LESS = 9
"""Exit code of a re-embedding that left the old vectors in service."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(reembed)
    app.command()(calibrate)


def reembed(
    library: Annotated[str, typer.Option("--library", "-l", help="public or papers")],
    embedder: Annotated[
        str | None,
        typer.Option(
            "--embedder",
            help="ollama, minilm, multilingual or a hosted provider [default: EMBEDDING_PROVIDER]",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="embedding model of the provider [default: EMBEDDING_MODEL]"),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            help="answer set (JSON Lines) to compare old and new vectors with [default: questions"
            " made from the documents]",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="use the new vectors even if they find less")
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option("--rollback", help="go back to the previous vectors; nothing is embedded"),
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="remove previous and unfinished vectors")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Re-embed a library with another model; swap unless the new vectors find less.

    The current vectors keep serving. The same command goes on after an interruption. Exit code 9:
    the new vectors find less and the old ones serve on.

    Example: documind reembed --library papers --embedder ollama --model nomic-embed-text
    """
    check_library(library)
    if rollback and discard:
        raise InvalidInput("--rollback and --discard exclude each other")
    body: Json = {
        "library": library,
        "action": "rollback" if rollback else "discard" if discard else "start",
        "provider": embedder,
        "model": model,
        "questions": str(questions.absolute()) if questions else None,
        "force": force,
    }
    with connect(Settings()) as client:
        job = client.post("/api/v1/reembed", body)
        found = cast(
            "Json", run_job(client, job, f"re-embedding {library}", "the same command")["result"]
        )
    if as_json:
        emit(found)
    else:
        say(f"{found['outcome']}: {found['reason']}")
    if found["outcome"] == "kept":
        sys.exit(NEW_VECTORS_FIND_LESS)


def calibrate(
    library: Annotated[str, typer.Option("--library", "-l", help="public or papers")],
    as_json: JsonOption = False,
) -> None:
    """Calibrate a library's embedding model from the library's own sentences.

    Bands, cutoff and confidence go by it in every library of that model. It runs by itself after
    indexing.

    Example: documind calibrate --library papers
    """
    check_library(library)
    with connect(Settings()) as client:
        job = client.post("/api/v1/calibrate", {"library": library})
        found = cast("Json", run_job(client, job, f"calibrating {library}")["result"])
    if as_json:
        emit(found)
    else:
        line = f"(similarity - {found['similarity_offset']}) / {found['similarity_scale']}"
        say(
            f"{found['embedding_model']}: {line} is on the scale of the thresholds, by"
            f" {found['pairs']} pairs"
        )
