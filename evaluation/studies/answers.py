"""Answer the samples' questions without a model: quality of quotes.

`python -m evaluation.studies.answers`

Indexes the samples in a temporary directory and asks every question through the query use case, as
`documind evaluate answers` does. Writes evaluation/reports/answers.{md,csv,json}.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from app.bootstrap import build_services
from app.core.ids import checkout_sha
from app.core.types import Library
from app.evaluation.answers import answers_experiment, ask_case
from app.evaluation.arms import Arm
from app.evaluation.cases import load
from app.evaluation.report import ReportProvenance, report_of, settings_hash
from app.jobs.kinds import SAMPLES
from app.settings import Settings
from evaluation.lib.paths import ROOT
from evaluation.lib.workbench import SEED, write

CASES = ROOT / "data" / "sample_docs" / "questions.jsonl"


def main() -> None:
    cases = load(CASES)
    with tempfile.TemporaryDirectory(prefix="documind-answers-") as folder:
        settings = Settings(
            _env_file=None,
            data_dir=Path(folder),
            samples=False,
            embedding_provider="minilm",
            llm_provider="extractive",
        )
        with build_services(settings) as services:
            job = services.jobs.submit(SAMPLES, {}, unit="files")
            while services.jobs.get(job.id).state in {"queued", "running"}:
                time.sleep(0.1)
            outcomes = [ask_case(case, services.rag.answer) for case in cases]
            documents = sum(services.catalog.counts(library).documents for library in Library)
            identity = services.embedder.identity
    arm = Arm("quotes", settings.retrieval(), note="no model: the best sentences, quoted")
    experiment = answers_experiment(
        "sample questions", cases, [arm], [outcomes], seed=SEED, documents=documents
    )
    wrong = [
        case.question for case, row in zip(cases, outcomes, strict=True) if not row.values["right"]
    ]
    report = report_of(
        "Answers to the question file of the sample documents, without a model",
        ReportProvenance(
            checkout_sha(),
            settings_hash([experiment]),
            "samples",
            {identity.model: identity.digest},
            SEED,
        ),
        (experiment,),
        (f"Not right: {'; '.join(wrong) or 'none'}.",),
    )
    write(report, "answers")


if __name__ == "__main__":
    main()
