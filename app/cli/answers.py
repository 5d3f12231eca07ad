"""Commands for stored answers: replay them, export ratings, delete them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, cast

import typer

from app.cli.connection import connect
from app.cli.jobs import run_job
from app.cli.options import JsonOption
from app.cli.output import emit, out, say, table
from app.client import Json
from app.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(replay)
    app.command()(feedback)
    app.command()(forget)


def replay(
    answer_id: Annotated[str, typer.Argument(help="id of a stored answer")],
    as_json: JsonOption = False,
) -> None:
    """Search again for a stored answer's question; say what changed and why.

    Example: documind replay 9f86d081884c7d659a2feaa0c55ad015
    """
    with connect(Settings()) as client:
        job = run_job(client, client.post(f"/api/v1/replay/{answer_id}"), "searching again")
    found = cast("Json", job["result"])
    if as_json:
        emit(found)
    else:
        show_replay(found)


def show_replay(found: Json) -> None:
    """Print a comparison for people."""
    say(f"{found['question']}    (answered {found['answered_at']})")
    if found["same"]:
        say("the same passages in the same order")
    passages = cast("Sequence[Json]", found["passages"])
    if passages:
        rows = [
            (p["kind"], p["n_before"], p["n_now"], p["title"], p["section"], p["reason"])
            for p in passages
        ]
        table(("", "then", "now", "document", "section", "why"), rows, right=(1, 2))
    settings = cast("Sequence[Json]", found["settings"])
    if settings:
        out.print()
        table(("setting", "then", "now"), [(s["name"], s["before"], s["now"]) for s in settings])
    for remark in cast("Sequence[str]", found["remarks"]):
        say(f"note: {remark}")


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
