"""Measure libraries of several sizes, each part in a process of its own, and carry the figures on to Wikipedia."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from evaluation.lib.corpus import Figures
from evaluation.lib.reports import table
from evaluation.lib.served import pss_bytes

Part = Callable[[Path, Path, int], Figures]
"""Measures something of the library in a folder, with inputs and an amount."""
Law = Literal["linear", "logarithmic", "constant"]
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

WIKIPEDIA_CHUNKS = 25_000_000
"""English Wikipedia at the default chunk size."""
_SAMPLE_S = 0.2


def run_part(module: str, part: str, path: Path, inputs: Path, amount: int = 0) -> Figures:
    """Run a part in a process of its own; return its figures and the most `PART_pss_mb`.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    command = [sys.executable, "-m", module, "--part", part, str(path), str(inputs), str(amount)]
    most = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, pss_bytes(process.pid))
            time.sleep(_SAMPLE_S)
        output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    figures: Figures = json.loads(output.splitlines()[-1])
    return {**figures, f"{part}_pss_mb": most / 1e6}


def is_part(parts: Mapping[str, Part]) -> bool:
    """Do the part that `run_part` asked this process for; return whether one was asked for."""
    if sys.argv[1:2] != ["--part"]:
        return False
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=parts)
    parser.add_argument("path", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("amount", type=int)
    given = parser.parse_args()
    given.path.mkdir(parents=True, exist_ok=True)
    print(json.dumps(parts[given.part](given.path, given.inputs, given.amount)))
    return True


def timed(
    call: Callable[[Asked], Answer], asked: Sequence[Asked]
) -> tuple[list[Answer], list[float]]:
    """Return replies and the milliseconds that each took."""
    answers, took = [], []
    for one in asked:
        started = time.perf_counter()
        answers.append(call(one))
        took.append((time.perf_counter() - started) * 1000)
    return answers, took


def percentiles(name: str, took_ms: Sequence[float]) -> Figures:
    p50, p95 = np.percentile(np.asarray(took_ms), (50, 95))
    return {f"{name}_p50_ms": float(p50), f"{name}_p95_ms": float(p95)}


@dataclass(frozen=True, slots=True)
class Fit:
    """Growth of a figure with the number of chunks."""

    name: str
    law: Law
    why: str
    predicted: float
    """At the largest size, by the smaller ones: a test of the law."""
    measured: float
    at_wikipedia: float
    """At WIKIPEDIA_CHUNKS, by every size."""

    @property
    def off(self) -> float:
        return abs(self.predicted / self.measured - 1)


def fit(laws: Mapping[str, tuple[Law, str]], steps: Sequence[Figures], size: str) -> list[Fit]:
    """Fit figures of at least two steps, smallest first, by their `size`."""
    return [
        Fit(name, law, why, tested, steps[-1][name], carried)
        for name, (law, why) in laws.items()
        if len(steps) > 1
        for tested in [_carried(law, name, steps[:-1], size, steps[-1][size])]
        for carried in [_carried(law, name, steps, size, WIKIPEDIA_CHUNKS)]
    ]


def _carried(law: Law, name: str, steps: Sequence[Figures], size: str, chunks: float) -> float:
    values = [step[name] for step in steps]
    if law == "constant" or len(steps) == 1:
        return values[-1]
    along: Callable[[npt.ArrayLike], npt.NDArray[np.float64]] = (
        np.log if law == "logarithmic" else np.asarray
    )
    slope, intercept = np.polyfit(along([step[size] for step in steps]), values, 1)
    return float(intercept + slope * along(chunks))


def tables(steps: Sequence[Figures], size: str, fits: Sequence[Fit]) -> list[str]:
    """Return the figures by size, and what they come to at the size of Wikipedia."""
    names = list(dict.fromkeys(name for step in steps for name in step))
    lines = ["## By size", ""]
    lines += table(
        ("", *(f"{step[size]:,.0f}" for step in steps)),
        [(name, *(step.get(name, "") for step in steps)) for name in names],
    )
    if fits:
        lines += ["", f"## At {WIKIPEDIA_CHUNKS:,} chunks, by arithmetic", ""]
        lines += table(
            ("", "at that size", "predicted at the largest size", "measured there", "law"),
            [
                (one.name, one.at_wikipedia, one.predicted, one.measured, f"{one.law}: {one.why}")
                for one in fits
            ],
        )
    return lines
