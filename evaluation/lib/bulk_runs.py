"""Run `documind bulk index` as a process; read what it stored."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.types import Library
from app.jobs.bulk import account
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.catalog.state import SqliteLedger
from app.storage.files.durable import Steps
from app.storage.maintenance.start import catalog_path
from evaluation.lib.paths import ROOT


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of a data directory's library."""

    documents: int
    chunks: int
    digest: str
    """SHA-256 of the sorted (source key, source revision, text hash, chunk spans)."""
    duplicates: int
    ledger: dict[str, object]


def stored(data_dir: Path) -> Stored:
    """Read a data directory that no process owns."""
    database = SqliteDatabase(catalog_path(data_dir), Steps())
    try:
        with database.read_raw() as cursor:
            documents = cursor.execute(
                "SELECT doc, source_key, source_revision, sha256, revision FROM documents WHERE"
                " state = 'live'"
            ).fetchall()
            spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
            for doc, revision, start, end in cursor.execute(
                'SELECT doc, revision, start, "end" FROM chunks ORDER BY chunk_id'
            ):
                spans.setdefault((doc, revision), []).append((start, end))
        rows = sorted(
            (key, source, sha, spans.get((doc, revision), []))
            for doc, key, source, sha, revision in documents
        )
        keys = Counter(row[0] for row in rows)
        return Stored(
            documents=len(rows),
            chunks=sum(len(row[3]) for row in rows),
            digest=hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
            duplicates=sum(count - 1 for count in keys.values()),
            ledger=account(SqliteLedger(database).summary(Library.PUBLIC)),
        )
    finally:
        database.close()


class Command:
    """`documind bulk index` on one data directory, in a process group of its own."""

    def __init__(self, dump: Path, data_dir: Path) -> None:
        """Prepare; nothing runs yet."""
        self.data_dir = data_dir
        self._arguments = [
            sys.executable,
            "-m",
            "app",
            "bulk",
            "index",
            str(dump),
            "--library",
            "public",
            "--json",  # the text alone
        ]

    def start(self, *options: str, **streams: Any) -> subprocess.Popen[Any]:  # noqa: ANN401  # options of Popen
        """Start a run."""
        environment = {
            **os.environ,
            "DATA_DIR": str(self.data_dir),
            "SAMPLES": "0",
            "OLLAMA_BASE_URL": "http://127.0.0.1:9",
        }
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(
            [*self._arguments, *options],
            cwd=ROOT,
            env=environment,
            start_new_session=True,
            **{**quiet, **streams},
        )

    def finish(self) -> float:
        """Run to the end and return the seconds it took.

        Raises:
            subprocess.CalledProcessError: It failed.
        """
        started = time.monotonic()
        process = self.start()
        if code := process.wait():
            raise subprocess.CalledProcessError(code, self._arguments)
        return time.monotonic() - started

    def kill_after(self, seconds: float) -> bool:
        """Start a run, kill its group after some time; return whether it still ran."""
        process = self.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        alive = process.poll() is None
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return alive
