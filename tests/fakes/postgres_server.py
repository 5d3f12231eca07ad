"""A real PostgreSQL server for tests: a cluster in a folder of its own, on loopback.

It needs Debian's server binaries, or POSTGRES_BIN names their directory. The server runs as a plain
user; root drops to one.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INSTALL = (
    "PostgreSQL's server is not here: run `apt-get install -y postgresql-15`, or set POSTGRES_BIN"
    " to"
    " the directory with initdb, postgres and psql"
)
PASSWORD = "a-secret-word"
_START_TIMEOUT_S = 60.0


def binaries() -> Path:
    """Return the directory of initdb, postgres and psql.

    Raises:
        RuntimeError: There is none; the message says how to install it.
    """
    named = os.environ.get("POSTGRES_BIN")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in [Path(named)] if named else debian:
        if all((place / name).exists() for name in ("initdb", "postgres", "psql")):
            return place
    raise RuntimeError(INSTALL)


class PostgresServer:
    """A cluster that can be started, stopped, killed and started again."""

    def __init__(self, folder: Path) -> None:
        """Make a cluster in an empty folder; nothing runs yet."""
        self.folder = folder
        self.port = _free_port()
        self._bin = binaries()
        self._process: subprocess.Popen[bytes] | None = None
        self._as = _plain_user(folder)
        word = folder / "word"
        word.write_text(PASSWORD)
        # Sorts as people do, unlike SQLite: the catalog must not depend on the cluster's order.
        order = ["--locale-provider=icu", "--icu-locale=en", "--locale=C", "--encoding=UTF8"]
        made = subprocess.run(
            [self._bin / "initdb", "-D", folder / "data", "-U", "documind", "-A", "scram-sha-256",
             f"--pwfile={word}", "--no-sync", *order],
            capture_output=True, check=False, cwd=folder, **self._as,  # type: ignore[call-overload]
        )  # fmt: skip
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr.decode()}")

    @property
    def pid(self) -> int:
        """Its first process; it runs."""
        if self._process is None:
            raise RuntimeError("postgres is not started")
        return self._process.pid

    def url(self, schema: str = "public", password: str = PASSWORD) -> str:
        """Return the address of a schema of the database."""
        path = f"127.0.0.1:{self.port}/postgres?options=-csearch_path%3D{schema}"
        return f"postgresql://documind:{password}@{path}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        log = (self.folder / "log").open("ab")
        options = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder)]
        settings = ["-c", "fsync=off", "-c", "max_connections=200"]  # a kill is no power cut
        self._process = subprocess.Popen(
            [self._bin / "postgres", "-D", self.folder / "data", *options, *settings],
            stdout=log, stderr=log, cwd=self.folder, **self._as,  # type: ignore[call-overload]
        )  # fmt: skip
        log.close()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"postgres did not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.05)

    def stop(self, *, kill: bool = False) -> None:
        """Stop the server: at once by its own fast shutdown, or by SIGQUIT (`kill`)."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if kill else signal.SIGINT)
            self._process.wait(60)
            self._process = None

    def run(self, statement: str) -> str:
        """Return what psql prints for a statement, unaligned and without headers."""
        return subprocess.run(
            [self._bin / "psql", self.url(), "-qAtc", statement],
            capture_output=True, check=True, text=True,
        ).stdout.strip()  # fmt: skip

    def dump(self, schema: str) -> bytes:
        """Return what pg_dump writes of a schema."""
        command = [str(self._bin / "pg_dump"), "--schema", schema, self.url()]
        return subprocess.run(command, capture_output=True, check=True).stdout

    def restore(self, schema: str, dump: bytes) -> None:
        """Put a schema back to what a dump of it has; end the sessions that use it."""
        self.run(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name = 'documind'"
        )
        self.run(f"DROP SCHEMA {schema} CASCADE")
        command = [str(self._bin / "psql"), self.url(), "-qAt", "-v", "ON_ERROR_STOP=1"]
        subprocess.run(command, input=dump, stdout=subprocess.DEVNULL, check=True)

    def _answers(self) -> bool:
        asked = [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, check=False).returncode == 0


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Yield a started server; its folder is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="documind-postgres-"))
    try:
        server = PostgresServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _plain_user(folder: Path) -> dict[str, object]:
    """Return how to run as a plain user, who gets the folder; nothing where we are one."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
