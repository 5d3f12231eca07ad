"""Kill `documind bulk index` at random, and compare it with an uninterrupted run.

The whole process group gets SIGKILL, as when a machine loses power as far as processes are
concerned. A kill counts when the run had not ended by itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.types import Library
from app.jobs.bulk import account
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.ledger import BulkLedger
from app.storage.catalog.loader import CatalogLoader
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps
from app.storage.maintenance.start import catalog_path
from app.storage.options import IndexOptions
from app.storage.words.tantivy import TantivyIndex
from scripts.generate_production_corpus import SyntheticEncyclopedia, SyntheticOptions, write_xml
from scripts.reports import ROOT


@dataclass(frozen=True, slots=True)
class Stored:
    documents: int
    chunks: int
    digest: str
    """SHA-256 of the sorted (source key, source revision, text hash, chunk spans)."""
    duplicates: int
    ledger: dict[str, object]


@contextmanager
def opened(data_dir: Path) -> Iterator[SqliteDatabase]:
    """Yield the catalog of a data directory that no process owns."""
    database = SqliteDatabase(catalog_path(data_dir), Steps())
    try:
        yield database
    finally:
        database.close()


def stored(data_dir: Path) -> Stored:
    with opened(data_dir) as database:
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
        ledger = account(BulkLedger(database).summary(Library.PUBLIC))
    rows = sorted(
        (key, source, sha, spans.get((doc, revision), []))
        for doc, key, source, sha, revision in documents
    )
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    duplicates = len(rows) - len({row[0] for row in rows})
    return Stored(len(rows), sum(len(row[3]) for row in rows), digest, duplicates, ledger)


class Command:
    """`documind bulk index` on one data directory, in a process group of its own."""

    def __init__(self, dump: Path, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._command = [sys.executable, "-m", "app", "bulk", "index", str(dump)]
        self._command += ["--library", "public", "--json"]  # the text alone

    def start(self, **streams: Any) -> subprocess.Popen[Any]:  # options of Popen
        settings = {"SAMPLES": "0", "OLLAMA_BASE_URL": "http://127.0.0.1:9"}
        environment = {**os.environ, **settings, "DATA_DIR": str(self.data_dir)}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(
            self._command, cwd=ROOT, env=environment, start_new_session=True, **{**quiet, **streams}
        )

    def finish(self) -> float:
        """Run to the end and return the seconds it took.

        Raises:
            subprocess.CalledProcessError: It failed.
        """
        started = time.monotonic()
        if code := self.start().wait():
            raise subprocess.CalledProcessError(code, self._command)
        return time.monotonic() - started

    def kill_after(self, seconds: float) -> bool:
        """Start a run, kill its group after some time; return whether it still ran."""
        process = self.start()
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        alive = process.poll() is None
        if alive:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return alive


@dataclass(frozen=True, slots=True)
class Campaign:
    """One comparison."""

    redone_documents_most: int
    """Documents stored when a run was killed that its ledger did not account for yet: the work
    the next run repeats."""
    whole: Stored
    interrupted: Stored
    wrong_words: int
    """Chunks that the lexical index lacks, holds twice or holds without a row, after the kills."""


def unaccounted(data_dir: Path) -> int:
    """Return how many documents of a killed run its ledger does not know."""
    if not catalog_path(data_dir).exists():
        return 0
    now = stored(data_dir)
    indexed = now.ledger["indexed"]
    return now.documents - (indexed if isinstance(indexed, int) else 0)


def wrong_words(data_dir: Path) -> int:
    """Return how many chunks the lexical index, owned by no process, lacks or has in excess."""
    options = IndexOptions(data_dir, data_dir / "chroma")
    index = TantivyIndex(data_dir / "tantivy" / Library.PUBLIC.value, options, Steps())
    with closing(index), opened(data_dir) as database:
        held = index.ids()
        wanted = CatalogLoader(database, ChangeLog(database)).live_chunk_ids(Library.PUBLIC)
        return len(wanted ^ set(held)) + len(held) - len(set(held))


def campaign(directory: Path, articles: int, kills: int, seed: int) -> Campaign:
    """Compare an uninterrupted run with one that is killed `kills` times at random moments."""
    dump = directory / "synthetic.xml"
    options = SyntheticOptions(articles=articles, vocabulary=5000, mean_words=200)
    with dump.open("w", encoding="utf-8") as file:
        write_xml(SyntheticEncyclopedia(options), file)
    whole_s = Command(dump, directory / "whole").finish()
    command = Command(dump, directory / "killed")
    rng = random.Random(seed)
    redone = done = 0
    while done < kills:
        if not command.kill_after(rng.uniform(0.15, 0.9) * whole_s):
            # It ended by itself: begin again with an empty directory, so that every kill meets
            # work.
            command = Command(dump, directory / f"killed{done}")
            continue
        redone = max(redone, unaccounted(command.data_dir))
        done += 1
    command.finish()
    return Campaign(
        redone_documents_most=redone,
        whole=stored(directory / "whole"),
        interrupted=stored(command.data_dir),
        wrong_words=wrong_words(command.data_dir),
    )
