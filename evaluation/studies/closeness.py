"""Measure how well closeness tells on-topic from off-topic questions.

Area under the curve, threshold, cost.

    python -m evaluation.studies.closeness [--data DIR] [--questions N]

Every collection in turn is the library, and is asked its own questions and those of the others. The
curve is fitted on even lines and everything is reported on odd ones. Writes
evaluation/reports/closeness.{md,json}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.core.trace import Trace
from app.core.types import Hit, Library
from app.evaluation.collections import Collection, Parity, TestQuestion, from_folder
from app.evaluation.metrics import area_under_curve
from app.retrieval.pipeline import Retriever
from app.retrieval.reading import closeness
from app.retrieval.request import RetrievalOptions, SearchRequest
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, indexed, say, write_figures

COLLECTIONS = ("squad", "cranfield", "pubmedqa")
TOP_K = 5  # what an answer reads by default


@dataclass(frozen=True, slots=True)
class Signals:
    """The closest hit of one question by each signal."""

    similarity: float
    overlap: float
    closeness: float
    gold: float | None
    """Closeness of the best relevant hit among ten; None for questions of another subject, or
    when none was found."""


Asked = dict[tuple[str, str, Parity], list[Signals]]
"""By library, question set and half."""


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--questions", type=int, default=250, help="most questions per library, collection and half"
    )
    given = parser.parse_args()
    collections = {name: from_folder(given.data / name) for name in COLLECTIONS}
    asked: Asked = {}
    for name, collection in collections.items():
        with indexed({Library.PUBLIC: [collection]}, given.cache) as bench:
            ask = _asker(bench.retriever(RetrievalOptions()), collection, bench.passage_of)
            for other, questions in collections.items():
                for parity in ("even", "odd"):
                    drawn = questions.judged().half(parity).sample(given.questions, SEED).questions
                    asked[name, other, parity] = [ask(question) for question in drawn]
            unanswerable = tuple(q for q in collection.questions if not q.answerable)
            if unanswerable:
                drawn = (
                    replace(collection, questions=unanswerable)
                    .half("odd")
                    .sample(given.questions, SEED)
                    .questions
                )
                asked[name, "unanswerable", "odd"] = [ask(question) for question in drawn]
            say(f"{name}: done")
            made = replace(bench.provenance(), settings_hash=hash_of(RetrievalOptions()))
    lines, figures = _report(asked)
    write_figures(
        Figures("Closeness: is this question about the library?", made, figures, tables=lines),
        "closeness",
    )


def _asker(
    retriever: Retriever, collection: Collection, passage_of: dict[str, str]
) -> Callable[[TestQuestion], Signals]:
    def ask(question: TestQuestion) -> Signals:
        request = SearchRequest(question.text, Library.PUBLIC, top_k=10, keep_weak=True)
        hits = retriever.retrieve(request, Trace()).hits
        relevant = collection.relevance.get(question.id, {})
        gold = [
            _closeness(hit)
            for hit in hits
            if relevant.get(passage_of[hit.passage.document.doc_id], 0) > 0
        ]
        read = hits[:TOP_K]
        return Signals(
            max((_similarity(hit) for hit in read), default=-1.0),
            max((hit.signals.overlap or 0.0 for hit in read), default=0.0),
            max((_closeness(hit) for hit in read), default=-0.5),
            gold[0] if gold else None,
        )

    return ask


def _similarity(hit: Hit) -> float:
    return (
        1.0 - hit.signals.dense if hit.signals.dense is not None else -1.0
    )  # every passage here has a vector


def _closeness(hit: Hit) -> float:
    return closeness(_similarity(hit), hit.signals.overlap or 0.0)


def _report(asked: Asked) -> tuple[list[str], dict[str, float]]:
    midpoint, slope = _fit(asked)
    options = RetrievalOptions()
    figures = {"fitted midpoint (even lines)": midpoint, "fitted slope (even lines)": slope}
    lines = [
        f"Logistic curve of closeness fitted on even lines: midpoint {midpoint:.3f}, slope"
        f" {slope:.1f}. In use: midpoint"
        f" {options.confidence_midpoint}, slope {options.confidence_slope}; cutoff of a hit"
        f" {options.closeness_threshold}."
        " Below: odd lines.",
        "",
        "| library | asked | AUC similarity | AUC overlap | AUC closeness | abstains | own"
        " questions kept | gold passages kept |",
        "|---|---|---|---|---|---|---|---|",
    ]
    threshold = options.closeness_threshold
    for (library, other, parity), foreign in asked.items():
        if parity != "odd" or other == library:
            continue
        own = asked[library, library, "odd"]
        gold = [signals.gold for signals in own if signals.gold is not None]
        areas = [
            area_under_curve([getattr(s, name) for s in own], [getattr(s, name) for s in foreign])
            for name in ("similarity", "overlap", "closeness")
        ]
        abstains = _share(foreign, lambda s: s.closeness < threshold)
        kept, gold_kept = (
            _share(own, lambda s: s.closeness >= threshold),
            sum(g >= threshold for g in gold) / len(gold),
        )
        figures[f"{library} asked {other}: AUC closeness"] = areas[2]
        figures[f"{library} asked {other}: abstains"] = abstains
        figures[f"{library}: own questions kept"] = kept
        cells = [f"{value:.3f}" for value in (*areas, abstains, kept, gold_kept)]
        lines.append(f"| {library} | {other} | " + " | ".join(cells) + " |")
    error = _calibration_error(asked, options)
    figures["expected calibration error (odd lines, balanced)"] = error
    lines += [
        "",
        "Expected calibration error of the confidence in use, own and foreign weighing the same:"
        f" {error:.3f} (ten bins).",
        "",
        "The unanswerable questions of squad are asked about a passage that exists and lacks the"
        " answer: retrieval scores tell"
        " little there, and nothing is promised.",
        "",
    ]
    return lines, figures


def _share(rows: Sequence[Signals], holds: Callable[[Signals], bool]) -> float:
    return sum(map(holds, rows)) / len(rows)


def _weighted(asked: Asked, parity: Parity) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return closeness, label and weight of a half's questions, own and foreign balanced."""
    x, y, w = [], [], []
    for (library, other, half), rows in asked.items():
        if half == parity and other != "unanswerable":
            own = library == other
            x += [s.closeness for s in rows]
            y += [float(own)] * len(rows)
            w += [(1.0 if own else 1.0 / (len(COLLECTIONS) - 1)) / len(rows)] * len(rows)
    return np.array(x), np.array(y), np.array(w) / np.sum(w)


def _fit(asked: Asked) -> tuple[float, float]:
    """Fit the logistic curve by Newton's method: maximum likelihood, with the least ridge."""
    x, y, w = _weighted(asked, "even")
    columns = np.c_[np.ones(len(x)), x]
    beta = np.zeros(2)
    for _ in range(100):
        p = 1 / (1 + np.exp(-columns @ beta))
        gradient = columns.T @ (w * (p - y)) + 1e-6 * beta
        curvature = (columns * (w * p * (1 - p))[:, None]).T @ columns + 1e-6 * np.eye(2)
        beta -= np.linalg.solve(curvature, gradient)
    return float(-beta[0] / beta[1]), float(beta[1])


def _calibration_error(asked: Asked, options: RetrievalOptions, bins: int = 10) -> float:
    """Return the mean gap of confidence and outcome (Naeini et al., AAAI 2015)."""
    x, y, w = _weighted(asked, "odd")
    p = 1 / (1 + np.exp(-options.confidence_slope * (x - options.confidence_midpoint)))
    place = np.minimum((p * bins).astype(int), bins - 1)
    return float(
        sum(abs(np.sum(w[place == b] * (p[place == b] - y[place == b]))) for b in range(bins))
    )


if __name__ == "__main__":
    main()
