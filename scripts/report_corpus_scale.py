"""Say how large a server's libraries are and how fast it searches them: `python -m scripts.report_corpus_scale [--base-url URL]`.

Writes evaluation/reports/corpus_scale.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from app.client import DocuMindClient
from app.evaluation.metrics import percentile
from app.evaluation.probes import load_probes

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Ask, time and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", default="http://127.0.0.1:8001")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--rounds", type=int, default=5, help="times each probe is asked")
    parser.add_argument("--report-md", type=Path, default=ROOT / "evaluation" / "reports" / "corpus_scale.md")
    given = parser.parse_args()
    lines = [
        "# Corpus scale",
        "",
        "| library | documents | chunks | with a vector | p50 ms | p95 ms |",
        "|---|---|---|---|---|---|",
    ]
    probes = load_probes(ROOT / "evaluation" / "retrieval_ablation.json")
    with DocuMindClient(given.base_url, given.api_key) as client:
        for library in ("public", "papers"):
            stats = client.stats(library)
            times = []
            for probe in probes * given.rounds:
                start = time.perf_counter()
                client.query(probe.question, library=library, retrieve_only=True, top_k=10)
                times.append((time.perf_counter() - start) * 1000)
            cells = (library, stats["documents"], stats["chunks"], stats["embedded"])
            lines.append(f"| {' | '.join(map(str, cells))} | {percentile(times, 0.5):.1f} | {percentile(times, 0.95):.1f} |")
    lines += ["", f"Times are of retrieve_only over HTTP, {len(probes)} probes asked {given.rounds} times, one client."]
    given.report_md.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
