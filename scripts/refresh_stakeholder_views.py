"""Make the dashboard anew: `python -m scripts.refresh_stakeholder_views [--html F]`.

Indexes the sample documents in a temporary directory, asks both probe files under every strategy and fusion, and writes
evaluation/reports/stakeholder_dashboard.html: one file, nothing from outside.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from app.evaluation.dashboard import to_html
from app.evaluation.probes import load_probes
from app.evaluation.report import Report
from scripts.run_retrieval_ablation import REPORTS, ROOT
from scripts.run_retrieval_ablation_offline import offline


def main() -> None:
    """Run both probe files and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--html", type=Path, default=REPORTS / "stakeholder_dashboard.html")
    parser.add_argument("--top-k", type=int, default=5)
    given = parser.parse_args()
    benches = {name: load_probes(ROOT / "evaluation" / f"{name}.json") for name in ("retrieval_ablation", "wiki_public_bench")}
    experiments, degraded, made = offline(benches, given.top_k)
    remarks = (f"{', '.join(sorted(degraded))}: no model was there, so baseline answered.",) if degraded else ()
    given.html.parent.mkdir(parents=True, exist_ok=True)
    given.html.write_text(to_html(Report("Retrieval at a glance", made, experiments, remarks)), encoding="utf-8")
    print(given.html)


if __name__ == "__main__":
    main()
