"""Kill `documind bulk index` at random; compare with an uninterrupted run.

    make bench-bulk-kill        # 20 kills over a run of a minute, into
    evaluation/reports/bulk_resume.{json,md}

The whole process group gets SIGKILL, as when a machine loses power as far as processes are
concerned. A kill counts when the run had not ended by itself. What must be equal: the set of
(source key, source revision, text hash, chunk spans), and the ledger.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.core.types import Library
from app.jobs.bulk import account
from app.storage.catalog.changes import ChangeLog
from app.storage.catalog.ledger import BulkLedger
from app.storage.catalog.reading import CatalogLoader
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.files.durable import Steps
from app.storage.maintenance.start import catalog_path
from app.storage.options import IndexOptions
from app.storage.words.tantivy import TantivyIndex
from evaluation.lib.reports import ROOT, Line, options, write
from scripts.generate_production_corpus import SyntheticEncyclopedia, SyntheticOptions, write_xml


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
    """One comparison; seconds."""

    articles: int
    uninterrupted_s: float
    kills: int
    kills_per_phase: dict[str, int]
    """What the killed run had come to: starting, reading and writing, or writing again what a
    kill had taken."""
    last_run_s: float
    redone_documents_most: int
    """Documents stored when a run was killed that its ledger did not account for yet: the work
    the next run repeats."""
    replayed_chunks_most: int
    """Chunks stored when a run was killed whose words the next start had to bring: a group of
    words and what waited behind it."""
    whole: Stored
    interrupted: Stored
    wrong_words: int
    """Chunks that the lexical index lacks, holds twice or holds without a row, after the kills."""


def left(data_dir: Path) -> tuple[int, int, int]:
    """Look at the data directory of a killed run.

    Returns:
        Documents, documents that the ledger does not know, and chunks whose words are not known to
        be in the lexical index; zeros without a catalog.
    """
    if not catalog_path(data_dir).exists():
        return 0, 0, 0
    now = stored(data_dir)
    indexed = now.ledger["indexed"]
    with opened(data_dir) as database, database.read_raw() as cursor:
        (wordless,) = cursor.execute(
            "SELECT coalesce(sum(d.chunks), 0) FROM changes c JOIN documents d ON d.doc = c.doc"
            " WHERE c.kind = 'write' AND c.seq > (SELECT coalesce(max(seq), 0) FROM watermarks"
            " WHERE library = c.library AND projection = 'lexical')"
        ).fetchone()
    known = indexed if isinstance(indexed, int) else 0
    return now.documents, now.documents - known, wordless


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
    phases: Counter[str] = Counter()
    redone = replayed = before = 0
    while phases.total() < kills:
        if not command.kill_after(rng.uniform(0.15, 0.9) * whole_s):
            # It ended by itself: begin again with an empty directory, so that every kill meets
            # work.
            command = Command(dump, directory / f"killed{phases.total()}")
            before = 0
            continue
        documents, unaccounted, wordless = left(command.data_dir)
        redone, replayed = max(redone, unaccounted), max(replayed, wordless)
        resumed = "resuming" if before == documents else "indexing"
        phases[resumed if documents else "starting"] += 1
        before = documents
    last_s = command.finish()
    return Campaign(
        articles=articles,
        uninterrupted_s=round(whole_s, 1),
        kills=kills,
        kills_per_phase=dict(phases),
        last_run_s=round(last_s, 1),
        redone_documents_most=redone,
        replayed_chunks_most=replayed,
        whole=stored(directory / "whole"),
        interrupted=stored(command.data_dir),
        wrong_words=wrong_words(command.data_dir),
    )


def main() -> int:
    args = options(
        __doc__,
        articles=(150_000, "of the dump"),
        kills=(20, "of the run"),
        seed=(7, "of the moments"),
    )
    with tempfile.TemporaryDirectory(prefix="documind-kill-") as directory:
        result = campaign(Path(directory), args.articles, args.kills, args.seed)
    whole, interrupted = result.whole, result.interrupted
    same = float(whole == interrupted and whole.documents > 0)
    what = "the set of (article, revision, text hash, chunk spans) and the ledger are the same"
    lines = [
        Line(what, same, 1, at_most=False),
        Line("duplicates", interrupted.duplicates + whole.duplicates),
        Line("chunks that the index of words lacks or has too many", result.wrong_words),
    ]
    figures = {
        "articles": result.articles,
        "kills": result.kills,
        **{f"kills while {phase}": n for phase, n in sorted(result.kills_per_phase.items())},
        "an uninterrupted run s": result.uninterrupted_s,
        "the last run s": result.last_run_s,
        "documents": interrupted.documents,
        "chunks": interrupted.chunks,
        "most documents stored and not yet in the ledger (a batch is 512)": result.redone_documents_most,
        "most chunks whose words the next start had to bring": result.replayed_chunks_most,
    }
    remarks = ["`documind bulk index` gets SIGKILL, its whole process group, at random moments."]
    return write(
        "bulk_resume", "Exact resume of bulk indexing", remarks, lines, figures,
        "make bench-bulk-kill", extra=asdict(result),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
