"""`documind check`: hold every sentence of a file against the libraries."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.connection import connect
from app.cli.output import emit
from app.client.check_report import written
from app.ingest.sandbox import SandboxedParser
from app.settings import Settings

Format = Literal["markdown", "html", "json"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(check)


def check(
    file: Annotated[
        str, typer.Argument(help="text, Markdown, DOCX, HTML or PDF; - reads standard input")
    ],
    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            "-l",
            help="public, papers or all; with --against: where to look for a better source"
            " [default: DEFAULT_LIBRARY; with --against: none]",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="check it against this file [default: the library]"),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="ask this model for a second verdict, shown next to the first [default: none]",
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="markdown, html or json")] = "markdown",
) -> None:
    """Check every sentence of a text: supported, weak, contradicted or not found.

    Weak is close to a place, not confirmed. Each verdict names the place in a document.

    Example: documind check draft.docx --library papers
    """
    settings = Settings()
    with SandboxedParser(settings.ingest()) as parser:
        content: bytes | Path = sys.stdin.buffer.read() if file == "-" else Path(file)
        text = parser.parse(content, "text.md" if file == "-" else Path(file).name).text
        source = parser.parse(against, against.name).text if against else None
    with connect(settings) as client:
        report = client.check(text, library, source, judge)
    if form == "json":
        emit(report)
    else:
        sys.stdout.write(written(report, form))
