"""What commands share: output, options, the browser, modules that are imported late."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.table import Table

from app.client import Json
from app.core.errors import InvalidInput, NotFound
from app.core.normalisation import UNSHOWABLE
from app.core.text import either
from app.core.types import Library, LibraryName
from app.settings import Settings
from app.storage.files.lock import DirectoryLock, owner

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_NO_LAYOUT = re.compile(rf"(?![\n\t])(?:{UNSHOWABLE.pattern})")


def shown(text: str) -> str:
    """Return a text without what would control the terminal or its direction of writing."""
    return _NO_LAYOUT.sub("", text)


class CleanConsole(Console):
    """Prints what documents, servers and hosts say without their control characters."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text), style, control)


out = CleanConsole(highlight=False, soft_wrap=True)
err = CleanConsole(stderr=True, highlight=False, soft_wrap=True)

_PIPE_WIDTH = 10_000
"""Characters of the longest line of a table in a pipe."""


def emit(value: object) -> None:
    """Print one JSON value, for programs."""
    sys.stdout.write(_json(value, indent=2) + "\n")


def _json(value: object, indent: int | None = None) -> str:
    """Return JSON that a terminal can be shown: what would control it is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    return _NO_LAYOUT.sub(lambda sign: json.dumps(sign.group())[1:-1], text)


def emit_line(value: object) -> None:
    """Print a JSON value on its own line and flush, for programs that read along."""
    sys.stdout.write(_json(value) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """Print a line for people; text from documents is never read as markup."""
    out.print(escape(text))


def tell(found: object, text: str, *, as_json: bool) -> None:
    """Print a result: as JSON for programs, as a line for people."""
    emit(found) if as_json else say(text)


def complain(message: str) -> None:
    err.print(f"[bold red]error:[/] {escape(message)}")


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[int] = (),
    whole: Sequence[int] = (),
) -> None:
    """Print rows; columns in `right` (by position) are numbers, those in `whole` stay on a line.

    In a pipe every row is one line.
    """
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for position, header in enumerate(headers):
        justify: Literal["left", "right"] = "right" if position in right else "left"
        grid.add_column(header, justify=justify, overflow="fold", no_wrap=position in whole)
    for row in rows:
        grid.add_row(*(escape("" if cell is None else str(cell)) for cell in row))
    if out.is_terminal:
        out.print(grid)
    else:
        CleanConsole(file=out.file, width=_PIPE_WIDTH, highlight=False).print(grid)


SOME_FAILED = 3
"""Exit code when some of several files failed."""


@contextmanager
def job_progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[Json], None]]:
    """Show progress on standard error unless quiet: a bar, or a line for each tenth in a file.

    What has no `eta_s` is taken to go on as fast as until now.
    """
    tenths, began = 0, monotonic()
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
            done, total = ((job.get(name) or 0) for name in ("done", "total"))
            eta_s = job.get("eta_s")
            if "eta_s" not in job and 0 < done < total:
                eta_s = (monotonic() - began) * (total - done) / done
            now = int(10 * done / total) if total else 0
            if now > tenths and not (quiet or err.is_terminal):
                err.print(f"{title}: {done:g} of {total:g} {job.get('unit') or ''}", markup=False)
            tenths = now
            bar.update(
                task,
                completed=(job.get("done") or 0),
                total=job.get("total"),
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


def open_running() -> None:
    """Open the page of the server that runs on this data.

    Example: documind open
    """
    running = owner(Settings().data_dir)
    if running is None or not running.url or not running.lasting:
        raise NotFound("no server is running on this data; start one: documind up")
    if not open_page(running.url):
        say(f"there is no browser here; the page is at {running.url}")


def open_page(url: str) -> bool:
    """Open the page in a browser and return True, where there is a screen for it."""
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return False
    return webbrowser.open(url)


def one_of(values: Sequence[str], *names: str, text: str = "{}") -> Any:  # typer's
    """Return an option for names of a closed set, which Tab completes; `{}` in its help is them."""

    def check(given: str | list[str] | None) -> str | list[str] | None:
        for one in given if isinstance(given, list) else [given]:
            if one is not None and one not in values:
                raise typer.BadParameter(f"{one!r} must be {either(values)}")
        return given

    return typer.Option(
        *names,
        help=text.format(either(values)),
        callback=check,
        autocompletion=lambda: list(values),
    )


LIBRARIES = get_args(LibraryName)
LibraryOption = Annotated[str, one_of(LIBRARIES, "--library", "-l")]
AnyLibraryOption = Annotated[
    str | None, one_of(LIBRARIES, "--library", "-l", text="{} [default: both]")
]
TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", "-t", help="only documents with this tag; repeatable [default: any]"),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="only documents whose own metadata is so: KEY=VALUE or KEY=FROM..TO; repeatable"
        " [default: any]",
    ),
]
CollectionOption = Annotated[
    str | None,
    typer.Option("--collection", help="only what this saved filter allows [default: all]"),
]
HostOption = Annotated[
    str | None, typer.Option("--host", help="address to listen on [default: API_HOST]")
]
PortOption = Annotated[
    int | None, typer.Option("--port", "-p", help="port to listen on [default: API_PORT]")
]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON")]


def check_library(name: str) -> Library:
    """Return a library by name.

    Raises:
        InvalidInput: It is neither `public` nor `papers`.
    """
    try:
        return Library(name)
    except ValueError as exc:
        raise InvalidInput(f"library {name!r} is none of {', '.join(Library)}") from exc


def group(name: str, about: str) -> typer.Typer:
    """Return a command that holds others."""
    return typer.Typer(name=name, help=about, no_args_is_help=True, rich_markup_mode=None)


def late(module: str) -> Any:  # a module
    """Return a module of the server, which only commands that start one import: it is heavy."""
    return importlib.import_module(f"app.{module}")


def make_app(settings: Settings, lock: DirectoryLock, **told: Callable[..., None]) -> ASGIApp:
    """Return the ASGI application of a locked data directory; `told`: on_ready, on_failure."""
    build = partial(late("bootstrap").build_services, lock=lock)
    app: ASGIApp = late("api.app").create_app(settings, build=build, local_key=lock.key, **told)
    return app
