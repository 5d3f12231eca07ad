"""Kill a process that writes to the faiss store at random moments, and flip bytes.

Everything that it had flushed must be there when the store is opened again. A byte that is flipped
in its files must be found.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np

from app.core.errors import IndexDamaged
from app.storage.files.durable import Steps
from app.storage.vectors.faiss import FaissStore
from evaluation.benchmarks.bulk.growth import Figures
from evaluation.lib.vector_checks import UNSTAMPED
from evaluation.lib.workbench import SEED

NAME = "public__kills"
BATCH, DELETED = 200, 20
"""Vectors that a batch adds, and how many of them it then removes."""

LEARN_FROM, LEAST_KEPT = 4_000, 2_000
"""So low that lists are learnt and files written between the kills."""

_LONGEST_S = 1.5
_DIMENSION = 384


def opened(path: Path) -> FaissStore:
    return FaissStore(path, Steps(), learn_from=LEARN_FROM, least_kept=LEAST_KEPT)


def rows_of(batch: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return a batch's rows, float32 `[BATCH, dim]`."""
    rng = np.random.default_rng(batch)
    return rng.standard_normal((BATCH, _DIMENSION)).astype(np.float32)


def write(path: Path, batch: int) -> None:
    """Write batches without end; print each after which all is durable."""
    with closing(opened(path)) as store:
        print("open", flush=True)
        while True:
            ids = list(range(batch * BATCH + 1, (batch + 1) * BATCH + 1))
            store.upsert(NAME, ids, rows_of(batch), UNSTAMPED)
            store.delete(NAME, ids[:DELETED])
            if store.flush(NAME, at_once=False):
                print(batch, flush=True)
            batch += 1


def kills(count: int) -> Figures:
    """Kill the writer `count` times; return what was lost."""
    rng, lost, extra, flushed = random.Random(SEED), 0, 0, -1
    with tempfile.TemporaryDirectory(prefix="documind-kills-") as folder:
        path = Path(folder) / "faiss"
        for _ in range(count):
            flushed = max(flushed, _killed(path, flushed + 1, rng))
            wanted = {
                at + 1
                for at in range((flushed + 1) * BATCH)
                if at % BATCH >= DELETED  # the rest were removed
            }
            with closing(opened(path)) as store:
                held = store.ids(NAME)
            lost += len(wanted - held)
            extra += len({i for i in held if (i - 1) % BATCH < DELETED})
        flips = 100
        found = sum(_flip_is_found(path, rng) for _ in range(flips))
    return {
        "kills": count,
        "vectors flushed": (flushed + 1) * (BATCH - DELETED),
        "flushed vectors lost": lost,
        "removed vectors that came back": extra,
        "flipped bytes": flips,
        "flipped bytes found": found,
    }


def _killed(path: Path, batch: int, rng: random.Random) -> int:
    """Let the writer work for a while and kill it; return the last batch that was flushed."""
    command = [sys.executable, "-m", "evaluation.benchmarks.vectors.kills", str(path), str(batch)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        time.sleep(rng.uniform(0, _LONGEST_S))
        writer.kill()
        told = writer.stdout.read().splitlines()
    return max((int(line) for line in told), default=batch - 1)


def _flip_is_found(path: Path, rng: random.Random) -> bool:
    file = rng.choice(sorted(file for file in path.iterdir() if file.suffix != ".tmp"))
    content = file.read_bytes()
    at = rng.randrange(len(content))
    damaged = bytearray(content)
    damaged[at] ^= 1 << rng.randrange(8)
    file.write_bytes(damaged)
    try:
        with closing(opened(path)) as store:
            store.count(NAME)
    except IndexDamaged:
        return True
    finally:
        file.write_bytes(content)
    return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("batch", type=int)
    given = parser.parse_args()
    with suppress(BrokenPipeError):
        write(given.path, given.batch)
