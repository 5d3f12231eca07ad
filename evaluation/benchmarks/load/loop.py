"""Measure how long the event loop is blocked by a bulk run and long PDFs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from app.client import FINISHED, FileToSend, Json
from evaluation.benchmarks.bulk.corpus import TextPool
from evaluation.benchmarks.load import watched
from evaluation.benchmarks.load.streams import Part
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Line, Served, quantile
from tests.fakes.files import make_pdf

PDF_PAGES = 300


class WatchedServer(Served):
    """A server whose event loop is sampled; `gaps` has the samples after its end."""

    def __init__(self, data_dir: Path, **settings: str) -> None:
        """Choose a port and a file for the samples."""
        super().__init__(data_dir, **settings)
        self.gaps = data_dir.with_suffix(".gaps")
        self.command = (sys.executable, "-m", "evaluation.benchmarks.load.watched", str(self.gaps))


@contextmanager
def idle_watch(path: Path) -> Iterator[None]:
    """Sample a loop that has nothing to do, in a process of its own, at the same time."""
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluation.benchmarks.load.watched", "--alone", str(path)], cwd=ROOT
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def bench_loop(folder: Path, seconds: float) -> Part:
    """Measure the event loop in a bulk run and a long PDF, and an idle loop."""
    pages = [
        [
            f"Page {n}, line {line}: the harbour master wrote down the tide, wind and ships."
            for line in range(45)
        ]
        for n in range(PDF_PAGES)
    ]
    pdf, dump = folder / "long.pdf", folder / "dump"
    pdf.write_bytes(make_pdf(pages))
    dump.mkdir()
    for article in TextPool().articles(6000):
        (dump / f"{article.key}.txt").write_text(f"{article.title}\n\n{article.source}")
    idle = folder / "idle.gaps"
    with idle_watch(idle), WatchedServer(folder / "loop") as server:
        time.sleep(5)
        quiet_from, quiet_until = time.monotonic() - 4, time.monotonic()
        begun = time.monotonic()
        job = server.client.bulk("index", "public", source=str(dump))
        rounds = 0
        bulk_s = 0.0
        while (took := time.monotonic() - begun) < seconds or (not bulk_s and took < 3 * seconds):
            server.client.ingest([FileToSend(pdf, f"long-{rounds}.pdf")], "papers", wait="text")
            rounds += 1
            if not bulk_s and server.client.job(str(job["id"]))["state"] in {"done", "failed"}:
                bulk_s = time.monotonic() - begun
        ended = time.monotonic()
        state = server.client.job(str(job["id"]))["state"]
        while any(
            one["state"] not in FINISHED
            for one in cast("Sequence[Json]", server.client.jobs(100)["jobs"])
        ):
            time.sleep(0.2)
        embedded = time.monotonic()
        server.wait_followed("papers")
        followed = time.monotonic()
    busy, calm = (
        watched.read(server.gaps, begun, ended),
        watched.read(server.gaps, quiet_from, quiet_until),
    )
    beside = watched.read(idle, begun, ended)
    following = watched.read(server.gaps, embedded, followed)
    lines = [
        Line(
            f"event-loop gap p99.9 during a bulk run and {rounds} PDFs of {PDF_PAGES} pages",
            quantile(busy, 0.999),
            50,
            "ms",
        ),
        Line("bulk run done", float(state == "done"), 1, "", at_most=False),
    ]
    figures = {
        "event-loop gap p50 ms": quantile(busy, 0.5),
        "event-loop gap p99 ms": quantile(busy, 0.99),
        "event-loop gap, longest ms": max(busy),
        "event-loop gap p99.9 ms of the idle server": quantile(calm, 0.999),
        "event-loop gap p99.9 ms of an idle process at the same time": quantile(beside, 0.999),
        "event-loop gap, longest of an idle process at the same time ms": max(beside),
        "samples": len(busy),
        "event-loop gap p99 ms while Chroma follows afterwards": quantile(following, 0.99),
        "event-loop gap p99.9 ms while Chroma follows afterwards": quantile(following, 0.999),
        "Chroma follows, with the rest before it s": followed - embedded,
        "bulk run s": bulk_s,
    }
    return lines, figures
