"""Run the ablation without a server, over the samples in this process.

python -m scripts.run_retrieval_ablation_offline [--bench FILE] [--report-md F] [--csv F]
[--json-out F]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.bootstrap import build_services
from app.bootstrap.services import Services
from app.cli.main import run_at_edge
from app.core.ids import checkout_sha
from app.core.types import Library
from app.evaluation.report import Experiment, ReportProvenance, settings_hash
from app.jobs.kinds import SAMPLES
from app.settings import Settings
from app.storage.catalog.documents import Catalog
from scripts.probes import Probe, ServiceAsk, load_probes, run_probes, strategy_arms, with_articles
from scripts.reports import require_writable
from scripts.run_retrieval_ablation import SEED, arguments, files_of, remarks, write


def main() -> None:
    given = arguments(__doc__ or "").parse_args()
    require_writable(files_of(given))
    experiments, said, made = offline({given.bench.stem: load_probes(given.bench)}, given.top_k)
    write(experiments[0], said, made, given)


def offline(
    benches: Mapping[str, Sequence[Probe]], top_k: int
) -> tuple[tuple[Experiment, ...], tuple[str, ...], ReportProvenance]:
    """Ask each set of probes over the samples; return notes and provenance too.

    Raises:
        NotFound: A set has only probes about articles that are no samples.
    """
    experiments: list[Experiment] = []
    skipped: list[str] = []
    with over_samples() as services:
        ask = ServiceAsk(services.rag.answer)
        for name, probes in benches.items():
            asked, left_out = with_articles(
                probes, lambda probe: titles_like(services.catalog, probe)
            )
            skipped += left_out
            documents = count_documents(services)
            experiments.append(
                run_probes(
                    name, asked, strategy_arms(), ask, seed=SEED, top_k=top_k, documents=documents
                )
            )
        made = provenance(services, experiments)
    return tuple(experiments), remarks(ask.degraded, skipped), made


@contextmanager
def over_samples() -> Iterator[Services]:
    """Yield the services of a data directory of its own with the samples, without a model."""
    with tempfile.TemporaryDirectory(prefix="documind-samples-") as folder:
        settings = Settings(
            data_dir=Path(folder),
            samples=False,
            embedding_provider="minilm",
            llm_provider="extractive",
        )
        with build_services(settings) as services:
            job = services.jobs.submit(SAMPLES, {}, unit="files")
            while services.jobs.get(job.id).state in {"queued", "running"}:
                time.sleep(0.1)
            yield services


def count_documents(services: Services) -> int:
    return sum(services.catalog.counts(library).documents for library in Library)


def provenance(services: Services, experiments: Sequence[Experiment]) -> ReportProvenance:
    """Return what a report over the samples was made from."""
    identity = services.embedder.identity
    models = {identity.model: identity.digest}
    return ReportProvenance(checkout_sha(), settings_hash(experiments), "samples", models, SEED)


def titles_like(catalog: Catalog, probe: Probe) -> list[str]:
    """Return titles of sample documents that contain a probe's article title."""
    libraries = list(Library) if probe.library == "all" else [Library(probe.library)]
    return [
        document.title
        for library in libraries
        for document in catalog.documents(library, probe.article)[0]
    ]


if __name__ == "__main__":
    run_at_edge(main)
