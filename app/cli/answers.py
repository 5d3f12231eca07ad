"""Commands for stored answers: export ratings, delete them."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.connection import connect
from app.cli.options import JsonOption
from app.cli.output import emit, out, say
from app.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(feedback)
    app.command()(forget)


def feedback() -> None:
    """Print ratings of answers as JSON Lines for `documind evaluate answers`.

    Example: documind feedback > feedback.jsonl
    """
    with connect(Settings()) as client:
        out.file.write(client.feedback())


def forget(
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    conversations: Annotated[
        bool, typer.Option("--conversations", help="delete conversations too")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Forget every stored answer, with its question, trace and feedback.

    Example: documind forget --conversations --yes
    """
    if not yes:
        typer.confirm("Forget every stored answer?", abort=True, err=True)
    with connect(Settings()) as client:
        gone = {"answers": client.forget("answers")["forgotten"]}
        if conversations:
            gone["conversations"] = client.forget("conversations")["forgotten"]
    emit(gone) if as_json else say(
        "forgotten: " + ", ".join(f"{count} {what}" for what, count in gone.items())
    )
