"""Measure a server under many readers, a bulk run and a long day.

    python -m evaluation.benchmarks.load [--only PART...] [--parts DIR] [--seconds S] [--questions
    N] [--cycles N]

Parts: `streams` (five minutes), `over` (one), `loop` (two), `soak` (ten). Server, model host
(Ollama's double at a fixed rate) and load generator are processes of their own. With `--parts DIR`
each part is kept in a file as soon as it is measured, and one that is there already is not measured
again: a run that was spoilt can go on. The report is written when no part is missing.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
from pydantic import TypeAdapter

from app.client import FINISHED, FileToSend
from evaluation.benchmarks.load_processes import TOKENS_PER_S, Seen, Sent, Times, document
from evaluation.lib.corpus import TextPool
from evaluation.lib.reports import ROOT, Line, options, quantile, write
from evaluation.lib.served import Served
from tests.fakes.files import make_pdf

STREAMS = 64
CLIENTS = 200
"""In all, when there are more than streams: the others are refused."""
ROUNDS = 3
"""Of one reader and then all of them: the machine is faster at one time than at another, and one
reader's tokens are few."""
PROCESS = (sys.executable, "-m", "evaluation.benchmarks.load_processes")
Part = tuple[list[Line], dict[str, float]]


@contextmanager
def rig(folder: Path) -> Iterator[tuple[str, Served]]:
    """Start a model host and a server that asks it, with the document in, and warm them."""
    command = [*PROCESS, "host", str(folder / "sent.json")]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        assert host.stdin is not None
        url = host.stdout.readline().strip()
        settings = {
            "OLLAMA_BASE_URL": url, "EMBEDDING_PROVIDER": "minilm", "LLM_PROVIDER": "ollama",
            "MODEL_PROMPTS": "full", "EVIDENCE": "full",
            "MAX_MODEL_CALLS": str(STREAMS), "MAX_STREAMS": str(STREAMS),
        }  # fmt: skip
        with Served(folder / "streams", **settings) as server:
            paper = folder / "copper.txt"
            paper.write_text(document(), "utf-8")
            server.client.ingest([FileToSend(paper)], "papers")
            read(server.url, 4, 2)
            yield url, server
        host.stdin.close()


def read(url: str, streams: int, seconds: float, extra: int = 0, *direct: str) -> Seen:
    command = [*PROCESS, "read", url, str(streams), str(seconds), str(extra), *direct]
    made = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return TypeAdapter(Seen).validate_json(made.stdout)


def under_way_ms(
    texts: Iterable[tuple[str, Times]], sent: Sent, *, guarded: bool
) -> Iterator[float]:
    """Yield the latency of each token that readers saw, in ms: model host to its last character.

    The server's guard holds back the last word: where it was between, a token leaves with the next.
    """
    for text, times in texts:
        lengths = [length for length, _ in times]
        own = text.rpartition("\n\n")[2]  # the model's words stand below the quote
        for (length, left), (_, following) in pairwise(sent.get(own, [])):
            at = bisect_left(lengths, len(text) - len(own) + length)
            if at < len(times):
                yield (times[at][1] - (following if guarded else left)) / 1e6


def bench_streams(folder: Path, seconds: float) -> Part:
    """Measure 64 readers and one in turns, after both straight from the model host."""
    many = f"{STREAMS} streams"
    seen: dict[str, list[Seen]] = {"one stream": [], many: []}
    cpu_s = 0.0
    with rig(folder) as (host, server):
        for name, streams in (("one stream", 1), (many, STREAMS)):
            seen[f"{name} straight from the model host"] = [
                read(host, streams, seconds / 4, 0, "direct")
            ]
        for _ in range(ROUNDS):
            seen["one stream"].append(read(server.url, 1, seconds / 3))
            before_s = server.cpu_s()
            seen[many].append(read(server.url, STREAMS, seconds))
            cpu_s += server.cpu_s() - before_s
    sent: Sent = json.loads((folder / "sent.json").read_text("utf-8"))
    late = {
        name: [
            ms
            for run in rounds
            for ms in under_way_ms(run.texts, sent, guarded="straight" not in name)
        ]
        for name, rounds in seen.items()
    }
    answers = sum(len(run.texts) for run in seen[many])
    errors = sum(run.errors.total() for rounds in seen.values() for run in rounds)
    sentences, supported = (
        sum(getattr(run, name) for run in seen[many]) for name in ("sentences", "supported")
    )
    lines = [
        Line(f"errors of {many} in {ROUNDS} times {seconds:g} s", errors),
        Line(f"added latency per token p95, {many}", quantile(late[many], 0.95), 20.0, "ms"),
    ]
    figures = {
        f"{name}, latency per token p{share} ms": quantile(found, share / 100)
        for name, found in late.items()
        for share in (50, 95, 99)
    }
    return lines, figures | {
        f"{many}, answers": answers,
        f"{many}, tokens": len(late[many]),
        f"{many}, sentences with a citation that holds": supported / max(1, sentences),
        f"{many}, processor ms of the server per answer": cpu_s / max(1, answers) * 1000,
        f"{many}, share of one core the server used": cpu_s / (ROUNDS * seconds),
    }


