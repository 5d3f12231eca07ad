"""`documind doctor`: everything a stuck user needs to know, with the cure."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli import machine_checks, server_checks
from app.cli.findings import Diagnosis
from app.cli.output import emit, out, say
from app.settings import Settings

MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "problem": "[red]problem[/]"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="show only problems and notes")
    ] = False,
) -> None:
    """Check everything that may stop a user, and say how to fix it.

    Exit code 1 if there is a problem. Python, packages, clock, settings, keys, engines (PostgreSQL,
    Qdrant, object store), disk, file system, locks, ports, Ollama and its models, memory, every
    store, vectors that are missing, indexes that lag behind. A server is asked when one runs;
    otherwise one is opened for as long as this takes,
    which probes the stores.

    Example: documind doctor
    """
    settings = Settings()
    findings: list[Diagnosis] = []
    for check in (
        machine_checks.machine(),
        machine_checks.packages(),
        machine_checks.configuration(settings),
        machine_checks.directory(settings),
        machine_checks.engines(settings),
        server_checks.ollama(settings),
    ):
        findings += check
    if not any(
        finding.state == "problem" and finding.what == "data directory" for finding in findings
    ):
        findings += server_checks.server(settings)
        findings += machine_checks.broken_copies(settings)
    shown = [finding for finding in findings if not quiet or finding.state != "ok"]
    if as_json:
        emit([asdict(finding) for finding in shown])
    else:
        tell(shown, Counter(finding.state for finding in findings))
    if any(finding.state == "problem" for finding in findings):
        sys.exit(1)


def tell(findings: list[Diagnosis], counts: Counter[str]) -> None:
    """Print findings for people, and what they come to."""
    for finding in findings:
        out.print(f"{MARKS[finding.state]:>18}  ", end="")
        say(
            f"{finding.what}: {finding.detail}"
            + (f"\n         cure: {finding.cure}" if finding.cure else "")
        )
    say(f"{counts['problem']} problems, {counts['note']} notes, {counts['ok']} in order")
