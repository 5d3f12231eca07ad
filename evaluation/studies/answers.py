"""Answer the samples' questions without a model: quality of quotes.

`python -m evaluation.studies.answers`

Indexes the samples in a temporary directory and asks every question through the query use case, as
`documind evaluate answers` does. Writes evaluation/reports/answers.{md,csv,json}.
"""

from __future__ import annotations

from app.evaluation.answers import answers_experiment, ask_case
from app.evaluation.arms import Arm
from app.evaluation.cases import load
from app.evaluation.report import report_of
from app.retrieval.request import RetrievalOptions
from evaluation.lib.reports import ROOT, SEED, write_arms
from scripts.run_retrieval_ablation_offline import count_documents, over_samples, provenance

CASES = ROOT / "data" / "sample_docs" / "questions.jsonl"


def main() -> None:
    cases = load(CASES)
    arm = Arm("quotes", RetrievalOptions(), note="no model: the best sentences, quoted")
    with over_samples() as services:
        outcomes = [ask_case(case, services.rag.answer) for case in cases]
        experiment = answers_experiment(
            "sample questions",
            cases,
            [arm],
            [outcomes],
            seed=SEED,
            documents=count_documents(services),
        )
        made = provenance(services, [experiment])
    wrong = [
        case.question for case, row in zip(cases, outcomes, strict=True) if not row.values["right"]
    ]
    report = report_of(
        "Answers to the question file of the sample documents, without a model",
        made,
        (experiment,),
        (f"Not right: {'; '.join(wrong) or 'none'}.",),
    )
    write_arms(report, "answers")


if __name__ == "__main__":
    main()
