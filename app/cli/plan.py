"""`documind plan`: what a number of chunks needs, with the source of each figure."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.output import emit, say, table
from app.jobs.capacity import plan as capacity
from app.jobs.capacity import shown

MOST_CHUNKS = 10**12
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def count_of(text: str) -> int:
    """Return a number of chunks that a person wrote: 1e9, 25M, 100,000.

    Raises:
        BadParameter: It is none, or not within 1 and 10^12.
    """
    written = text.strip().upper().replace(",", "").replace("_", "")
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:E\+?\d{1,2})?)([KMB]?)", written)
    number = round(float(match[1]) * _UNITS[match[2]]) if match else 0
    if not 1 <= number <= MOST_CHUNKS:
        raise typer.BadParameter(
            f"{text!r} is no number of chunks; give 1 to 1e12, like 1e9, 25M or 100000"
        )
    return number


def plan(
    chunks: Annotated[
        str, typer.Option(help="chunks in the library: 1e9, 25M or 100000 [1 to 1e12]")
    ],
    dimension: Annotated[
        int,
        typer.Option(
            min=1, max=65_536, help="number of values in a vector; the built-in model: 384"
        ),
    ] = 384,
    replicas: Annotated[
        int, typer.Option(min=1, max=16, help="number of copies of each point in the search engine")
    ] = 2,
    machines: Annotated[
        int, typer.Option(min=1, max=10_000, help="number of machines that embed, of 2 cores each")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="print the plan as JSON")] = False,
) -> None:
    """Plan nodes, memory, disk and hours by arithmetic; runs nothing.

    Example: documind plan --chunks 1e9 --replicas 2 --machines 64
    """
    count = count_of(chunks)
    rows = capacity(count, dimension, replicas, machines)
    if as_json:
        given = {"dimension": dimension, "replicas": replicas, "machines": machines}
        emit({"chunks": count, **given, "figures": [asdict(row) for row in rows]})
        return
    say(f"{count:,} chunks, {dimension} numbers a vector, {replicas} copies in the search engine")
    table(
        ("mode", "what", "figure", "computed from"),
        [(row.mode, row.what, shown(row), row.source) for row in rows],
        right=(2,),
    )
    say("`documind bulk plan SOURCE` times a sample of your own text and model.")
