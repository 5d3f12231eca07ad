"""Work in a child forked from a process that has imported everything and opened nothing.

Importing the storage takes seconds, a fork milliseconds. But threads do not survive a fork, and
Chroma has some once it was opened, so the process that runs the tests is not the one that forks: a
server of its own does, which starts no thread. A child that wants one more child asks the same
server. Every call has a deadline; one that passes it says where it stood.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]

DEADLINE_S = 120.0
"""Longest a child may take: the longest takes seconds, a busy machine several times that."""

_START_S = 120.0
_MARGIN_S = 30.0
"""How much later than its child's deadline a caller gives up on the server itself."""

PRELOADED = (
    "app.storage.store",
    "chromadb",
    "tests.crash.workload",
    "tests.crash.trials",
    "tests.unit.storage.test_writer",
)
"""What children need, imported before the first fork."""


class Forks:
    """The server, while the context lasts."""

    def __enter__(self) -> Self:
        """Start it, and wait until it has imported everything.

        Raises:
            RuntimeError: It did not start.
        """
        self._directory = tempfile.TemporaryDirectory(prefix="documind-forks-")
        self.address = str(Path(self._directory.name) / "socket")
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.forks", self.address],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._server.stdout is not None
        ready, _, _ = select.select([self._server.stdout], [], [], _START_S)
        if not ready or self._server.stdout.readline() != b"ready\n":
            self.__exit__(None, None, None)
            raise RuntimeError("the server that forks did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it; children end with the calls that asked for them."""
        self._server.kill()
        self._server.communicate()
        self._directory.cleanup()

    def run(self, work: Callable[[], object], *, deadline_s: float = DEADLINE_S) -> tuple[int, str]:
        """Run `work`, which can be pickled, in a child; return its exit status and what it returned, as text."""
        return call(self.address, work, deadline_s=deadline_s)


def call(
    address: str, work: Callable[[], object], *, deadline_s: float = DEADLINE_S
) -> tuple[int, str]:
    """Do as `Forks.run`, from any process that knows the server's address."""
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(address)
    with Connection(peer.detach()) as connection:
        connection.send_bytes(pickle.dumps((pickle.dumps(work), deadline_s)))
        if not connection.poll(deadline_s + _MARGIN_S):
            return -1, f"the server that forks said nothing for {deadline_s + _MARGIN_S:.0f} s"
        try:
            status, said = connection.recv()
        except EOFError:
            return -1, "the server that forks ended"
        return int(status), str(said)


def _serve(address: str) -> None:
    """Fork for every call until standard input is closed."""
    for name in PRELOADED:
        importlib.import_module(name)
    vars(importlib.import_module("tests.crash.trials"))["use_forks"]()
    if (tasks := sum(1 for _ in Path("/proc/self/task").iterdir())) != 1:
        raise SystemExit(f"this process has {tasks} threads, and forks lose them")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks what became of the wardens
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        peer, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(Connection(peer.detach()))
            os._exit(0)
        peer.close()


def _answer(caller: Connection) -> None:
    """Run one call in a child of this process, which watches it and tells the caller how it ended."""
    work, deadline_s = pickle.loads(caller.recv_bytes())  # from our own tests
    said, says = os.pipe()
    stood, stands = os.pipe()  # not a file: a child with a full disk could not write it
    child = os.fork()
    if child == 0:
        caller.close()
        _work(work, deadline_s, says, stands)
    os.close(says)
    os.close(stands)
    content = b""
    while caller not in wait([said, caller]):  # a pipe ends with its last writer
        piece = os.read(said, 1 << 16)
        if not piece:
            break
        content += piece
    else:  # nobody waits for it any more
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(stood, "rb") as file:
        where = file.read().decode(errors="replace")
    text = (
        f"did not end within {deadline_s:.0f} s:\n{where}"
        if where
        else content.decode(errors="replace")
    )
    caller.send((status, text))


def _work(work: bytes, deadline_s: float, says: int, stands: int) -> None:
    """Run the call and end this process."""
    faulthandler.dump_traceback_later(deadline_s, exit=True, file=stands)
    status = 0
    try:
        said = repr(pickle.loads(work)())  # from our own tests
    except BaseException:
        status, said = 1, traceback.format_exc()
    faulthandler.cancel_dump_traceback_later()
    with os.fdopen(says, "wb") as file:
        file.write(said.encode())
    os._exit(status)


if __name__ == "__main__":
    _serve(sys.argv[1])
