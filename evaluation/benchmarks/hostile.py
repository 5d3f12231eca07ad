"""Measure what hostile files cost a server: verdict, time, memory, service.

Service is whether others are served at the same time.

    python -m evaluation.benchmarks.hostile [--quick]

The files are written by code (tests/fakes/hostile). A process of its own asks `/health` fifty times
a second, first of the idle server, then while the files come in one after the other.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import requests

from app.core.errors import Unreadable
from app.ingest.parsers.html import parse_html
from app.ingest.parsers.wikitext import parse_wikitext
from evaluation.lib.paths import REPORTS, ROOT
from evaluation.lib.served import Line, Served, quantile, write
from tests.fakes.hostile import CANARY, HostileFile, files
from tests.fakes.hostile.markup import HTML, WIKITEXT

IDLE_S = 15.0
PROBE_S = 0.02
LIMIT = 5.0
WALL_LIMIT_S = 130.0
"""The parsing child's wall clock of 120 s, and the upload."""


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one file."""

    name: str
    size_mb: float
    verdict: str
    expected: bool
    wall_s: float
    peak_mb: float
    """Most resident memory of the server and its children above what the server had before the
    file."""


def probe(url: str, path: Path) -> None:
    """Ask for `/health` until standard input closes; print `begun_s took_ms` lines.

    On the clock of `time.monotonic`.
    """
    parts = urlsplit(url)
    stop = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    rows = []
    while not stop.wait(PROBE_S):
        begun = time.monotonic()
        connection.request("GET", "/health")
        reply = connection.getresponse()
        reply.read()
        if reply.status != 200:
            raise SystemExit(f"/health answered {reply.status}")
        rows.append(f"{begun:.4f} {(time.monotonic() - begun) * 1000:.3f}\n")
    path.write_text("".join(rows))


class Peak:
    """Watches how much memory the server and its children hold together."""

    def __init__(self, pid: int) -> None:
        """Begin to watch."""
        self._root = psutil.Process(pid)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._most = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def now(self) -> int:
        """Return the resident bytes of all."""
        total = 0
        for process in [self._root, *self._root.children(recursive=True)]:
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total

    def reset(self) -> int:
        """Reset the peak; return what is held now."""
        with self._lock:
            self._most = self.now()
            return self._most

    def most(self) -> int:
        """Return the most since the last reset."""
        with self._lock:
            return self._most

    def close(self) -> None:
        """End watching."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.03):
            held = self.now()
            with self._lock:
                self._most = max(self._most, held)


def send(url: str, file: HostileFile, peak: Peak) -> tuple[Row, str]:
    """Upload one file and delete the result; return the row and the reply's text."""
    content = file.make()
    before, begun = peak.reset(), time.monotonic()
    reply = requests.post(
        f"{url}/api/v1/ingest?wait=text&library=papers",
        files=[("file", (file.name, content))],
        timeout=WALL_LIMIT_S * 2,
    )
    wall_s, held = time.monotonic() - begun, peak.most()
    body = reply.json()
    verdict = "indexed" if reply.status_code in {200, 201, 202} else str(body["code"])
    if verdict == "indexed":
        requests.delete(f"{url}/api/v1/papers/{file.name}?library=papers", timeout=120)
    row = Row(
        file.name,
        len(content) / 2**20,
        verdict,
        verdict in file.verdicts,
        wall_s,
        (held - before) / 1e6,
    )
    return row, reply.text


def _between(path: Path, begin: float, end: float) -> list[float]:
    rows = (line.split() for line in path.read_text().splitlines())
    return [float(took) for at, took in rows if begin <= float(at) <= end]


def growth() -> dict[str, float]:
    """Return how many times longer four times the markup takes; 4 is linear, 16 quadratic.

    The least of three rounds: other work on the machine slows single ones.
    """
    found: dict[str, float] = {}
    for kind, units, parse in (("wikitext", WIKITEXT, _wikitext), ("HTML", HTML, _html)):
        for name, made in units.items():
            small, large = made(5_000), made(20_000)
            found[f"growth of {kind}, {name}"] = min(
                _processor_s(parse, large) / max(0.001, _processor_s(parse, small))
                for _ in range(3)
            )
    return found


def _wikitext(source: str) -> None:
    parse_wikitext(source, "T")


