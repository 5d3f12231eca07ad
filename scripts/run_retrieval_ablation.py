"""Ask a running server the ablation probes under every strategy and fusion, and write the report.

python -m scripts.run_retrieval_ablation [--base-url URL] [--bench FILE] [--report-md F] [--csv F] [--json-out F]
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

from app.client import DocuMindClient
from app.core.ids import fingerprint8
from app.core.types import Fingerprint
from app.evaluation.probes import ServerAsk, load_probes, run_probes, strategy_arms
from app.evaluation.report import Provenance, Report, settings_hash, to_csv, to_json, to_markdown
from app.evaluation.runner import Experiment

ROOT = Path(__file__).resolve().parents[1]
REPORTS = ROOT / "evaluation" / "reports"
SEED = 7


def main() -> None:
    """Run and write."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--base-url", default="http://127.0.0.1:8001")
    parser.add_argument("--api-key", default="")
    given = parser.parse_args()
    with DocuMindClient(given.base_url, given.api_key) as client:
        ask = ServerAsk(client)
        libraries = client.libraries()
        counted = (
            [row for row in libraries["libraries"] if isinstance(row, dict)] if isinstance(libraries["libraries"], list) else []
        )
        arms, probes = strategy_arms(), load_probes(given.bench)
        experiment = run_probes(
            given.bench.stem,
            probes,
            arms,
            ask,
            seed=SEED,
            top_k=given.top_k,
            documents=sum(int(row["documents"]) for row in counted),
        )
        made = client.diagnostics()
        built = {str(row["library"]): Fingerprint(**row["fingerprint"]) for row in counted if row.get("fingerprint")}
    fingerprint = ", ".join(f"{library} {fingerprint8(found)}" for library, found in built.items())
    models = {found.embedding_model: found.model_digest for found in built.values()}
    provenance = Provenance(str(made.get("git_sha") or ""), settings_hash([experiment]), fingerprint, models, SEED)
    write(experiment, ask.degraded, provenance, given)


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of both ablation scripts."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=ROOT / "evaluation" / "retrieval_ablation.json", help="file of probes")
    parser.add_argument("--report-md", type=Path, default=REPORTS / "retrieval_ablation.md")
    parser.add_argument("--csv", type=Path, default=REPORTS / "retrieval_ablation.csv")
    parser.add_argument("--json-out", type=Path, default=REPORTS / "retrieval_ablation_summary.json")
    parser.add_argument("--top-k", type=int, default=5)
    return parser


def git_sha() -> str:
    """Return the commit of this checkout, empty outside of one."""
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607 - git as on PATH
    return found.stdout.strip()


def write(experiment: Experiment, degraded: set[str], made: Provenance, given: argparse.Namespace) -> None:
    """Write the three files and print the table."""
    remarks = [f"{', '.join(sorted(degraded))}: no model was there, so baseline answered."] if degraded else []
    report = Report("Retrieval ablation", made, (experiment,), tuple(remarks))
    for path, text in ((given.report_md, to_markdown(report)), (given.csv, to_csv(report)), (given.json_out, to_json(report))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(to_markdown(report))


if __name__ == "__main__":
    main()
