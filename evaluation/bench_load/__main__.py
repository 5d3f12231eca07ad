"""What many readers, a bulk run and a long day do to the server.

    python -m evaluation.bench_load [--only streams|loop|soak] [--seconds S] [--questions N] [--cycles N]

Server, model host (the Ollama double at a fixed rate) and load generator are processes of their own. With `--only` nothing is
written, for trying things out. With `--parts DIR` each part is kept in a file as soon as it is measured, and a part that is there
already is not measured again: a run that was spoilt can go on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import psutil

from app.client import FileToSend
from evaluation.bench_bulk.corpus import TextPool
from evaluation.bench_load import soak, watched
from evaluation.bench_load.readers import Seen
from evaluation.served import ROOT, Line, Served, quantile, write
from tests.fakes.files import make_pdf

STREAMS = 64
CLIENTS = 200
"""In all, when there are more than streams: the others are refused."""
TOKENS_PER_S = 20.0
PDF_PAGES = 300
Parts = tuple[list[Line], dict[str, float]]


class WatchedServer(Served):
    """A server whose event loop is sampled; the samples are in `gaps` once it has stopped."""

    def __init__(self, data_dir: Path, **settings: str) -> None:
        """Choose a port and a file for the samples."""
        super().__init__(data_dir, **settings)
        self.gaps = data_dir.with_suffix(".gaps")
        self.command = (sys.executable, "-m", "evaluation.bench_load.watched", str(self.gaps))


@contextmanager
def model_host() -> Iterator[str]:
    """Run the double at its rate; yields its address."""
    command = [sys.executable, "-m", "evaluation.bench_load.model_host", "--tokens-per-s", str(TOKENS_PER_S)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


@contextmanager
def idle_watch(path: Path) -> Iterator[None]:
    """Sample a loop that has nothing to do, in a process of its own, at the same time."""
    process = subprocess.Popen([sys.executable, "-m", "evaluation.bench_load.watched", "--alone", str(path)], cwd=ROOT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def read_streams(url: str, streams: int, seconds: float, extra: int = 0) -> Seen:
    """Run the load generator."""
    command = [sys.executable, "-m", "evaluation.bench_load.readers", url, "--streams", str(streams), "--seconds", str(seconds)]
    made = subprocess.run([*command, "--extra", str(extra)], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return Seen(**json.loads(made.stdout))


def bench_streams(folder: Path, seconds: float) -> Parts:
    """64 readers for a minute against one reader, and what more readers are told."""
    with model_host() as ollama:
        settings = {"OLLAMA_BASE_URL": ollama, "EMBEDDING_PROVIDER": "minilm", "LLM_PROVIDER": "ollama"}
        with Served(folder / "streams", **settings, MAX_MODEL_CALLS=str(STREAMS), MAX_STREAMS=str(STREAMS)) as server:
            paper = folder / "copper.txt"
            paper.write_text("Copper\n\nCopper is a soft red metal. Its melting point is 1085 degrees Celsius.\n")
            server.client.ingest([FileToSend(paper)], "papers")
            read_streams(server.url, 4, 5)  # warm
            alone = read_streams(server.url, 1, seconds / 3)
            cpu = server.cpu_s()
            many = read_streams(server.url, STREAMS, seconds)
            cpu = server.cpu_s() - cpu
            over = read_streams(server.url, STREAMS, seconds / 2, extra=CLIENTS - STREAMS)
    one, all_ = quantile(alone.under_way_ms, 0.95), quantile(many.under_way_ms, 0.95)
    errors = sum(many.errors.values()) + sum(alone.errors.values())
    lines = [
        Line(f"errors of {STREAMS} streams in {seconds:g} s", errors, 0, ""),
        Line(f"added latency per token p95, {STREAMS} streams / one", all_ / one, 2.0, "x"),
        Line(f"refused with 503 and Retry-After, of {CLIENTS - STREAMS} more clients", _refused(over), 1, "", at_most=False),
        Line("answered otherwise than 200 or 503", sum(n for s, n in over.statuses.items() if s not in {"200", "503"}), 0, ""),
        Line("longest wait for a refusal or an answer's beginning", max(over.waited_s), 1.0, "s"),
    ]
    figures = {
        "one stream, added latency p50 ms": quantile(alone.under_way_ms, 0.5),
        "one stream, added latency p95 ms": one,
        f"{STREAMS} streams, added latency p50 ms": quantile(many.under_way_ms, 0.5),
        f"{STREAMS} streams, added latency p95 ms": all_,
        f"{STREAMS} streams, added latency p99 ms": quantile(many.under_way_ms, 0.99),
        f"{STREAMS} streams, answers": many.answers,
        f"{STREAMS} streams, stamped tokens a second": len(many.under_way_ms) / seconds,
        f"{STREAMS} streams, share of one core the server used": cpu / seconds,
        "clients over the cap, errors": sum(over.errors.values()),
        "clients over the cap, let in where a stream had just ended": sum(n for s, n in over.statuses.items() if s == "200"),
    }
    return lines, figures


def _refused(over: Seen) -> int:
    refused = sum(number for status, number in over.statuses.items() if status == "503")
    return min(refused, over.retry_after)


def bench_loop(folder: Path, seconds: float) -> Parts:
    """The event loop during a bulk run and a long PDF, beside a loop that only shares the machine."""
    pages = [
        [f"Page {n}, line {line}: the harbour master wrote down the tide, wind and ships." for line in range(45)]
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
        while time.monotonic() - begun < seconds or not bulk_s:
            server.client.ingest([FileToSend(pdf, f"long-{rounds}.pdf")], "papers", wait="text")
            rounds += 1
            if not bulk_s and server.client.job(str(job["id"]))["state"] in {"done", "failed"}:
                bulk_s = time.monotonic() - begun
        ended = time.monotonic()
        state = server.client.job(str(job["id"]))["state"]
    busy, calm = watched.read(server.gaps, begun, ended), watched.read(server.gaps, quiet_from, quiet_until)
    beside = watched.read(idle, begun, ended)
    lines = [
        Line(f"event-loop gap p99.9 during a bulk run and {rounds} PDFs of {PDF_PAGES} pages", quantile(busy, 0.999), 50, "ms"),
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
        "bulk run s": bulk_s,
    }
    return lines, figures


def bench_soak(folder: Path, questions: int, cycles: int) -> Parts:
    """Thousands of questions, hundreds of documents."""
    with Served(folder / "soak") as server:
        course = soak.run(server.client, psutil.Process(server.process.pid), folder / "notes", questions, cycles)
    lines = [
        Line(
            f"growth of memory over {questions} questions and {course.cycles} documents",
            course.slope_mb_per_1000(),
            2.0,
            "MB per 1,000",
        ),
        Line("growth of open handles after the warm-up", course.handle_growth(), 0, ""),
        Line("failures", course.failures, 0, ""),
    ]
    figures = {
        "memory at the start MB": course.rss_mb[0],
        "memory after the warm-up MB": course.rss_mb[int(len(course.rss_mb) * soak.WARM_UP)],
        "memory at the end MB": course.rss_mb[-1],
        "handles at the end": course.handles[-1],
        "threads at the end": course.threads[-1],
        "soak s": course.seconds,
    }
    return lines, figures


def _measured(part: str, measure: Callable[[], Parts], folder: Path | None) -> Parts:
    """Return a part's figures: from its file when there is one, else measured, with the machine's load before and after."""
    kept = None if folder is None else folder / f"{part}.json"
    if kept is not None and kept.exists():
        found = json.loads(kept.read_text("utf-8"))
        return [Line(**line) for line in found["lines"]], found["figures"]
    before = os.getloadavg()[0]
    lines, figures = measure()
    figures |= {f"machine load before {part}": before, f"machine load after {part}": os.getloadavg()[0]}
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"lines": [asdict(line) for line in lines], "figures": figures}), "utf-8")
    return lines, figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=["streams", "loop", "soak"], help="one part, without a report")
    parser.add_argument("--parts", type=Path, help="folder that keeps the figures of each part")
    parser.add_argument("--seconds", type=float, default=60.0, help="of 64 streams, and of the bulk run")
    parser.add_argument("--questions", type=int, default=5000, help="of the soak")
    parser.add_argument("--cycles", type=int, default=300, help="documents of the soak that come and go")
    asked = parser.parse_args(arguments)
    lines: list[Line] = []
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="documind-load-") as name:
        folder = Path(name)
        parts: dict[str, Callable[[], Parts]] = {
            "streams": lambda: bench_streams(folder, asked.seconds),
            "loop": lambda: bench_loop(folder, asked.seconds),
            "soak": lambda: bench_soak(folder, asked.questions, asked.cycles),
        }
        for part, measure in parts.items():
            if asked.only in (None, part):
                found, more = _measured(part, measure, asked.parts)
                lines += found
                figures |= more
    if asked.only:
        print(json.dumps({"lines": [(line.what, line.measured, line.holds) for line in lines], "figures": figures}, indent=1))
        return 0 if all(line.holds for line in lines) else 1
    remarks = [
        f"The model host writes {TOKENS_PER_S:g} tokens a second per answer and stamps every tenth; added latency is from",
        f"there to the reader, another process on the same machine. Of {CLIENTS} clients {STREAMS} read and the others come",
        "while all streams are taken. A gap of the event loop is how much later than asked a pause of 5 ms ended; an idle process",
        "beside it shows what the machine alone does. The machine was shared: its load (waiting and running processes, mean of a",
        "minute) is among the figures.",
    ]
    return write("load", "Many streams, a free event loop, and a long day", remarks, lines, figures, "make bench-load")


if __name__ == "__main__":
    sys.exit(main())
