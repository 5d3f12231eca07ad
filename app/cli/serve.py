"""Commands that run in the foreground: `serve`, `work`, `mcp`; and `migrate`."""

from __future__ import annotations

import errno
import gc
import signal
import socket
import sys
import threading
from contextlib import ExitStack, nullcontext, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from app.cli.connection import base_url, connect
from app.cli.output import HostOption, PortOption, complain, err, late, make_app, open_page, say
from app.client import DocuMindClient
from app.core.cancel import patiently
from app.core.errors import Conflict, DocuMindError, InvalidInput, passes_by_itself
from app.settings import Settings, check_start, check_work, lanes_of, unknown_names
from app.storage.files.lock import DirectoryLock

if TYPE_CHECKING:
    from mcp import Client
    from mcp.server import Server
    from mcp_types import PaginatedRequestParams


def serve(
    host: HostOption = None,
    port: PortOption = None,
    open_it: Annotated[
        bool, typer.Option("--open", help="open the page in a browser when it is ready")
    ] = False,
    no_work: Annotated[
        bool, typer.Option("--no-work", help="leave jobs to `documind work` (needs SEARCH_URL)")
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
        # SQL comes after the lock
        from app.storage.maintenance.start import refuse_foreign_catalog  # noqa: PLC0415

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
    serving, url = late("api.serving"), base_url(settings)
    serving.configure(settings.log_level, as_json=settings.log_json)

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

    app = make_app(settings, lock, on_ready=ready, on_failure=failed)
    server = serving.make_server(app, settings)
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


ALIVE_NAME = "worker_alive"
"""A file that a worker touches while it runs: it serves nothing that a health check could ask."""

ALIVE_EVERY_S = 10.0


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
        late("api.serving").configure(settings.log_level, as_json=settings.log_json)
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
    bootstrap = late("bootstrap")

    def passes(error: Exception) -> bool:
        if found := passes_by_itself(error):
            err.print(f"[yellow]waiting:[/] {escape(str(error))}")
        return found

    with ExitStack() as opened:
        patiently(
            lambda: opened.enter_context(bootstrap.build_services(settings, lock)),
            passes,
            stopping,
            settings.start_patience_s,
        )
        say(f"DocuMind works: {', '.join(settings.job_lanes)}  (Ctrl-C ends it)")
        alive = settings.data_dir / ALIVE_NAME
        while not stopping.is_set():
            with suppress(OSError):  # a full disk is no reason to end it
                alive.touch()
            stopping.wait(ALIVE_EVERY_S)
        say("DocuMind stops: jobs that run are queued again")


_CONNECT_TIMEOUT_S = 30.0
_SILENCE_S = 600.0
"""A slow model may think for minutes before its first word."""


def serve_stdio() -> None:
    """Offer the tools and documents to an MCP client over stdio.

    Example: documind mcp
    """
    # The SDK takes a third of a second to import; no other command needs it.
    import anyio  # noqa: PLC0415

    with connect(Settings()) as client:
        anyio.run(_bridge, f"{client.base_url}/mcp", client.api_key)


async def _bridge(url: str, api_key: str) -> None:
    """Pass requests on until standard input ends."""
    import httpx2  # noqa: PLC0415  # as above
    from mcp import Client, stdio_server  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    headers = {"X-API-Key": api_key} if api_key else {}
    timeout = httpx2.Timeout(_CONNECT_TIMEOUT_S, read=_SILENCE_S)
    # No proxy of the environment has any business between two processes of this machine.
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as remote,
        stdio_server() as (received, sent),
    ):
        server = _mirror(remote)
        await server.run(received, sent, server.create_initialization_options())


def _mirror(remote: Client) -> Server[Any]:
    """Return a server that offers what the one behind `remote` does."""
    from mcp.server import Server  # noqa: PLC0415  # as above

    def after(page: PaginatedRequestParams | None) -> str | None:
        return page.cursor if page else None

    about = remote.server_info  # optional in the protocol
    return Server(
        about.name if about else "documind",
        version=about.version if about else "",
        instructions=remote.instructions,
        on_list_tools=lambda _, page: remote.list_tools(cursor=after(page)),
        on_call_tool=lambda _, asked: remote.call_tool(asked.name, asked.arguments),
        on_list_resources=lambda _, page: remote.list_resources(cursor=after(page)),
        on_list_resource_templates=lambda _, page: remote.list_resource_templates(
            cursor=after(page)
        ),
        on_read_resource=lambda _, asked: remote.read_resource(asked.uri),
    )


def migrate() -> None:
    """Bring the catalog's schema to this release's, and exit.

    For installations of several servers: run it once before servers of a new release start. A
    server does the same as it starts. Exit code 2: a setting is wrong, or the database does not
    answer.

    Example: documind migrate
    """
    # SQL comes after the lock
    from app.storage.maintenance.start import migrate_catalog  # noqa: PLC0415

    settings = Settings()
    try:
        # a database has locks of its own
        locked = [] if settings.database_url else [settings.data_dir, settings.chroma_dir]
        with DirectoryLock(locked) if locked else nullcontext():
            done = migrate_catalog(settings.index())
    except InvalidInput as error:  # a setting, or what it names
        complain(error.message)
        sys.exit(2)
    if done.before is None:
        say(f"{done.name}: a new catalog, schema {done.after}")
    elif done.before == done.after:
        say(f"{done.name}: schema {done.after}, nothing to do")
    else:
        say(f"{done.name}: schema {done.before} is now {done.after}")
