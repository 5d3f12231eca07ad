"""Chroma as a store of vectors, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import numpy as np

from app.core.errors import IndexDamaged
from app.core.types import FloatArray
from app.storage.catalog.schema import pieces
from app.storage.files.durable import Steps, disk_full, move_aside, move_contents_aside
from app.storage.files.lock import LOCK_NAME
from app.storage.vectors.port import Stamps, VectorStore

PIECE = 64
"""Rows a request. A search waits for one request at most, which takes 60 to 110 ms; 1,000 rows
take 450 ms."""

SEARCH_S = 5.0
"""How long a search waits for the process; after that the question is answered without it."""

OPEN_S = 60
"""How long the process may open a store, and a second more for each 10 MB of it. A million vectors
(1.6 GB) open within 20 s; one flipped bit of a graph's header makes Chroma hang forever."""

WORK_S = 300
"""How long any other operation may take."""

END_S = 10.0
"""How long the process may take to end before it is killed."""

ROOT = Path(__file__).resolve().parents[3]


@dataclass(slots=True)
class Pipeline:
    """One pipe to the process: a request and its reply at a time."""

    connection: Connection
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held from a request to its reply."""
    asked: int = 0
    answered: int = 0

    def ask(
        self, operation: str, arguments: tuple[object, ...], timeout_s: float | None
    ) -> tuple[str, object]:
        """Send a request; return its outcome and the answer or error.

        `late` leaves the reply to the next request. Without a timeout the process's own limit
        holds.

        Raises:
            EOFError: The process is gone.
            OSError: Likewise.
        """
        late = "late", f"no answer within {timeout_s or 0:.0f} s"
        while self.answered < self.asked:
            if not self.connection.poll(0):
                return late
            self.answered, _, _ = self.connection.recv()
        self.asked += 1
        self.connection.send((self.asked, operation, arguments))
        if not self.connection.poll(timeout_s):
            return late
        self.answered, outcome, value = self.connection.recv()
        return outcome, value

    def hang_up(self) -> None:
        """Make both sides read the end of the pipe, waiting threads included."""
        if not self.connection.closed:
            with suppress(OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as same:
                same.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Child:
    """The process, while it runs."""

    searches: Pipeline
    writes: Pipeline
    end: Callable[[float], str]
    """Wait so many seconds for the process to end, kill it otherwise; return how it ended."""


def launch(path: Path, ef_search: int) -> Child:
    """Start the process for a store's directory and a width of searches."""
    (searches, theirs), (writes, others) = Pipe(), Pipe()
    with theirs, others:
        handles = (theirs.fileno(), others.fileno())
        process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-m", "app.storage.vectors.chroma_child", str(path.absolute()),
             *map(str, (ef_search, OPEN_S, WORK_S, *handles))],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=ROOT, pass_fds=handles,
            start_new_session=True,
        )  # fmt: skip

    def end(timeout_s: float) -> str:
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode == -signal.SIGALRM:
            return "hung and was ended"
        return f"ended with {process.returncode}"

    return Child(Pipeline(searches), Pipeline(writes), end)


class ChromaStore(VectorStore):
    """Chroma in its process; the first request that is no search starts the process.

    It starts again after a failure.
    """

    def __init__(
        self, path: Path, steps: Steps, *, ef_search: int, search_s: float = SEARCH_S
    ) -> None:
        """Use the store in directory `path`, made when it is not there.

        A search is `ef_search` wide at least, and waits for `search_s` seconds.
        """
        self.path = path
        self._steps = steps
        self._ef_search = ef_search
        self._search_s = search_s
        self._lock = threading.RLock()
        self._child: Child | None = None

    def upsert(
        self, collection: str, chunk_ids: Sequence[int], rows: FloatArray, stamps: Stamps
    ) -> None:
        with self._steps.at("chroma.upsert"):
            for at, ids in enumerate(pieces(chunk_ids, PIECE)):
                piece = np.ascontiguousarray(rows[at * PIECE :][: len(ids)], np.float32)
                about = [dict(stamp) for stamp in stamps.of(ids)]
                self._work("upsert", collection, list(map(str, ids)), piece, about, stamps.embedder)

    def delete(self, collection: str, chunk_ids: Sequence[int]) -> None:
        if chunk_ids:
            with self._steps.at("chroma.delete"):
                for ids in pieces(chunk_ids, 4 * PIECE):  # a deletion costs a quarter of a row
                    self._work("delete", collection, list(map(str, ids)))

    def search(self, collection: str, query: FloatArray, n: int) -> list[int]:
        child = self._child
        if child is None:
            raise self._failed("it is not running")
        asked = "search", collection, query, n
        return cast("list[int]", self._ask(child, child.searches, self._search_s, *asked))

    def ids(self, collection: str) -> set[int]:
        return cast("set[int]", self._work("ids", collection))

    def count(self, collection: str) -> int:
        return cast("int", self._work("count", collection))

    def collections(self) -> list[str]:
        return cast("list[str]", self._work("collections"))

    def drop(self, collection: str) -> None:
        with self._steps.at("chroma.drop"):
            self._work("drop", collection)

    def set_aside(self) -> str:
        """End the process and keep the files of the store under another name; return it."""
        with self._lock:
            self.close()
            if not self.path.exists() or (self.path.is_dir() and not any(self.path.iterdir())):
                return ""
            if self.path.is_dir() and (self.path / LOCK_NAME).exists():
                return move_contents_aside(
                    self.path, LOCK_NAME, self._steps, "chroma.move_aside"
                ).name
            return move_aside(self.path, self._steps, "chroma.move_aside").name

    def close(self) -> None:
        with self._lock:
            if self._child is not None:
                self._end(self._child)

    # --- the process

    def _work(self, operation: str, *arguments: object) -> object:
        with self._lock:
            if self._child is None:
                if self.path.exists() and not self.path.is_dir():
                    raise self._failed("it is not a directory")
                self._child = launch(self.path, self._ef_search)
            child = self._child
        return self._ask(child, child.writes, None, operation, *arguments)

    def _ask(
        self,
        child: Child,
        pipe: Pipeline,
        timeout_s: float | None,
        operation: str,
        *arguments: object,
    ) -> object:
        try:
            with pipe.lock:
                outcome, value = pipe.ask(operation, arguments, timeout_s)
        except (EOFError, OSError):
            outcome, value = "failed", f"its process {self._end(child)}"
        if outcome == "done":
            return value
        if outcome == "full" or pipe is child.writes:
            self._end(child)  # what it holds in memory is not what is on disk
        raise disk_full(self.path) if outcome == "full" else self._failed(str(value))

    def _end(self, child: Child) -> str:
        with self._lock:
            if self._child is child:
                self._child = None
            for pipe in (child.searches, child.writes):
                pipe.hang_up()
            return child.end(END_S)

    def _failed(self, reason: str) -> IndexDamaged:
        return IndexDamaged(
            f"the vector store {self.path.name!r} failed ({reason}); lexical search serves until"
            " it is back"
        )
