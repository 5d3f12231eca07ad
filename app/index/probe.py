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
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from app.core.types import FloatArray
from app.index.hnsw_files import Segment, SegmentDamage, read_segment
from app.index.rows import unpack_vectors
from app.index.schema import BUILD_SHIFT
from app.index.self_query import TOLERANCE, differing, held_of, too_many, unfound

PROBE_TIMEOUT_S = 300.0
"""Opening 60,000 vectors takes a second (facts/libraries.md); a million with a cold disk stays far under this."""

COMPARED = 20_000
"""Vectors per collection compared with the catalog's at start-up, spread over the chunks; fsck compares all."""

MAX_FILE_BYTES = 64 << 30
"""A torn link list made the store grow a file of terabytes (facts/chroma.md 1.2): the child may not."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a collection should hold: the vectors of a build, give or take those whose change is not known to be applied."""

    collection: str
    build: int
    dimension: int
    count: int
    uncertain: tuple[int, ...] = ()
    capped: bool = False
    """Whether there are more vectors than the collection may hold (MAX_DENSE_VECTORS); which ones it holds is not known then."""
    sample: tuple[int, ...] = ()
    """Chunks to ask for. Chosen before `count` and `uncertain` were read: what is written meanwhile must not be missed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the probe says: empty problems mean healthy."""

    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether the store may be opened."""
        return not self.problems


def probe(chroma: Path, catalog: Path, expected: list[Expected], *, compare_all: bool = False, open_store: bool = True) -> Finding:
    """Ask a child process whether the store is healthy; the store itself is not opened here.

    Args:
        chroma: The store's directory.
        catalog: The catalog's file, for the vectors that should be found.
        expected: What the collections should hold.
        compare_all: Compare every vector, not only some.
        open_store: Let the child open the store; False when this process has it open, and only the files may be read.
    """
    wanted = [asdict(e) for e in expected]
    request = json.dumps(
        {"chroma": str(chroma), "catalog": str(catalog), "expected": wanted, "all": compare_all, "open": open_store}
    )
    root = Path(__file__).resolve().parents[2]
    lifeline, held = os.pipe()
    try:
        child = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-m", "app.index.probe", str(lifeline)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root, pass_fds=(lifeline,),
        )  # fmt: skip
        with child:
            try:
                said, complained = child.communicate(request, timeout=PROBE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                return Finding((f"opening the store took over {PROBE_TIMEOUT_S:.0f} s",))
    finally:
        os.close(lifeline)
        os.close(held)
    if child.returncode < 0:
        return Finding((f"opening the store killed the process that tried, with signal {-child.returncode}",))
    try:
        return Finding(tuple(json.loads(said.strip().splitlines()[-1])["problems"]))
    except (ValueError, KeyError, IndexError):
        return Finding((f"the probe ended with {child.returncode} and said: {complained.strip()[-300:]!r}",))


def check_files(chroma: Path, *, alone: bool) -> tuple[list[str], dict[str, Segment]]:
    """Check the store's database and segments without opening it.

    Args:
        chroma: The store's directory.
        alone: Whether nobody has the store open. SQLite then takes back what a killed process had half written, which reading
            only would not let it, and which is no damage.

    Returns:
        What is wrong, and the sound segments by collection name.
    """
    database = chroma / "chroma.sqlite3"
    if not database.exists():
        return ["chroma.sqlite3 is missing"], {}
    problems: list[str] = []
    segments: dict[str, Segment] = {}
    try:
        connection = sqlite3.connect(f"file:{database}?mode={'rw' if alone else 'ro'}", uri=True)
        try:
            lines = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
            problems += [f"chroma.sqlite3: {line}" for line in lines if line != "ok"]
            rows = connection.execute(
                "SELECT s.id, c.name, m.seq_id FROM segments s JOIN collections c ON c.id = s.collection"
                " LEFT JOIN max_seq_id m ON m.segment_id = s.id WHERE s.scope = 'VECTOR'"
            ).fetchall()
        finally:
            connection.close()
    except sqlite3.DatabaseError as exc:
        return [*problems, f"chroma.sqlite3: {exc}"], {}
    for segment_id, name, persisted in rows:
        try:
            segment = read_segment(chroma / segment_id)
        except SegmentDamage as exc:
            problems.append(str(exc))
            continue
        if segment is not None:
            segments[name] = segment
        elif persisted is not None:
            problems.append(f"{segment_id}: persisted up to {persisted}, but its index_metadata.pickle is missing")
    return problems, segments


def compare_vectors(segment: Segment, catalog: Path, expected: Expected, limit: int | None) -> list[str]:
    """Compare a segment's vectors with the catalog's; `limit` compares about so many, None all."""
    uncertain = set(expected.uncertain)
    step = 1 if limit is None or len(segment.ids) <= limit else len(segment.ids) // limit
    connection = sqlite3.connect(f"file:{catalog}?mode=ro", uri=True)
    try:
        for start in range(0, len(segment.ids), 10_000):
            stop = min(start + 10_000, len(segment.ids))
            held = {int(name): at for at, name in enumerate(segment.ids[start:stop]) if name and at % step == 0}
            rows = segment.vectors(start, stop)
            for chunk_id, row in _catalog_rows(connection, expected, sorted(held.keys() - uncertain)):
                if float(np.abs(rows[held[chunk_id]] - row).max()) > TOLERANCE:
                    return [f"{expected.collection}: the vector of chunk {chunk_id} is not the catalog's"]
    finally:
        connection.close()
    return []


def _catalog_rows(connection: sqlite3.Connection, expected: Expected, chunk_ids: list[int]) -> Iterator[tuple[int, FloatArray]]:
    """Yield the catalog's vectors of those chunks that are live: one in its grace is in the catalog, and not in the store."""
    rows = connection.execute(
        "SELECT v.key, v.vector FROM json_each(?) k CROSS JOIN vectors v ON v.key = ? | k.value"
        " CROSS JOIN chunks c ON c.chunk_id = k.value"
        " CROSS JOIN documents d ON d.doc = c.doc AND d.revision = c.revision AND d.state = 'live'",
        (json.dumps(chunk_ids), expected.build << BUILD_SHIFT),
    ).fetchall()
    vectors = unpack_vectors([row[1] for row in rows], expected.dimension)
    for (key, _), row in zip(rows, vectors, strict=True):
        yield key & ((1 << BUILD_SHIFT) - 1), row


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
        sample = dict(_catalog_rows(connection, want, sorted(set(want.sample) - set(want.uncertain))))
        sample = held_of(collection, sample) if want.capped else sample
        every = {**sample, **dict(_catalog_rows(connection, want, queued(chroma, want)))} if compare_all else sample
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
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
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
