"""`documind check`: hold every sentence of a file against the libraries."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from app.cli.connection import connect
from app.cli.output import emit
from app.client import Json
from app.ingest.sandbox import SandboxedParser
from app.settings import Settings

Format = Literal["markdown", "html", "json"]
_SAID = {
    "supported": "supported",
    "contradicted": "contradicted",
    "not_found": "not found",
    "no_claim": "claims nothing",
}
_QUOTE_CHARACTERS = 300


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(check)


def check(
    file: Annotated[
        str, typer.Argument(help="text, Markdown, DOCX, HTML or PDF; - reads standard input")
    ],
    library: Annotated[
        str | None,
        typer.Option("--library", "-l", help="public, papers or all [default: DEFAULT_LIBRARY]"),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="check it against this file and search nothing [default: the library]"),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="markdown, html or json")] = "markdown",
) -> None:
    """Check every sentence of a text: supported, contradicted or not found.

    Each verdict names the place in a document.

    Example: documind check draft.docx --library papers
    """
    settings = Settings()
    with SandboxedParser(settings.ingest()) as parser:
        content: bytes | Path = sys.stdin.buffer.read() if file == "-" else Path(file)
        text = parser.parse(content, "text.md" if file == "-" else Path(file).name).text
        source = parser.parse(against, against.name).text if against else None
    with connect(settings) as client:
        report = client.check(text, None if source else library or settings.default_library, source)
    if form == "json":
        emit(report)
    else:
        sys.stdout.write(as_html(report) if form == "html" else as_markdown(report))


def as_markdown(report: Json) -> str:
    """Return a report for reading: counts, then each sentence with verdict and place."""
    lines = ["# Check", "", _counts(report), ""]
    for sentence in _sentences(report):
        lines.append(f"- **{_SAID[str(sentence['verdict'])]}**: {_line(sentence['text'])}")
        if place := _place(sentence):
            lines += [f"  > {_line(place['quote'])}", f"  > ({_where(place)})"]
    return "\n".join(lines) + "\n"


def as_html(report: Json) -> str:
    """Return a report as a page of its own, without scripts."""
    rows = []
    for sentence in _sentences(report):
        place = _place(sentence)
        shown = (
            f"{escape(_line(place['quote']))}<br><small>{escape(_where(place))}</small>"
            if place
            else ""
        )
        said = escape(_SAID[str(sentence["verdict"])])
        rows.append(
            f"<tr><td>{said}</td><td>{escape(str(sentence['text']))}</td><td>{shown}</td></tr>"
        )
    head = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Check</title>\n<h1>Check</h1>\n'
    titles = "<tr><th>verdict</th><th>sentence</th><th>best place</th></tr>"
    return (
        f"{head}<p>{escape(_counts(report))}</p>\n<table>\n{titles}\n"
        + "\n".join(rows)
        + "\n</table>\n</html>\n"
    )


def _sentences(report: Json) -> list[Json]:
    return cast("list[Json]", report["sentences"])


def _place(sentence: Json) -> Json | None:
    """Return the best place of a sentence that claims something."""
    places = cast("list[Json]", sentence["citations"])
    return places[0] if places else None


def _counts(report: Json) -> str:
    counts = cast("dict[str, int]", report["counts"])
    return ", ".join(f"{counts[verdict]} {said}" for verdict, said in _SAID.items())


def _where(place: Json) -> str:
    named = f"{place['title']}, {place['library']}, {place['doc_id']}, " if place["doc_id"] else ""
    return f"{named}characters {place['start']} to {place['end']}, support {cast('float', place['support']):.2f}"


def _line(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _QUOTE_CHARACTERS else line[: _QUOTE_CHARACTERS - 1] + "\u2026"
