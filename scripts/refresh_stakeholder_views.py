"""Rebuild the dashboard: `python -m scripts.refresh_stakeholder_views [--html F]`.

Indexes the sample documents in a temporary directory, asks the ablation probes and the samples'
question file under every strategy and fusion, and writes stakeholder_dashboard.html: one file,
nothing from outside.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli.main import run_at_edge
from app.evaluation.cases import load
from app.evaluation.report import report_of, to_html
from scripts.probes import Probe, load_probes
from scripts.reports import PROBES, ROOT, reports_folder, require_writable
from scripts.run_retrieval_ablation_offline import offline

QUESTIONS = ROOT / "data" / "sample_docs" / "questions.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--html", type=Path, default=reports_folder() / "stakeholder_dashboard.html"
    )
    parser.add_argument("--top-k", type=int, default=5)
    given = parser.parse_args()
    require_writable([given.html])
    benches = {
        "retrieval_ablation": load_probes(PROBES / "retrieval_ablation.json"),
        "questions": sample_questions(),
    }
    experiments, remarks, made = offline(benches, given.top_k)
    given.html.write_text(
        to_html(report_of("Retrieval at a glance", made, experiments, remarks)), encoding="utf-8"
    )
    print(given.html)


def sample_questions() -> tuple[Probe, ...]:
    """Return the questions of the samples' file that a passage answers."""
    return tuple(
        Probe(f"question-{number}", case.question, case.library, case.expected_substrings)
        for number, case in enumerate(load(QUESTIONS), start=1)
        if case.expected_substrings and not case.oos
    )


if __name__ == "__main__":
    run_at_edge(main)