def _html(source: str) -> None:
    with suppress(Unreadable):
        parse_html(source.encode())


def _processor_s(parse: Callable[[str], None], source: str) -> float:
    before = time.process_time()
    parse(source)
    return time.process_time() - before


def main(arguments: Sequence[str] | None = None) -> int:
    """Send every file and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only files that are quick to make and to refuse; no report",
    )
    parser.add_argument("--probe", nargs=2, metavar=("URL", "FILE"), help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.probe:
        probe(asked.probe[0], Path(asked.probe[1]))
        return 0
    rows: list[Row] = []
    leaks = 0
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="documind-hostile-") as name:
        folder = Path(name)
        samples = folder / "health"
        with Served(folder / "data") as server:
            command = [
                sys.executable,
                "-m",
                "evaluation.benchmarks.hostile",
                "--probe",
                server.url,
                str(samples),
            ]
            peak = Peak(server.process.pid)
            with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as prober:
                time.sleep(2)
                idle_from = time.monotonic()
                time.sleep(IDLE_S)
                begun = time.monotonic()
                for file in files(slow=not asked.quick):
                    row, text = send(server.url, file, peak)
                    leaks += CANARY in text
                    rows.append(row)
                    print(
                        f"  {row.name}: {row.verdict} in {row.wall_s:.2f} s, {row.peak_mb:.0f} MB",
                        flush=True,
                    )
                ended = time.monotonic()
                assert prober.stdin is not None
                prober.stdin.close()
            peak.close()
            ready = server.client.ready()["status"] == "ready"
        idle, busy = _between(samples, idle_from, begun), _between(samples, begun, ended)
        outside = [
            path
            for path in (Path("/tmp/documind-escaped"), Path("/etc/documind-escaped"))
            if path.exists()
        ]
    grown = growth()
    lines = [
        Line("four times the markup, times as long at most", max(grown.values()), 8, "x"),
        Line("files", len(rows), 40, "", at_most=False),
        Line("files that did not end as they may", sum(not row.expected for row in rows), 0, ""),
        Line("longest wall time", max(row.wall_s for row in rows), WALL_LIMIT_S, "s"),
        Line("replies that show another file's content", leaks, 0, ""),
        Line("files written outside the data directory", len(outside), 0, ""),
        Line(
            "/health p99 while they come in / idle",
            quantile(busy, 0.99) / quantile(idle, 0.99),
            LIMIT,
            "x",
        ),
        Line("the server is ready afterwards", float(ready), 1, "", at_most=False),
    ]
    figures = {
        "/health p50 ms, idle": quantile(idle, 0.5),
        "/health p99 ms, idle": quantile(idle, 0.99),
        "/health p50 ms, busy": quantile(busy, 0.5),
        "/health p99 ms, busy": quantile(busy, 0.99),
        "/health longest ms, busy": max(busy),
        "most memory of one file MB": max(row.peak_mb for row in rows),
        "all files s": ended - begun,
        "machine load before": load,
        "machine load after": os.getloadavg()[0],
        **grown,
    }
    if asked.quick:
        print(
            json.dumps(
                {
                    "lines": [(line.what, line.measured, line.holds) for line in lines],
                    "figures": figures,
                },
                indent=1,
            )
        )
        return 0 if all(line.holds for line in lines) else 1
    remarks = [
        "One upload after the other to a real server with default limits; memory is the most that"
        " server and children held above",
        "what the server had before the file, sampled every 30 ms. The machine was shared; its"
        " load is among the figures.",
        "",
        "| file | MB | verdict | s | MB held |",
        "|---|---|---|---|---|",
        *(
            f"| {row.name} | {row.size_mb:.2f} | {row.verdict} | {row.wall_s:.2f} |"
            f" {row.peak_mb:.0f} |"
            for row in rows
        ),
    ]
    code = write("hostile", "Hostile files", remarks, lines, figures, "make bench-hostile")
    report = json.loads((REPORTS / "hostile.json").read_text("utf-8"))
    report["files"] = [
        {
            **asdict(row),
            "size_mb": round(row.size_mb, 3),
            "wall_s": round(row.wall_s, 3),
            "peak_mb": round(row.peak_mb, 1),
        }
        for row in rows
    ]
    (REPORTS / "hostile.json").write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
