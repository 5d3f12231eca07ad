"""Ask thousands of questions, add and delete documents; watch memory."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from app.client import DocuMindClient, FileToSend
from evaluation.benchmarks.load.streams import Part
from evaluation.lib.served import Line, Served

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