def bench_over(folder: Path, seconds: float) -> Part:
    """All streams are taken, and others come."""
    with rig(folder) as (_, server):
        over = read(server.url, STREAMS, seconds / 2, CLIENTS - STREAMS)
    refused = min(over.statuses.get("503", 0), over.retry_after)
    odd = sum(n for status, n in over.statuses.items() if status not in {"200", "503"})
    broken = sum(n for what, n in over.errors.items() if what.startswith("over"))
    more = f"of {CLIENTS - STREAMS} more clients"
    lines = [
        Line(f"refused with 503 and Retry-After, {more}", refused, 1, at_most=False),
        Line("answered otherwise than 200 or 503", odd),
        Line("longest wait for a refusal or an answer's beginning", max(over.waited_s), 1.0, "s"),
        Line("connections over the cap that broke", broken),
    ]
    return lines, {
        "clients over the cap, wait p50 ms": quantile(over.waited_s, 0.5) * 1000,
        "clients over the cap, let in where a stream had just ended": over.statuses.get("200", 0),
    }


PDF_PAGES = 300


def gaps(path: Path, begin_s: float, end_s: float) -> list[float]:
    """Return the gaps of an event loop in a stretch of time, in milliseconds."""
    rows = (line.split() for line in path.read_text().splitlines())
    return [float(late) for at, late in rows if begin_s <= float(at) <= end_s]


def bench_loop(folder: Path, seconds: float) -> Part:
    """Measure the event loop in a bulk run and a long PDF, and an idle loop."""
    said = "the harbour master wrote down the tide, wind and ships."
    pages = [[f"Page {n}, line {line}: {said}" for line in range(45)] for n in range(PDF_PAGES)]
    pdf, dump = folder / "long.pdf", folder / "dump"
    pdf.write_bytes(make_pdf(pages))
    dump.mkdir()
    for article in TextPool().articles(6000):
        (dump / f"{article.key}.txt").write_text(f"{article.title}\n\n{article.source}")
    idle_gaps, server_gaps = folder / "idle.gaps", folder / "loop.gaps"
    server = Served(folder / "loop")
    server.command = (*PROCESS, "watch", str(server_gaps))
    idle = subprocess.Popen([*PROCESS, "idle", str(idle_gaps)], cwd=ROOT)
    with server:
        time.sleep(5)
        begun = time.monotonic()
        job = str(server.client.bulk("index", "public", source=str(dump))["id"])
        rounds, bulk_s = 0, 0.0
        while (took := time.monotonic() - begun) < seconds or (not bulk_s and took < 3 * seconds):
            server.client.ingest([FileToSend(pdf, f"long-{rounds}.pdf")], "papers", wait="text")
            rounds += 1
            if not bulk_s and server.client.job(job)["state"] in {"done", "failed"}:
                bulk_s = time.monotonic() - begun
        ended = time.monotonic()
        state = server.client.job(job)["state"]
        while any(one["state"] not in FINISHED for one in server.client.jobs(100)["jobs"]):
            time.sleep(0.2)
        embedded = time.monotonic()
        server.wait_followed("papers")
        followed = time.monotonic()
    idle.terminate()
    idle.wait(20)
    stretches = {
        "": gaps(server_gaps, begun, ended),
        " of the idle server": gaps(server_gaps, begun - 4, begun),
        " of an idle process at the same time": gaps(idle_gaps, begun, ended),
        " while Chroma follows afterwards": gaps(server_gaps, embedded, followed),
    }
    what = f"event-loop gap p99.9 during a bulk run and {rounds} PDFs of {PDF_PAGES} pages"
    lines = [
        Line(what, quantile(stretches[""], 0.999), 50, "ms"),
        Line("bulk run done", float(state == "done"), 1, at_most=False),
    ]
    figures = {
        f"event-loop gap {name} ms{when}": quantile(found, share)
        for when, found in stretches.items()
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0))
    }
    return lines, figures | {
        "Chroma follows, with the rest before it s": followed - embedded,
        "bulk run s": bulk_s,
    }


WARM_UP = 0.25
"""Share of the run that may still grow: caches fill, allocators find their size."""
_EVERY = 50
_TOPICS = "copper iron zinc tin lead silver gold nickel cobalt chromium titanium tungsten".split()
_FACTS = (
    "melts at {n} degrees|was found in {n} places|weighs {n} grams|conducts for {n} metres"
    "|costs {n} coins|lasts {n} years"
).split("|")


def note(number: int, seed: int) -> str:
    """Return a document of about a page, a different one for every seed."""
    rng = random.Random(seed)
    lines = [
        f"{rng.choice(_TOPICS).title()} {rng.choice(_FACTS).format(n=rng.randrange(2000))}."
        for _ in range(40)
    ]
    return f"Note {number}\n\n" + "\n\n".join(
        " ".join(lines[at : at + 8]) for at in range(0, 40, 8)
    )


