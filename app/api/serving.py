"""How an application is put behind a socket: one configuration for `documind serve` and for the tests that need connections."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from app.api.protocol import GuardedHttp
from app.settings import Settings

KEEP_ALIVE_S = 5
GRACE_S = 20
"""How long requests under way may take when the server is told to stop, seconds."""
_M_ARENA_MAX = -8
"""Of glibc's malloc.h."""
_ARENAS = 2
"""glibc gives every few threads an arena of their own and keeps what each ever needed: 845 MB after 100 uploads, against 641 MB
with two of them (docs/decisions/0102)."""


_SWITCH_S = 0.001
"""After how long a thread that computes must let another have the interpreter. A request changes threads several times and may
wait so long each time: with Python's 5 ms, `/health` took 33 ms (median, two cores, while files were read), with less 17 ms."""


def make_server(app: FastAPI, settings: Settings) -> uvicorn.Server:
    """Return a server of the app on the settings' address; `run` blocks until it is told to stop."""
    bound_arenas()
    sys.setswitchinterval(_SWITCH_S)
    return uvicorn.Server(server_config(app, settings))


def server_config(app: FastAPI, settings: Settings, *, port: int | None = None) -> uvicorn.Config:
    """Return how to serve an app.

    Args:
        app: The application.
        settings: Address, proxies that are believed, and the sizes that bound connections.
        port: Instead of API_PORT; 0 chooses a free one.
    """
    return uvicorn.Config(
        app,
        host=settings.api_host,
        port=settings.api_port if port is None else port,
        log_config=None,
        access_log=False,
        http=GuardedHttp,
        limit_concurrency=connections_allowed(settings),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        proxy_headers=bool(settings.forwarded_allow_ips),
        forwarded_allow_ips=settings.forwarded_allow_ips or None,
        server_header=False,
    )


def connections_allowed(settings: Settings) -> int:
    """Return how many connections there may be: twice what can be answered at once, for those that idle between requests."""
    return 2 * (settings.thread_pool_size + settings.max_streams)


def bound_arenas() -> None:
    """Let all threads share two arenas of memory, where the C library is glibc; elsewhere nothing happens."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # musl has no mallopt
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
