"""`documind models`: what Ollama has, what is in use, and fetching more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

import typer

from app.cli.bulk import run_job
from app.cli.connection import connect
from app.cli.output import emit, err, out, say, size, table
from app.client import Json
from app.settings import Settings

JsonOption = Annotated[bool, typer.Option("--json", help="print the reply as JSON")]

app = typer.Typer(help="Models of Ollama: list them, fetch one.", no_args_is_help=True, rich_markup_mode=None)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="models")


@app.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """Show the models that are installed, in memory and in use.

    Example: documind models list
    """
    with connect(Settings()) as client:
        found = client.get("/api/v1/models")
    if as_json:
        emit(found)
        return
    used = cast("Mapping[str, str]", found["in_use"])
    loaded = cast("Sequence[str]", found["loaded"])
    for purpose, name in used.items():
        say(f"{purpose}: {name}")
    installed = cast("Sequence[Json]", found["installed"])
    if installed:
        out.print()
        rows = [
            (row["name"], size(cast("float", row["size_bytes"])) if row["size_bytes"] else "", row["name"] in loaded and "yes")
            for row in installed
        ]
        table(("installed", "on disk", "in memory"), [(name, disk, held or "") for name, disk, held in rows], right=(1,))
    else:
        say("no model host answers, or it has no models; answers are quotes until one does (documind doctor says more)")
    if found["fit"] is False:
        err.print(
            "[yellow]the answering and the embedding model do not stay in memory together:[/] each question loads one and"
            " drops the other. Choose a smaller LLM_MODEL, a smaller LLM_NUM_CTX, or EMBEDDING_PROVIDER=minilm for a new library."
        )


@app.command()
def pull(model: Annotated[str, typer.Argument(help="like llama3.2 or nomic-embed-text")], as_json: JsonOption = False) -> None:
    """Fetch a model into Ollama; one that was cut off goes on where it was.

    Example: documind models pull nomic-embed-text
    """
    with connect(Settings()) as client:
        job = run_job(client, client.post("/api/v1/models/pull", {"model": model}), f"fetching {model}")
    emit(job) if as_json else say(f"{model} is there; it can be chosen from now on")
