"""Report a server's library sizes, disk use by store, and search times.

python -m scripts.report_corpus_scale [--base-url URL] [--report-md F]

Writes corpus_scale.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.cli.main import run_at_edge
from app.client import DocuMindClient
from app.core.types import Library
from app.evaluation.metrics import percentile
from scripts.probes import Probe, load_probes
from scripts.reports import PROBES, reports_folder, require_writable
from scripts.run_retrieval_ablation import server_options


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    server_options(parser)
    parser.add_argument("--rounds", type=int, default=5, help="times each probe is asked")
    parser.add_argument("--report-md", type=Path, default=reports_folder() / "corpus_scale.md")
    given = parser.parse_args()
    require_writable([given.report_md])
    probes = load_probes(PROBES / "retrieval_ablation.json")
    with DocuMindClient(given.base_url, given.api_key) as client:
        lines = ["# Corpus scale", "", *libraries(client, probes, given.rounds), ""]
        lines += disk(client.diagnostics()["disk"])
    lines += [
        "",
        f"Times are of retrieve_only over HTTP, {len(probes)} probes asked {given.rounds} times,"
        " one client.",
        "",
        "Made by `python -m scripts.report_corpus_scale`.",
    ]
    given.report_md.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def libraries(client: DocuMindClient, probes: Sequence[Probe], rounds: int) -> list[str]:
    """Return a table of both libraries: their size, and the time of a search."""
    lines = [
        "| library | documents | chunks | with a vector | p50 ms | p95 ms |",
        "|---|---|---|---|---|---|",
    ]
    for library in Library:
        stats = client.stats(library.value)
        times = []
        for probe in [*probes] * rounds:
            start = time.perf_counter()
            client.query(probe.question, library=library.value, retrieve_only=True, top_k=10)
            times.append((time.perf_counter() - start) * 1000)
        cells = (library.value, stats["documents"], stats["chunks"], stats["embedded"])
        lines.append(
            f"| {' | '.join(map(str, cells))} | {percentile(times, 0.5):.1f} |"
            f" {percentile(times, 0.95):.1f} |"
        )
    return lines


def disk(by_store: Mapping[str, int]) -> list[str]:
    lines = ["| store | bytes on disk |", "|---|---|"]
    lines += [f"| {store} | {size:,} |" for store, size in by_store.items()]
    return [*lines, f"| all | {sum(by_store.values()):,} |"]


if __name__ == "__main__":
    run_at_edge(main)
