"""Choose the title's weight in BM25 on even lines; report on odd ones.

    python -m evaluation.studies.titles [--data DIR] [--questions N]

The title is a separate field of the index. Writes evaluation/reports/titles.{md,csv,json}.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.core.types import Library
from app.evaluation.arms import Arm, plain
from app.evaluation.collections import Collection, Parity, from_folder
from app.evaluation.report import Provenance, Report, settings_hash
from app.evaluation.runner import Experiment, RankedPassages, run
from app.retrieval.options import RetrievalOptions
from evaluation.lib.workbench import SEED, arguments, indexed, say, write

COLLECTIONS = ("squad", "cranfield", "pubmedqa")
BOOSTS = (0.0, 1.0, 2.0)
SHIPPED = 1.0


def main() -> None:
    """Run the study and write its report."""
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--questions", type=int, default=100, help="most questions per collection and half"
    )
    given = parser.parse_args()
    halves: tuple[Parity, ...] = ("even", "odd")
    experiments: dict[Parity, list[Experiment]] = {half: [] for half in halves}
    provenance: Provenance | None = None
    for name in COLLECTIONS:
        judged = from_folder(given.data / name).judged()
        asked = {half: judged.half(half).sample(given.questions, SEED) for half in halves}
        found: dict[tuple[str, str], RankedPassages] = {}
        for boost in BOOSTS:
            with indexed({Library.PUBLIC: [judged]}, given.cache, boost=boost) as bench:
                provenance = bench.provenance()
                search = bench.search(Library.PUBLIC)
                for arm in _arms(boost):
                    for half in halves:
                        found |= {
                            (arm.name, q.text): search(arm, q.text, 10)
                            for q in asked[half].questions
                        }
            say(f"{name}: title weighs {boost}")
        for half in halves:
            experiments[half].append(_experiment(asked[half], found))
    if provenance is None:
        raise SystemExit("no collection was run")
    reported = tuple(experiments["odd"])
    means = {
        arm: float(np.mean([e.result(arm).intervals["nDCG@10"].mean for e in experiments["even"]]))
        for arm in (a.name for boost in BOOSTS for a in _arms(boost))
    }
    choices = "; ".join(
        f"{name} {mean:.4f}" for name, mean in sorted(means.items(), key=lambda item: -item[1])
    )
    report = Report(
        "The title as a field of BM25: how much it should weigh",
        replace(provenance, settings_hash=settings_hash(reported)),
        reported,
        (
            f"In use: {SHIPPED}; the text weighs 1. Odd lines, at most {given.questions} questions"
            " per collection.",
            f"Even lines (mean nDCG@10 over the collections): {choices}.",
        ),
    )
    write(report, "titles")


def _arms(boost: float) -> list[Arm]:
    return [
        replace(plain("bm25", "lexical"), name=f"bm25, title {boost}"),
        Arm(f"default, title {boost}", RetrievalOptions()),
    ]


def _experiment(collection: Collection, found: dict[tuple[str, str], RankedPassages]) -> Experiment:
    def recalled(arm: Arm, question: str, top_k: int) -> RankedPassages:
        del top_k
        return found[arm.name, question]

    arms = [arm for boost in BOOSTS for arm in _arms(boost)]
    return run(collection, arms, recalled, baseline=f"default, title {SHIPPED}", seed=SEED)


if __name__ == "__main__":
    main()
