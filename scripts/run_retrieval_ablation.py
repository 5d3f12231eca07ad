"""Ask a server the ablation probes under every strategy and fusion; report.

python -m scripts.run_retrieval_ablation [--base-url URL] [--bench FILE] [--report-md F] [--csv F]
[--json-out F]

Probes whose article is not indexed are skipped and listed; exit code 4 when that is all of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from app.cli.main import run_at_edge
from app.client import DocuMindClient
from app.core.ids import fingerprint8
from app.core.types import Fingerprint, Library
from app.evaluation.degraded import Degraded
from app.evaluation.report import (
    Experiment,
    ReportProvenance,
    report_of,
    settings_hash,
    to_csv,
    to_json,
    to_markdown,
)
from scripts.probes import Probe, ServerAsk, load_probes, run_probes, strategy_arms, with_articles
from scripts.reports import PROBES, reports_folder, require_writable

SEED = 7


def main(given: argparse.Namespace | None = None) -> None:
    given = given or server_options(arguments(__doc__ or "")).parse_args()
    require_writable(files_of(given))
    probes = load_probes(given.bench)
    with DocuMindClient(given.base_url, given.api_key) as client:
        probes, skipped = with_articles(probes, lambda probe: titles_like(client, probe))
        ask = ServerAsk(client)
        libraries = client.libraries()["libraries"]
        documents = sum(int(row["documents"]) for row in libraries)
        arms = strategy_arms()
        experiment = run_probes(
            given.bench.stem, probes, arms, ask, seed=SEED, top_k=given.top_k, documents=documents
        )
        made = client.diagnostics()
    built = {
        str(row["library"]): Fingerprint(**row["fingerprint"])
        for row in libraries
        if row.get("fingerprint")
    }
    fingerprint = ", ".join(f"{library} {fingerprint8(found)}" for library, found in built.items())
    models = {found.embedding_model: found.model_digest for found in built.values()}
    provenance = ReportProvenance(
        str(made.get("git_sha") or ""), settings_hash([experiment]), fingerprint, models, SEED
    )
    write(experiment, remarks(ask.degraded, skipped), provenance, given)


def arguments(description: str, name: str = "retrieval_ablation") -> argparse.ArgumentParser:
    """Return a parser with the options of ablation scripts, for a bench and its reports."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = reports_folder()
    summary = f"{name}_summary.json" if name == "retrieval_ablation" else f"{name}.json"
    parser.add_argument(
        "--bench", type=Path, default=PROBES / f"{name}.json", help="file of probes"
    )
    parser.add_argument("--report-md", type=Path, default=folder / f"{name}.md")
    parser.add_argument("--csv", type=Path, default=folder / f"{name}.csv")
    parser.add_argument("--json-out", type=Path, default=folder / summary)
    parser.add_argument("--top-k", type=int, default=5)
    return parser


def server_options(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add what says which server is asked."""
    parser.add_argument("--base-url", default="http://127.0.0.1:8001")
    parser.add_argument("--api-key", default="")
    return parser


def files_of(given: argparse.Namespace) -> tuple[Path, Path, Path]:
    return given.report_md, given.csv, given.json_out


def titles_like(client: DocuMindClient, probe: Probe) -> Iterable[str]:
    """Yield titles of a server's documents that contain a probe's article title."""
    libraries = (
        [library.value for library in Library] if probe.library == "all" else [probe.library]
    )
    for library in libraries:
        for document in client.documents(library, query=probe.article):
            yield str(document["title"])


def remarks(degraded: Degraded, skipped: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what a reader of the report must know."""
    found = []
    if skipped:
        found.append(f"Skipped, because their article is not indexed: {', '.join(skipped)}.")
    return (*found, *degraded.remarks())


def write(
    experiment: Experiment, said: tuple[str, ...], made: ReportProvenance, given: argparse.Namespace
) -> None:
    report = report_of(
        f"{given.bench.stem.replace('_', ' ').capitalize()}", made, (experiment,), said
    )
    page = f"{to_markdown(report)}\nMade by `python -m scripts.{Path(sys.argv[0]).stem}`.\n"
    for path, text in zip(files_of(given), (page, to_csv(report), to_json(report)), strict=True):
        path.write_text(text, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    run_at_edge(main)
