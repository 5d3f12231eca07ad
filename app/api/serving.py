"""Put an application behind a socket, and write the log of its process."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import socket
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

import uvicorn
from fastapi import FastAPI

from app.api.connections import GuardedHttp
from app.api.deps import AppState
from app.core.cancel import CancelToken
from app.settings import Settings
from app.storage.files.durable import utc_text

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 5
GRACE_S = 8
"""How long requests under way may take when the server is told to stop, seconds; those that wait
for a job are answered at once."""
EXIT_S = 18.0
"""Seconds from the stop to the forced end of open requests; acknowledged data is durable by
then."""
_M_ARENA_MAX = -8
"""Of glibc's malloc.h."""
_ARENAS = 2
"""glibc gives every few threads an arena of their own and keeps what each ever needed: 845 MB
after 100 uploads, against 641 MB with two of them (docs/decisions/0030)."""


_SWITCH_S = 0.001
"""After how long a thread that computes must let another have the interpreter. A request changes
threads several times and may wait so long each time: with Python's 5 ms, `/health` took 33 ms
(median, two cores, while files were read), with less 17 ms."""


class StoppingServer(uvicorn.Server):
    """uvicorn's server that reports its stop to waiters and ends in bounded time."""

    exit_s = EXIT_S

    def __init__(self, config: uvicorn.Config, stopping: CancelToken) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests end and the app close; end the process after `exit_s` seconds."""
        late = threading.Timer(self.exit_s, _end_now)
        late.daemon = True
        late.start()
        self._stopping.cancel()
        await super().shutdown(sockets)
        late.cancel()


def _end_now() -> None:
    logger.warning(
        "something did not end in time; the process ends now, and the next start goes on with it"
    )
    os._exit(0)


def make_server(app: FastAPI, settings: Settings) -> uvicorn.Server:
    """Return a server on the settings' address; `run` blocks until it is stopped."""
    bound_arenas()
    sys.setswitchinterval(_SWITCH_S)
    edge: AppState = app.state.edge
    return StoppingServer(server_config(app, settings), edge.stopping)


def server_config(app: FastAPI, settings: Settings, *, port: int | None = None) -> uvicorn.Config:
    """Return how to serve an app; port 0 chooses a free one, None is API_PORT."""
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
    """Return twice the requests answered at once: half of the connections idle between requests."""
    return 2 * (settings.thread_pool_size + settings.max_streams)


def bound_arenas() -> None:
    """Limit glibc to two arenas of memory; elsewhere do nothing."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # musl has no mallopt
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127, *range(128, 160))}
"""Everything but tab and line feed: a document's or client's text must not steer a terminal
(docs/facts/libraries.md)."""


class PlainFormatter(logging.Formatter):
    """`time level logger: message`, UTC, control characters made visible."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(  # noqa: N802
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        """Return the time as UTC ISO 8601 with milliseconds."""
        del datefmt
        return utc_text(datetime.fromtimestamp(record.created, UTC))

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).translate(_CONTROL)


class JsonFormatter(logging.Formatter):
    """Writes one JSON object a line: time, level, logger, message, `extra` fields, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": utc_text(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields.update(
            (name, value) for name, value in record.__dict__.items() if name not in _STANDARD
        )
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def configure(level: str, *, as_json: bool, stream: TextIO | None = None) -> None:
    """Send every log line of the process to one place, standard error by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else PlainFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    # libraries chat at INFO; ours is what INFO asks for
    root.setLevel(logging.WARNING if level == "INFO" else level)
    logging.getLogger("app").setLevel(level)
