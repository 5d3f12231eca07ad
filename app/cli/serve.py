"""`documind serve`: the server in the foreground."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from app.cli.connection import base_url
from app.cli.edge import configure_logs, make_app
from app.cli.output import err, say
from app.core.errors import InvalidInput
from app.index.lock import DirectoryLock
from app.settings import Settings, unknown_names

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(serve)


def serve(
    host: Annotated[str | None, typer.Option(help="address to listen on (API_HOST)")] = None,
    port: Annotated[int | None, typer.Option(help="port to listen on (API_PORT)")] = None,
) -> None:
    """Start the server and stay in the foreground; Ctrl-C ends it cleanly.

    Example: documind serve --port 9000
    """
    given = {name: value for name, value in (("api_host", host), ("api_port", port)) if value is not None}
    settings = Settings().model_copy(update=given)
    check_bind(settings)
    for name in unknown_names():
        err.print(f"[yellow]warning:[/] {name} looks like one of our settings but is none; see docs/configuration.md")
    with DirectoryLock([settings.data_dir, settings.chroma_dir], base_url(settings)) as lock:
        run(settings, lock)


def check_bind(settings: Settings) -> None:
    """Refuse to listen beyond this machine without a key.

    Raises:
        InvalidInput: No API_KEY on an address that others can reach.
    """
    if settings.api_host not in LOOPBACK and not settings.api_key and not settings.allow_insecure_bind:
        raise InvalidInput(
            f"API_HOST {settings.api_host!r} can be reached from other machines and no API_KEY is set:"
            " set API_KEY, or ALLOW_INSECURE_BIND=true if something in front of the server asks for one"
        )


def run(settings: Settings, lock: DirectoryLock) -> None:
    """Serve until told to stop; the data directory's lock is held by the caller."""
    import uvicorn  # noqa: PLC0415  # heavy imports come after the lock, so that a second process is refused at once

    configure_logs(settings)
    url = base_url(settings)
    app = make_app(settings, lock, lambda: say(f"DocuMind is ready: {url}  (Ctrl-C ends it)"))
    config = uvicorn.Config(
        app,
        host=settings.api_host,
        port=settings.api_port,
        log_config=None,
        access_log=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=20,
        h11_max_incomplete_event_size=65_536,
        proxy_headers=bool(settings.forwarded_allow_ips),
        forwarded_allow_ips=settings.forwarded_allow_ips or None,
        server_header=False,
    )
    logging.getLogger(__name__).info("listening on %s", url)
    uvicorn.Server(config).run()
