"""`documind prompt`: what models are told, and whether an overlay of it holds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import JsonOption
from app.cli.output import complain, emit, say
from app.generation.prompt_listing import described
from app.generation.prompts import PromptLibrary
from app.settings import Settings

app = typer.Typer(
    help="Prompts: show them, check an overlay.", no_args_is_help=True, rich_markup_mode=None
)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="prompt")


@app.command()
def show() -> None:
    """Print every prompt as a model gets it, PROMPTS_DIR laid over the packaged ones.

    Example: documind prompt show
    """
    say(described(PromptLibrary.load(Settings().prompts_dir)).rstrip())


@app.command()
def check(
    directory: Annotated[
        Path | None, typer.Argument(help="folder with YAML files [default: PROMPTS_DIR]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with an overlay of prompts. Exit code 1 when something is.

    Example: documind prompt check my-prompts
    """
    findings = PromptLibrary.check(directory or Settings().prompts_dir)
    if as_json:
        emit(findings)
    else:
        for finding in findings:
            complain(finding)
        if not findings:
            say("the prompts are in order")
    if findings:
        sys.exit(1)
