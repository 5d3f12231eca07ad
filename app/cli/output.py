"""Print tables and progress for people, JSON for programs, errors with a fix."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from app.client import Json

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def emit(value: object) -> None:
    """Print one JSON value, for programs."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def emit_line(value: object) -> None:
    """Print a JSON value on its own line and flush, for programs that read along."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Print a line for people; text from documents is never read as markup."""
    out.print(escape(text))


def complain(message: str) -> None:
    """Print an error to standard error."""
    err.print(f"[bold red]error:[/] {escape(message)}")


def table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[int] = ()
) -> None:
    """Print rows; columns in `right` (by position) are numbers."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for position, header in enumerate(headers):
        grid.add_column(header, justify="right" if position in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(escape("" if cell is None else str(cell)) for cell in row))
    out.print(grid)


@contextmanager
def job_progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[Json], None]]:
    """Show a job's progress and ETA on standard error: a bar, or a line for each tenth in a file.

    Nothing when quiet.
    """
    tenths = 0
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeElapsedColumn(), TextColumn("{task.fields[eta]}"), console=err, transient=True,
        disable=quiet or not err.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task(escape(title), total=None, unit="", eta="")

        def changed(job: Json) -> None:
            nonlocal tenths
            eta_s = cast("float | None", job.get("eta_s"))
            done, total = (cast("float", job.get(name) or 0) for name in ("done", "total"))
            now = int(10 * done / total) if total else 0
            if now > tenths and not (quiet or err.is_terminal):
                err.print(f"{title}: {done:g} of {total:g} {job.get('unit') or ''}", markup=False)
            tenths = now
            bar.update(
                task,
                completed=cast("float", job.get("done") or 0),
                total=cast("float | None", job.get("total")),
                unit=str(job.get("unit") or ""),
                eta=f"about {duration(eta_s)} left" if eta_s is not None else "",
            )

        yield changed


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    if whole < 5400:
        return f"{whole // 60} min"
    return (
        f"{whole // 3600} h {whole % 3600 // 60} min"
        if whole < 172_800
        else f"{whole // 86_400} days"
    )


def size(count: float) -> str:
    """Return a number of bytes as people say it."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
