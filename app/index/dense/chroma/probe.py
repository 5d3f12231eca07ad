"""Is a Chroma store fit to be opened? Asked in a child process, because a damaged one can end the process that opens it.

The child reads the files first, then opens the store and asks it for vectors that the catalog knows. Its answer is one line of
JSON; anything else, a signal or a time-out included, means damage.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from app.core.errors import StorageError
from app.index.dense.chroma.resting_store import COMPARED, Expected, catalog_rows, check_files, compare_vectors
from app.index.dense.chroma.self_query import differing, held_of, too_many, unfound
from app.index.files.durable import disk_full, says_full

PROBE_TIMEOUT_S = 300.0
"""Opening 60,000 vectors takes a second (facts/libraries.md); a million with a cold disk stays far under this."""

MAX_FILE_BYTES = 64 << 30
"""A torn link list made the store grow a file of terabytes (facts/chroma.md 1.2): the child may not."""

_LOOK_UP_S = 0.5
"""How often it is asked whether to stop waiting for the child."""

_TOLD_TO_END = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""What a terminal or a service manager sends to every process of a group: no finding."""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """What the probe says: empty problems mean healthy."""

    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether the store may be opened."""
        return not self.problems


def probe(
    chroma: Path,
    catalog: Path,
    expected: list[Expected],
    *,
    compare_all: bool = False,
    open_store: bool = True,
    stop: threading.Event | None = None,
) -> ProbeFinding:
    """Ask a child process whether the store is healthy; the store itself is not opened here.

    Args:
        chroma: The store's directory.
        catalog: The catalog's file, for the vectors that should be found.
        expected: What the collections should hold.
        compare_all: Compare every vector, not only some.
        open_store: Let the child open the store; False when this process has it open, and only the files may be read.
        stop: When set, the child is ended and nothing is found.

    Raises:
        DiskFull: No space to look at it: nothing is known of the store.
        StorageError: Stopped, or the child was told to end, which says nothing of the store either.
    """
    wanted = [asdict(e) for e in expected]
    request = json.dumps(
        {"chroma": str(chroma), "catalog": str(catalog), "expected": wanted, "all": compare_all, "open": open_store}
    )
    root = Path(__file__).resolve().parents[4]
    lifeline, held = os.pipe()
    try:
        child = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-m", "app.index.dense.chroma.probe", str(lifeline)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root, pass_fds=(lifeline,),
            start_new_session=True,  # Ctrl-C is for us
        )  # fmt: skip
        with child:
            answer = _answer(child, request, stop)
            if answer is None:
                child.kill()
                if stop is not None and stop.is_set():
                    raise StorageError("the check of the vector store was stopped")
                return ProbeFinding((f"opening the store took over {PROBE_TIMEOUT_S:.0f} s",))
    finally:
        os.close(lifeline)
        os.close(held)
    said, complained = answer
    if -child.returncode in _TOLD_TO_END:
        raise StorageError(f"the check of the vector store was ended with signal {-child.returncode}")
    if child.returncode < 0:
        return ProbeFinding((f"opening the store killed the process that tried, with signal {-child.returncode}",))
    if child.returncode and says_full(complained):
        raise disk_full(chroma)
    try:
        return ProbeFinding(tuple(json.loads(said.strip().splitlines()[-1])["problems"]))
    except (ValueError, KeyError, IndexError):
        return ProbeFinding((f"the probe ended with {child.returncode} and said: {complained.strip()[-300:]!r}",))


def _answer(child: subprocess.Popen[str], request: str, stop: threading.Event | None) -> tuple[str, str] | None:
    """Return what the child says and complains of; None when it takes too long or `stop` is set first."""
    until = time.monotonic() + PROBE_TIMEOUT_S
    unsent: str | None = request
    while time.monotonic() < until and not (stop is not None and stop.is_set()):
        with suppress(subprocess.TimeoutExpired):
            return child.communicate(unsent, timeout=_LOOK_UP_S)
        unsent = None  # it is on its way
    return None


def _self_query(chroma: Path, catalog: Path, expected: list[Expected], *, compare_all: bool) -> list[str]:
    import chromadb  # noqa: PLC0415  # only in the child: its native code is what may crash
    from chromadb.config import Settings  # noqa: PLC0415

    problems: list[str] = []
    client = chromadb.PersistentClient(path=str(chroma), settings=Settings(anonymized_telemetry=False))
    names = {collection.name for collection in client.list_collections()}
    connection = sqlite3.connect(f"file:{catalog}?mode=ro", uri=True)
    for want in expected:
        if want.collection not in names:
            if want.count > len(want.uncertain):
                problems.append(f"collection {want.collection} is missing")
            continue
        collection = client.get_collection(want.collection, embedding_function=None)
        count = collection.count()
        if abs(count - want.count) > len(want.uncertain):
            problems.append(f"{want.collection} holds {count} vectors, the catalog {want.count}")
        sample = dict(catalog_rows(connection, want, sorted(set(want.sample) - set(want.uncertain))))
        sample = held_of(collection, sample) if want.capped else sample
        every = {**sample, **dict(catalog_rows(connection, want, queued(chroma, want)))} if compare_all else sample
        if wrong := differing(collection, held_of(collection, every) if want.capped else every):
            problems.append(f"{want.collection} does not hold the vector of chunk {wrong[0]}")
        elif too_many(len(missed := unfound(collection, sample)), len(sample)):
            problems.append(f"{want.collection} finds {len(sample) - len(missed)} of {len(sample)} of its vectors")
    connection.close()
    return problems


def queued(chroma: Path, want: Expected) -> list[int]:
    """Return the chunks whose vectors are not in the segment's files yet, which `compare_vectors` reads."""
    connection = sqlite3.connect(f"file:{chroma / 'chroma.sqlite3'}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT DISTINCT id FROM embeddings_queue ORDER BY seq_id DESC LIMIT ?", (COMPARED,)).fetchall()
    finally:
        connection.close()
    return sorted({int(row[0]) for row in rows if row[0].isdecimal()} - set(want.uncertain))


