"""Measure a server under many readers, a bulk run and a long day.

    python -m evaluation.benchmarks.load [--only PART...] [--parts DIR] [--seconds S] [--questions
    N] [--cycles N]

Parts: `streams` (five minutes), `over` (one), `loop` (two), `soak` (ten). Server, model host
(Ollama's double at a fixed rate) and load generator are processes of their own. With `--parts DIR`
each part is kept in a file as soon as it is measured, and one that is there already is not measured
again: a run that was spoilt can go on. The report is written when no part is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import psutil

from app.client import FINISHED, DocuMindClient, FileToSend
from evaluation.benchmarks.bulk.growth import TextPool
from evaluation.benchmarks.load.facts import document
from evaluation.benchmarks.load.model_host import Sent
from evaluation.benchmarks.load.readers import Seen
from evaluation.benchmarks.load.watched import read
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Line, Served, quantile, write
from tests.fakes.files import make_pdf

STREAMS = 64
CLIENTS = 200
"""In all, when there are more than streams: the others are refused."""
TOKENS_PER_S = 20.0
ROUNDS = 3
"""Of one reader and then all of them: the machine is faster at one time than at another, and one
reader's tokens are few."""
Part = tuple[list[Line], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Rig:
    """A model host and a server that asks it."""

    host_url: str
    server: Served


def bench_streams(folder: Path, seconds: float) -> Part:
    """Measure 64 readers and one in turns, after both straight from the model host."""
    seen: dict[str, list[Seen]] = {
        name: [] for name in ("direct one", "direct many", "one", "many")
    }
    cpu_s = 0.0
    with _rig(folder) as rig:
        for name, streams in (("direct one", 1), ("direct many", STREAMS)):
            seen[name].append(_read(rig.host_url, streams, seconds / 4, direct=True))
        for _ in range(ROUNDS):
            seen["one"].append(_read(rig.server.url, 1, seconds / 3))
            before_s = rig.server.cpu_s()
            seen["many"].append(_read(rig.server.url, STREAMS, seconds))
            cpu_s += rig.server.cpu_s() - before_s
    sent: Sent = json.loads(_log(folder).read_text("utf-8"))
    late = {
        name: [sorted(under_way_ms(run.texts, sent, guarded="direct" not in name)) for run in runs]
        for name, runs in seen.items()
    }
    pooled = {name: sorted(chain.from_iterable(rounds)) for name, rounds in late.items()}
    answers = sum(len(run.texts) for run in seen["many"])
    errors = sum(sum(run.errors.values()) for runs in seen.values() for run in runs)
    lines = [
        Line(f"errors of {STREAMS} streams in {ROUNDS} times {seconds:g} s", errors, 0, ""),
        Line(
            f"added latency per token p95, {STREAMS} streams",
            quantile(pooled["many"], 0.95),
            20.0,
            "ms",
        ),
    ]
    labels = {
        "one": "one stream",
        "many": f"{STREAMS} streams",
        "direct one": "one stream straight from the model host",
        "direct many": f"{STREAMS} streams straight from the model host",
    }
    figures = {
        f"{label}, latency per token {name} ms": quantile(pooled[run], share)
        for run, label in labels.items()
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    figures |= {
        f"{labels[run]}, latency per token p95 ms, round {number}": quantile(found, 0.95)
        for run in ("one", "many")
        for number, found in enumerate(late[run], start=1)
    }
    sentences, supported = (
        sum(getattr(run, name) for run in seen["many"]) for name in ("sentences", "supported")
    )
    return lines, figures | {
        f"{STREAMS} streams, answers": answers,
        f"{STREAMS} streams, tokens": len(pooled["many"]),
        f"{STREAMS} streams, sentences with a citation that holds": supported / max(1, sentences),
        f"{STREAMS} streams, processor ms of the server per answer": cpu_s / max(1, answers) * 1000,
        f"{STREAMS} streams, share of one core the server used": cpu_s / (ROUNDS * seconds),
    }


def bench_over(folder: Path, seconds: float) -> Part:
    """All streams are taken, and others come."""
    with _rig(folder) as rig:
        over = _read(rig.server.url, STREAMS, seconds / 2, extra=CLIENTS - STREAMS)
    refused = min(over.statuses.get("503", 0), over.retry_after)
    lines = [
        Line(
            f"refused with 503 and Retry-After, of {CLIENTS - STREAMS} more clients",
            refused,
            1,
            "",
            at_most=False,
        ),
        Line(
            "answered otherwise than 200 or 503",
            sum(n for s, n in over.statuses.items() if s not in {"200", "503"}),
            0,
            "",
        ),
        Line("longest wait for a refusal or an answer's beginning", max(over.waited_s), 1.0, "s"),
        Line(
            "connections over the cap that broke",
            sum(n for what, n in over.errors.items() if what.startswith("over")),
            0,
            "",
        ),
    ]
    figures = {
        "clients over the cap, wait p50 ms": quantile(over.waited_s, 0.5) * 1000,
        "clients over the cap, let in where a stream had just ended": over.statuses.get("200", 0),
        "readers refused because a client over the cap had come first": sum(
            n for what, n in over.errors.items() if "503" in what
        ),
    }
    return lines, figures


def under_way_ms(
    texts: Iterable[tuple[str, list[tuple[int, int]]]], sent: Sent, *, guarded: bool
) -> Iterator[float]:
    """Yield each token's latency in ms: model host to the reader's last character.

    Args:
        texts: What readers saw, and when.
        sent: What the model host wrote, and when.
        guarded: The server's guard was between: it holds back the last word, so a token leaves with
            the next one.
    """
    for text, times in texts:
        lengths = [length for length, _ in times]
        own = text.rpartition("\n\n")[2]  # the model's words stand below the quote
        for (length, left), (_, following) in pairwise(sent.get(own, [])):
            at = bisect_left(lengths, len(text) - len(own) + length)
            if at < len(times):
                yield (times[at][1] - (following if guarded else left)) / 1e6


@contextmanager
def _rig(folder: Path) -> Iterator[Rig]:
    """Start both, with the document in, and warm them."""
    with _model_host(_log(folder)) as ollama:
        settings = {
            "OLLAMA_BASE_URL": ollama,
            "EMBEDDING_PROVIDER": "minilm",
            "LLM_PROVIDER": "ollama",
        }
        settings |= {"MODEL_PROMPTS": "full", "EVIDENCE": "full"}
        with Served(
            folder / "streams", **settings, MAX_MODEL_CALLS=str(STREAMS), MAX_STREAMS=str(STREAMS)
        ) as server:
            paper = folder / "copper.txt"
            paper.write_text(document(), "utf-8")
            server.client.ingest([FileToSend(paper)], "papers")
            _read(server.url, 4, 2)
            yield Rig(ollama, server)


def _log(folder: Path) -> Path:
    return folder / "sent.json"


@contextmanager
def _model_host(log: Path) -> Iterator[str]:
    command = [
        sys.executable,
        "-m",
        "evaluation.benchmarks.load.model_host",
        "--tokens-per-s",
        str(TOKENS_PER_S),
        str(log),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def _read(url: str, streams: int, seconds: float, *, extra: int = 0, direct: bool = False) -> Seen:
    """Run the load generator."""
    command = [sys.executable, "-m", "evaluation.benchmarks.load.readers", url]
    command += ["--streams", str(streams), "--seconds", str(seconds)]
    command += ["--extra", str(extra), *(["--direct"] if direct else [])]
    made = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return Seen(**json.loads(made.stdout))


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
        while any(one["state"] not in FINISHED for one in server.client.jobs(100)["jobs"]):
            time.sleep(0.2)
        embedded = time.monotonic()
        server.wait_followed("papers")
        followed = time.monotonic()
    busy, calm = (
        read(server.gaps, begun, ended),
        read(server.gaps, quiet_from, quiet_until),
    )
    beside = read(idle, begun, ended)
    following = read(server.gaps, embedded, followed)
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


WARM_UP = 0.25
"""Share of the run that may still grow: caches fill, allocators find their size."""
_EVERY = 50
_TOPICS = "copper iron zinc tin lead silver gold nickel cobalt chromium titanium tungsten".split()
_FACTS = "melts at {n} degrees|was found in {n} places|weighs {n} grams|conducts for {n} metres|costs {n} coins|lasts {n} years".split(
    "|"
)


@dataclass
class Course:
    """The server's size over the questions so far."""

    at: list[int] = field(default_factory=list)
    """Questions asked."""
    rss_mb: list[float] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    failures: int = 0
    cycles: int = 0
    """Documents that came and went."""
    seconds: float = 0.0

    def note(self, asked: int, process: psutil.Process) -> None:
        """Measure now."""
        self.at.append(asked)
        self.rss_mb.append(process.memory_info().rss / 1e6)
        self.handles.append(process.num_fds())
        self.threads.append(process.num_threads())

    def _steady(self) -> int:
        return int(len(self.at) * WARM_UP)

    def slope_mb_per_1000(self) -> float:
        """Return the growth of the resident memory after the warm-up, by least squares."""
        from_ = self._steady()
        return float(np.polyfit(self.at[from_:], self.rss_mb[from_:], 1)[0] * 1000)

    def handles_within(self, begin: float, end: float) -> list[int]:
        """Return the open handles seen in a stretch of the run, given as shares of it."""
        count = len(self.handles)
        return self.handles[int(count * begin) : max(int(count * begin) + 1, int(count * end))]

    def handle_growth(self) -> float:
        """Return the median of the last tenth less the maximum after the warm-up.

        The maximum is of the tenth after the warm-up.

        Segments of the lexical index and connections come and go by one or two; a handle lost per
        question or per document would be hundreds by then.
        """
        return float(
            np.median(self.handles_within(0.9, 1.0))
            - max(self.handles_within(WARM_UP, WARM_UP + 0.1))
        )


def text_of(number: int, seed: int) -> str:
    """Return a document of about a page, a different one for every seed."""
    rng = random.Random(seed)
    lines = [
        f"{rng.choice(_TOPICS).title()} {rng.choice(_FACTS).format(n=rng.randrange(2000))}."
        for _ in range(40)
    ]
    return f"Note {number}\n\n" + "\n\n".join(
        " ".join(lines[at : at + 8]) for at in range(0, 40, 8)
    )


def question(number: int) -> str:
    """Return a question; hardly one comes twice."""
    rng = random.Random(number)
    return (
        f"How many {rng.choice(['metres', 'grams', 'degrees', 'coins'])} does"
        f" {rng.choice(_TOPICS)} have in note {number}?"
    )


def run(
    client: DocuMindClient, process: psutil.Process, folder: Path, questions: int, cycles: int
) -> Course:
    """Ask; in between add and delete documents; return the course by questions."""
    folder.mkdir()
    for number in range(60):
        (folder / f"base-{number}.txt").write_text(text_of(number, number))
    client.ingest([FileToSend(path) for path in sorted(folder.glob("base-*.txt"))], "papers")
    course, begun, path = Course(), time.perf_counter(), folder / "guest.txt"
    for number in range(questions):
        answer = client.query(question(number), library="papers")
        course.failures += answer["status"] not in {"answered", "abstained"}
        if number * cycles // questions != (number + 1) * cycles // questions:
            path.write_text(text_of(number, 10_000 + number))
            client.ingest([FileToSend(path)], "papers")
            course.failures += client.delete("papers", path.name)["chunks"] == 0
            course.cycles += 1
        if number % _EVERY == 0:
            course.note(number, process)
    course.note(questions, process)
    course.seconds = time.perf_counter() - begun
    return course


def bench_soak(folder: Path, questions: int, cycles: int) -> Part:
    """Thousands of questions, hundreds of documents."""
    with Served(folder / "soak") as server:
        course = run(
            server.client, psutil.Process(server.process.pid), folder / "notes", questions, cycles
        )
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
        "memory after the warm-up MB": course.rss_mb[int(len(course.rss_mb) * WARM_UP)],
        "memory at the end MB": course.rss_mb[-1],
        "handles in the tenth after the warm-up, least": min(
            course.handles_within(WARM_UP, WARM_UP + 0.1)
        ),
        "handles in the tenth after the warm-up, most": max(
            course.handles_within(WARM_UP, WARM_UP + 0.1)
        ),
        "handles in the last tenth, least": min(course.handles_within(0.9, 1.0)),
        "handles in the last tenth, most": max(course.handles_within(0.9, 1.0)),
        "threads at the end": course.threads[-1],
        "soak s": course.seconds,
    }
    return lines, figures


PARTS = ("streams", "over", "loop", "soak")


def _kept(part: str, folder: Path | None) -> Part | None:
    """Return a part's figures from its file, or None without one."""
    path = None if folder is None else folder / f"{part}.json"
    if path is None or not path.exists():
        return None
    found = json.loads(path.read_text("utf-8"))
    return [Line(**line) for line in found["lines"]], found["figures"]


def _measured(part: str, measure: Callable[[], Part], folder: Path | None) -> Part:
    """Measure a part, with the machine's load before and after, and keep it."""
    before = os.getloadavg()[0]
    lines, figures = measure()
    figures |= {
        f"machine load before {part}": before,
        f"machine load after {part}": os.getloadavg()[0],
    }
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        kept = {"lines": [asdict(line) for line in lines], "figures": figures}
        (folder / f"{part}.json").write_text(json.dumps(kept), "utf-8")
    return lines, figures


def _report(parts: Sequence[Part]) -> int:
    remarks = [
        f"The model host writes {TOKENS_PER_S:g} tokens a second per answer, each by its own"
        " clock, not in step with others,",
        f"reworded sentences of the passages with their marks. {ROUNDS} rounds of one reader and"
        " then of all are taken together.",
        "Latency is from there to the reader, another process on the same machine; what readers"
        " straight at the model host see is",
        f"the machine and the measurement. Of {CLIENTS} clients {STREAMS} read, and the others"
        " come while all streams are taken.",
        "A gap of the event loop is how much later than asked a pause of 5 ms ended; an idle"
        " process shows what the",
        "machine alone does. Chroma is written in its own process during the run. The machine was"
        " shared: its load",
        "(waiting and running processes, mean of a minute) is among the figures.",
    ]
    lines = [line for found, _ in parts for line in found]
    figures = {name: value for _, found in parts for name, value in found.items()}
    return write(
        "load",
        "Many streams, a free event loop, and a long day",
        remarks,
        lines,
        figures,
        "make bench-load",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts; the exit code says whether the limits hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="measure these")
    parser.add_argument("--parts", type=Path, help="folder that keeps the figures of each part")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of 64 streams, and of the bulk run"
    )
    parser.add_argument("--questions", type=int, default=5000, help="of the soak")
    parser.add_argument(
        "--cycles", type=int, default=300, help="documents of the soak that come and go"
    )
    asked = parser.parse_args(arguments)
    found: dict[str, Part] = {}
    with tempfile.TemporaryDirectory(prefix="documind-load-") as name:
        folder = Path(name)
        measures: dict[str, Callable[[], Part]] = {
            "streams": lambda: bench_streams(folder, asked.seconds),
            "over": lambda: bench_over(folder, asked.seconds),
            "loop": lambda: bench_loop(folder, asked.seconds),
            "soak": lambda: bench_soak(folder, asked.questions, asked.cycles),
        }
        for part in PARTS:
            part_found = _kept(part, asked.parts)
            if part_found is None and part in asked.only:
                part_found = _measured(part, measures[part], asked.parts)
            if part_found is not None:
                found[part] = part_found
    if len(found) == len(PARTS):
        return _report(list(found.values()))
    for lines, figures in found.values():
        print(
            json.dumps(
                {
                    "lines": [(line.what, line.measured, line.holds) for line in lines],
                    "figures": figures,
                },
                indent=1,
            )
        )
    return 0 if all(line.holds for lines, _ in found.values() for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
