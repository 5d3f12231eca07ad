"""Measure a token's latency with many readers, and refusals at the limit."""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

from app.client import FileToSend
from evaluation.benchmarks.load.facts import document
from evaluation.benchmarks.load.model_host import Sent
from evaluation.benchmarks.load.readers import Seen
from evaluation.lib.paths import ROOT
from evaluation.lib.served import Line, Served, quantile

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
    """Measure 64 readers and one reader in turns, after both without a server.

    Without a server they read straight from the model host.
    """
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
