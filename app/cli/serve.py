"""`documind serve`: the server in the foreground."""

from __future__ import annotations

import errno
import gc
import socket
import sys
from typing import Annotated

import typer

from app.cli.connection import base_url
from app.cli.edge import configure_logs, make_app, make_server
from app.cli.output import complain, err, say
from app.cli.page import open_page
from app.client import DocuMindClient
from app.core.errors import Conflict, DocuMindError, InvalidInput
from app.index.files.lock import DirectoryLock
from app.settings import Settings
from app.settings.checks import check_start, unknown_names


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(serve)


def serve(
    host: Annotated[
        str | None, typer.Option(help="address to listen on [default: API_HOST]")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", help="port to listen on [default: API_PORT]")
    ] = None,
    open_it: Annotated[
        bool, typer.Option("--open", help="open the page in a browser when it is ready")
    ] = False,
    no_work: Annotated[
        bool,
        typer.Option("--no-work", help="leave jobs to `documind work` (needs SEARCH_URL)"),
    ] = False,
) -> None:
    """Start the server and stay in the foreground; Ctrl-C ends it cleanly.

    Example: documind serve --port 9000
    """
    options = (("api_host", host), ("api_port", port), ("job_lanes", () if no_work else None))
    given = {name: value for name, value in options if value is not None}
    settings = Settings().model_copy(update=given)
    check_start(settings)
    for name in unknown_names():
        err.print(
            f"[yellow]warning:[/] {name} looks like one of our settings but is none; see"
            " docs/configuration.md"
        )
    with DirectoryLock([settings.data_dir, settings.chroma_dir], base_url(settings)) as lock:
        check_port(settings)
        from app.index.maintenance.start_checks import refuse_foreign_catalog  # noqa: PLC0415  # SQL comes after the lock

        refuse_foreign_catalog(settings.data_dir, settings.database_url)
        run(settings, lock, open_when_ready=open_it)


def _taken(settings: Settings) -> str:
    """Return what to do about a port that another program listens on."""
    port = f"port {settings.api_port} of {settings.api_host!r} is taken by"
    other = "choose another port with --port or API_PORT"
    try:
        with DocuMindClient(base_url(settings), timeout_s=2.0) as client:
            ours = "generator" in client.health()
    except DocuMindError:
        ours = False
    if ours:
        return f"{port} a DocuMind: show it with documind open, or {other}"
    return f"{port} another program: end that one, or {other}"


def check_port(settings: Settings) -> None:
    """Refuse an address that cannot be listened on, before anything heavy is loaded.

    Raises:
        Conflict: Another program listens there.
        InvalidInput: No such address, or a port that this user may not have.
    """
    try:
        found = socket.getaddrinfo(
            settings.api_host, settings.api_port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as exc:
        raise InvalidInput(
            f"API_HOST {settings.api_host!r} is no address of this machine ({exc.strerror})"
        ) from exc
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as exc:
                if exc.errno == errno.EADDRINUSE:
                    raise Conflict(_taken(settings)) from exc
                if exc.errno == errno.EACCES:
                    raise InvalidInput(
                        f"port {settings.api_port} is not open to this user; choose one above 1023"
                    ) from exc
                if exc.errno == errno.EADDRNOTAVAIL and len(found) == 1:
                    raise InvalidInput(
                        f"API_HOST {settings.api_host!r} is no address of this machine"
                    ) from exc


def run(settings: Settings, lock: DirectoryLock, *, open_when_ready: bool = False) -> None:
    """Serve until told to stop; the data directory's lock is held by the caller.

    Raises:
        DocuMindError: The server could not start; a wrong setting ends the process with 2.
    """
    configure_logs(settings)
    url = base_url(settings)

    def ready() -> None:
        # What is loaded by now stays. Looking through it for garbage would stop every thread for 80
        # ms, about once in 300 searches.
        gc.freeze()
        say(f"DocuMind is ready: {url}  (Ctrl-C ends it)")
        if open_when_ready:
            open_page(url)

    failures: list[BaseException] = []

    def failed(error: BaseException) -> None:
        failures.append(error)
        server.should_exit = True

    server = make_server(make_app(settings, lock, on_ready=ready, on_failure=failed), settings)
    say(
        f"DocuMind is starting on {str(settings.data_dir.resolve())!r}; a first start takes a"
        " minute, later ones seconds."
    )
    server.run()
    for error in failures:
        if isinstance(error, InvalidInput):  # a setting, or a file that a setting names
            complain(error.message)
            sys.exit(2)
        raise error
