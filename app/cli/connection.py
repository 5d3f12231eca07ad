"""Connect a command to its data: a running server, or one started for it.

Either way it speaks HTTP by the same client, so there is one path for every command.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from app.cli.edge import make_app
from app.client import DocuMindClient
from app.core.errors import Locked, ProviderUnreachable
from app.index.files.lock import DirectoryLock, owner
from app.settings import Settings

START_TIMEOUT_S = 600.0
"""A first start may rebuild an index of a million chunks."""
_POLL_S = 0.05


@contextmanager
def connect(settings: Settings) -> Iterator[DocuMindClient]:
    """Yield a client that reaches this configuration's data.

    Raises:
        Locked: A process without a server owns the data directory.
        ProviderUnreachable: The server that owns it does not answer.
    """
    held_by = owner(settings.data_dir)
    if held_by is not None and held_by.url:
        with DocuMindClient(held_by.url, settings.api_key) as client:
            client.ready()
            yield client
        return
    if held_by is not None:
        raise Locked(
            f"process {held_by.pid} is working on {str(settings.data_dir)!r}; wait for it, or use"
            " another DATA_DIR"
        )
    with _own_server(settings) as url, DocuMindClient(url, settings.api_key) as client:
        yield client


@contextmanager
def _own_server(settings: Settings) -> Iterator[str]:
    """Serve on a free loopback port in a thread, quietly."""
    lock = DirectoryLock([settings.data_dir, settings.chroma_dir])
    try:
        from app.index.maintenance.start_checks import refuse_foreign_catalog  # noqa: PLC0415  # SQL comes after the lock

        refuse_foreign_catalog(settings.data_dir, settings.database_url)
        import uvicorn  # noqa: PLC0415  # heavy imports come after the lock, so that a second process is refused at once

        app = make_app(
            settings.model_copy(update={"api_host": "127.0.0.1", "samples": False}), lock
        )
        server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", access_log=False)
        )
        thread = threading.Thread(target=server.run, name="own-server", daemon=True)
        thread.start()
        try:
            url = _address(server, thread)
            lock.announce(url, lasting=False)
            with DocuMindClient(url, settings.api_key) as client:
                _wait_until_ready(client, thread)
            yield url
        finally:
            server.should_exit = True
            thread.join(30)
    finally:
        lock.close()


def _address(server: object, thread: threading.Thread) -> str:
    while not getattr(server, "started", False):
        if not thread.is_alive():
            raise ProviderUnreachable(
                "the server inside this command did not start; run: documind doctor"
            )
        time.sleep(_POLL_S)
    port = server.servers[0].sockets[0].getsockname()[1]  # type: ignore[attr-defined]  # uvicorn types `servers` as a list of Any
    return f"http://127.0.0.1:{port}"


def _wait_until_ready(client: DocuMindClient, thread: threading.Thread) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while client.ready().get("status") != "ready":
        if not thread.is_alive() or time.monotonic() > deadline:
            raise ProviderUnreachable(
                "the server inside this command ended while it opened the data; run: documind"
                " doctor"
            )
        time.sleep(_POLL_S)


def base_url(settings: Settings) -> str:
    """Return the address of `documind serve` as a person on this machine writes it."""
    host = "127.0.0.1" if settings.api_host in ("0.0.0.0", "::") else settings.api_host  # noqa: S104  # compared, not bound
    url = f"http://{f'[{host}]' if ':' in host else host}:{settings.api_port}"
    return urlsplit(url).geturl() + settings.root_path.rstrip("/")
