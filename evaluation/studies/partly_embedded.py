"""Measure search with 0, 10, 50 and 100 % of the vectors present.

With and without embedding on the way.

    python -m evaluation.studies.partly_embedded [--data DIR] [--questions N]

Writes evaluation/reports/partly_embedded.{md,csv,json}. Vectors that a question makes on the way
are not kept here, so that every question meets the same share; the server keeps them.
"""

from __future__ import annotations

from dataclasses import replace

from app.core.types import Library
from app.evaluation.arms import Arm
from app.evaluation.collections import from_folder
from app.evaluation.report import report_of, settings_hash
from app.evaluation.runner import Experiment, run
from app.retrieval.request import RetrievalOptions
from evaluation.lib.workbench import SEED, arguments, indexed, say, write

SHARES = (0.0, 0.1, 0.5, 1.0)
COLLECTION = "squad"


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--questions", type=int, default=300, help="most questions")
    given = parser.parse_args()
    collection = from_folder(given.data / COLLECTION).judged().sample(given.questions, SEED)
    default = RetrievalOptions()
    arms = [
        Arm("words alone", replace(default, fusion="lexical"), note="BM25, no vectors at all"),
        Arm(
            "no budget",
            replace(default, embed_on_query_budget_ms=0),
            note="only vectors that are there",
        ),
        Arm("budget 25 ms", default, note="the server's default"),
        Arm(
            "budget 200 ms", replace(default, embed_on_query_budget_ms=200), note="for who can wait"
        ),
    ]
    experiments: list[Experiment] = []
    provenance = None
    for share in SHARES:
        with indexed({Library.PUBLIC: [collection]}, given.cache, embedded=share) as bench:
            provenance = bench.provenance()
            named = replace(collection, name=f"{COLLECTION}, {share:.0%} embedded")
            experiments.append(
                run(
                    named,
                    arms,
                    bench.search(Library.PUBLIC),
                    baseline="words alone",
                    seed=SEED,
                    progress=say,
                )
            )
    if provenance is None:
        raise SystemExit("nothing was run")
    report = report_of(
        "Partly embedded libraries",
        replace(provenance, settings_hash=settings_hash(experiments)),
        experiments,
        (
            "Chunks get vectors in the order of their documents; the rest are found by words."
            " Vectors made on the way are not kept."
            " How many are made within a budget of time depends on the machine: those arms differ"
            " a little from run to run.",
        ),
    )
    write(report, "partly_embedded")


if __name__ == "__main__":
    main()