def bench_soak(folder: Path, questions: int, cycles: int) -> Part:
    """Ask thousands of questions while hundreds of documents come and go: does the server grow?"""
    notes = folder / "notes"
    notes.mkdir()
    for number in range(60):
        (notes / f"base-{number}.txt").write_text(note(number, number))
    guest, failures, documents = notes / "guest.txt", 0, 0
    course: list[tuple[int, float, int]] = []
    with Served(folder / "soak") as server:
        client, process = server.client, psutil.Process(server.process.pid)
        client.ingest([FileToSend(path) for path in sorted(notes.glob("base-*.txt"))], "papers")
        begun = time.perf_counter()
        for number in range(questions + 1):
            if number % _EVERY == 0:
                course.append((number, process.memory_info().rss / 1e6, process.num_fds()))
            rng = random.Random(number)
            unit = rng.choice(["metres", "grams", "degrees", "coins"])
            text = f"How many {unit} does {rng.choice(_TOPICS)} have in note {number}?"
            status = client.query(text, library="papers")["status"]
            failures += status not in {"answered", "abstained"}
            if number * cycles // questions != (number + 1) * cycles // questions:
                guest.write_text(note(number, 10_000 + number))
                client.ingest([FileToSend(guest)], "papers")
                failures += client.delete("papers", guest.name)["chunks"] == 0
                documents += 1
        took, threads = time.perf_counter() - begun, process.num_threads()
    steady = course[int(len(course) * WARM_UP) :]
    tenth = max(1, len(course) // 10)
    slope = float(np.polyfit([at for at, _, _ in steady], [mb for _, mb, _ in steady], 1)[0] * 1000)
    # Segments of the lexical index and connections come and go by one or two; a handle lost per
    # question or per document would be hundreds by then.
    early = [handles for _, _, handles in steady[:tenth]]
    late = [handles for _, _, handles in course[-tenth:]]
    what = f"growth of memory over {questions} questions and {documents} documents"
    lines = [
        Line(what, slope, 2.0, "MB per 1,000"),
        Line("growth of open handles after the warm-up", float(np.median(late)) - max(early)),
        Line("failures", failures),
    ]
    return lines, {
        "memory at the start MB": course[0][1],
        "memory after the warm-up MB": steady[0][1],
        "memory at the end MB": course[-1][1],
        "threads at the end": threads,
        "soak s": took,
    }


_FEW_ASK = re.compile(r"round \d|machine load|p50 ms|straight from|threads|handles in|samples$")
"""Figures that stand in the JSON file alone."""
REMARKS = (
    f"The model host writes {TOKENS_PER_S:g} tokens a second per answer, each by its own clock, not"
    f" in step with others, reworded sentences of the passages with their marks. {ROUNDS} rounds of"
    " one reader and then of all are taken together. Latency is from there to the reader, another"
    " process on the same machine; what readers straight at the model host see is the machine and"
    f" the measurement. Of {CLIENTS} clients {STREAMS} read, and the others come while all streams"
    " are taken. A gap of the event loop is how much later than asked a pause of 5 ms ended; an idle"
    " process shows what the machine alone does. Chroma is written in its own process during the"
    " run. The machine's load is in the JSON beside this page.",
)


def main() -> int:
    names = ("streams", "over", "loop", "soak")
    asked = options(
        __doc__,
        only=(names, "parts to measure", names),
        parts=(None, "folder that keeps the figures of each part", Path),
        seconds=(60.0, "of streams, and of the bulk run"),
        questions=(5000, "of the soak"),
        cycles=(300, "documents of the soak"),
    )
    measures: dict[str, Callable[[Path], Part]] = {
        "streams": lambda folder: bench_streams(folder, asked.seconds),
        "over": lambda folder: bench_over(folder, asked.seconds),
        "loop": lambda folder: bench_loop(folder, asked.seconds),
        "soak": lambda folder: bench_soak(folder, asked.questions, asked.cycles),
    }
    found: dict[str, Part] = {}
    for part, measure in measures.items():
        kept = asked.parts / f"{part}.json" if asked.parts else None
        if kept and kept.exists():
            found[part] = TypeAdapter(Part).validate_json(kept.read_text("utf-8"))
        elif part in asked.only:
            before = os.getloadavg()[0]
            with tempfile.TemporaryDirectory(prefix="documind-load-") as folder:
                found[part] = measure(Path(folder))
            figures = found[part][1]
            figures[f"machine load before {part}"] = before
            figures[f"machine load after {part}"] = os.getloadavg()[0]
            if kept:
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(TypeAdapter(Part).dump_json(found[part]))
    every = [line for lines, _ in found.values() for line in lines]
    all_figures = {name: value for _, figures in found.values() for name, value in figures.items()}
    if len(found) == len(measures):
        title = "Many streams, a free event loop, and a long day"
        few = {name: value for name, value in all_figures.items() if not _FEW_ASK.search(name)}
        aside = {name: value for name, value in all_figures.items() if name not in few}
        return write("load", title, REMARKS, every, few, "make bench-load", aside=aside)
    shown = {line.what: (line.measured, line.holds) for line in every}
    print(json.dumps(shown | all_figures, indent=1))
    return 0 if all(line.holds for line in every) else 1


if __name__ == "__main__":
    sys.exit(main())