def examine(chroma: Path, catalog: Path, expected: list[Expected], *, compare_all: bool, open_store: bool = True) -> list[str]:
    """Return what is wrong with a store; opening it may end this process, so nobody but a child calls this."""
    problems, segments = check_files(chroma, alone=open_store)
    for want in expected:
        if not problems and want.collection in segments:
            problems += compare_vectors(segments[want.collection], catalog, want, None if compare_all else COMPARED)
    if open_store and not problems:
        problems += _self_query(chroma, catalog, expected, compare_all=compare_all)
    return problems


def _end_with_parent(lifeline: int) -> None:
    """End this process when the one that asked is gone: the next server must not meet it in the store.

    Opening a store writes to it when its log is long, and two processes that write destroy it (facts/chroma.md 1.2).
    """
    poll = select.poll()
    poll.register(lifeline, 0)  # the end of the other side is reported whatever is asked for
    poll.poll()
    os._exit(1)


def main() -> int:
    """Answer one request from standard input on standard output; the argument is a pipe that closes when the asker is gone."""
    threading.Thread(target=_end_with_parent, args=(int(sys.argv[1]),), daemon=True).start()
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (MAX_FILE_BYTES if hard == resource.RLIM_INFINITY else min(MAX_FILE_BYTES, hard), hard)
    )
    request = json.loads(sys.stdin.read())
    expected = [
        Expected(**{**item, "uncertain": tuple(item["uncertain"]), "sample": tuple(item["sample"])}) for item in request["expected"]
    ]
    problems = examine(
        Path(request["chroma"]), Path(request["catalog"]), expected, compare_all=request["all"], open_store=request["open"]
    )
    sys.stdout.write(json.dumps({"problems": problems}) + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
