"""`documind work`: jobs of a shared catalog, without a server."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Annotated

import typer

from app.cli.edge import configure_logs, make_services
from app.cli.output import complain, err, say
from app.core.errors import InvalidInput
from app.index.files.lock import DirectoryLock
from app.settings import Settings
from app.settings.checks import check_work, lanes_of


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(work)


def work(
    lanes: Annotated[
        str | None,
        typer.Option(
            help="lanes to work in, with commas: interactive (uploads), background (vectors, bulk,"
            " checks), network (downloads) [default: JOB_LANES]"
        ),
    ] = None,
) -> None:
    """Run jobs of a shared catalog (DATABASE_URL, SEARCH_URL) until told to stop.

    Example: documind work --lanes background,network
    """
    try:
        settings = Settings()
        if lanes is not None:
            settings = settings.model_copy(update={"job_lanes": lanes_of(lanes)})
        check_work(settings)
        configure_logs(settings)
        with DirectoryLock([settings.data_dir, settings.chroma_dir]) as lock:
            _run(settings, lock)
    except InvalidInput as error:  # a setting, or what it names
        complain(error.message)
        sys.exit(2)


def _run(settings: Settings, lock: DirectoryLock) -> None:
    """Work until SIGTERM or Ctrl-C; jobs that run then are queued again."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    if not settings.originals_url:
        err.print(
            "[yellow]warning:[/] ORIGINALS_URL is empty: files that other servers accept are read"
            " from DATA_DIR/originals, which must then be one directory for all"
        )
    with make_services(settings, lock):
        say(f"DocuMind works: {', '.join(settings.job_lanes)}  (Ctrl-C ends it)")
        stopping.wait()
        say("DocuMind stops: jobs that run are queued again")
