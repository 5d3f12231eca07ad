"""The ablation without a server: the sample documents in a temporary data directory, searched in this process.

python -m scripts.run_retrieval_ablation_offline [--bench FILE] [--report-md F] [--csv F] [--json-out F]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.bootstrap import build_services
from app.core.types import Library
from app.evaluation.probes import Probe, ServiceAsk, load_probes, run_probes, strategy_arms
from app.evaluation.report import Provenance, settings_hash
from app.evaluation.runner import Experiment
from app.jobs.kinds import SAMPLES
from app.settings import Settings
from scripts.run_retrieval_ablation import SEED, arguments, git_sha, write


def main() -> None:
    """Index the samples, run and write."""
    given = arguments(__doc__ or "").parse_args()
    experiments, degraded, made = offline({given.bench.stem: load_probes(given.bench)}, given.top_k)
    write(experiments[0], degraded, made, given)


def offline(benches: Mapping[str, Sequence[Probe]], top_k: int) -> tuple[tuple[Experiment, ...], set[str], Provenance]:
    """Ask each set of probes over the sample documents; also returns the arms without a model, and the provenance."""
    with tempfile.TemporaryDirectory(prefix="documind-ablation-") as folder:
        settings = Settings(data_dir=Path(folder), samples=False, embedding_provider="minilm", llm_provider="extractive")
        with build_services(settings) as services:
            job = services.jobs.submit(SAMPLES, {}, unit="files")
            while services.store.jobs.get(job.id).state in {"queued", "running"}:
                time.sleep(0.1)
            ask = ServiceAsk(services.rag.answer)
            documents = sum(services.catalog.counts(library).documents for library in Library)
            experiments = tuple(
                run_probes(name, probes, strategy_arms(), ask, seed=SEED, top_k=top_k, documents=documents)
                for name, probes in benches.items()
            )
            identity = services.embedder.identity
    made = Provenance(git_sha(), settings_hash(experiments), "samples", {identity.model: identity.digest}, SEED)
    return experiments, ask.degraded, made


if __name__ == "__main__":
    main()
