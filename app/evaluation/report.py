"""Write an evaluation as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from app.evaluation.runner import ArmResult, Experiment
from app.evaluation.statistics import PairedComparison


@dataclass(frozen=True, slots=True)
class Provenance:
    """A report's inputs; runs with equal inputs give equal JSON except `timings`."""

    git_sha: str
    settings_hash: str
    """Of everything the arms were run with; see `settings_hash`."""
    fingerprint: str
    """Of the index: model, chunker, analyzer."""
    models: Mapping[str, str]
    """Digest by model name."""
    seed: int

    def in_words(self) -> str:
        """Return the known inputs in one line, without unknown ones.

        Commit, index or model may be unknown.
        """
        models = ", ".join(f"{name} {digest[:12]}".strip() for name, digest in self.models.items())
        known = (
            ("git", self.git_sha[:12]),
            ("settings", self.settings_hash),
            ("index", self.fingerprint),
            ("models", models),
            ("seed", str(self.seed)),
        )
        return ", ".join(f"{name} {value}" for name, value in known if value)


@dataclass(frozen=True, slots=True)
class Report:
    """Experiments under one title."""

    title: str
    provenance: Provenance
    experiments: tuple[Experiment, ...]
    remarks: tuple[str, ...] = ()
    """Sentences that say what was decided."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Named numbers besides the arms' measures."""


def settings_hash(experiments: Sequence[Experiment]) -> str:
    """Return 16 hex digits of the SHA-256 of all arms' settings."""
    arms = [[asdict(result.arm) for result in experiment.results] for experiment in experiments]
    return hashlib.sha256(json.dumps(arms, sort_keys=True, default=str).encode()).hexdigest()[:16]


ANSWER = "answer"
"""Stands for the answer itself among the passages of a question."""
SEPARATOR = " · "
"""Between a passage's name and what tells it from another of the same document."""
_SHOWN, _PREVIEW = 5, 240  # passages per question and arm in a JSON report, characters of each


def to_json(report: Report, *, passages: bool = False) -> str:
    """Return the report with all outcomes; only the key `timings` varies.

    Args:
        report: What was found.
        passages: Add the questions' texts and the beginnings of the passages that each arm found,
            for a scorecard.
    """
    content = {
        "title": report.title,
        "provenance": asdict(report.provenance),
        "remarks": list(report.remarks),
        "figures": dict(report.figures),
        "experiments": [
            _experiment(experiment) | (_scorecard(experiment) if passages else {})
            for experiment in report.experiments
        ],
        "timings": {
            experiment.collection: {
                result.arm.name: {
                    "p50_ms": result.latency_ms(0.5),
                    "p95_ms": result.latency_ms(0.95),
                    "stages_p50_ms": result.stage_ms(),
                }
                for result in experiment.results
            }
            for experiment in report.experiments
        },
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _experiment(experiment: Experiment) -> dict[str, object]:
    return {
        "collection": experiment.collection,
        "questions": len(experiment.questions),
        "passages": experiment.passages,
        "baseline": experiment.baseline,
        "measure": experiment.measure,
        "arms": [
            {
                "name": result.arm.name,
                "settings": asdict(result.arm),
                "measures": {m: asdict(interval) for m, interval in result.intervals.items()},
                "grounded_rate": result.grounded_rate,
                "overlap_with_baseline": result.overlap,
                "per_question": result.values[experiment.measure],
            }
            for result in experiment.results
        ],
        "comparisons": [asdict(comparison) for comparison in experiment.comparisons],
    }


def _scorecard(experiment: Experiment) -> dict[str, object]:
    """The questions in words, and what each arm found; every passage's beginning once."""
    previews: dict[str, str] = {}
    found: dict[str, dict[str, list[str]]] = {}
    for result in experiment.results:
        found[result.arm.name] = {}
        for question, own in result.found.items():
            names = []
            for rank, (passage, text) in enumerate(
                zip(own.passages[:_SHOWN], own.texts[:_SHOWN], strict=True), start=1
            ):
                short = text[:_PREVIEW] + ("…" if len(text) > _PREVIEW else "")
                name = passage
                if previews.setdefault(passage, short) != short:
                    name = SEPARATOR.join((passage, result.arm.name, question, str(rank)))
                    previews[name] = short
                names.append(name)
            found[result.arm.name][question] = names
    relevant = {question: list(passages) for question, passages in experiment.relevant.items()}
    return {
        "question_texts": dict(experiment.questions),
        "relevant": relevant,
        "found": found,
        "previews": previews,
    }


_COLUMNS = (
    "collection",
    "arm",
    "questions",
    "measure",
    "mean",
    "low",
    "high",
    "difference",
    "p_holm",
    "verdict",
    "p50_ms",
    "p95_ms",
)


def to_csv(report: Report) -> str:
    """Return one row per collection, arm and measure."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for experiment in report.experiments:
        compared = {comparison.arm: comparison for comparison in experiment.comparisons}
        for result in experiment.results:
            for measure, interval in result.intervals.items():
                comparison = (
                    compared.get(result.arm.name) if measure == experiment.measure else None
                )
                rows.writerow(
                    [
                        experiment.collection, result.arm.name, len(experiment.questions), measure,
                        f"{interval.mean:.4f}", f"{interval.low:.4f}", f"{interval.high:.4f}",
                        f"{comparison.difference.mean:+.4f}" if comparison else "",
                        f"{comparison.p_holm:.4f}" if comparison else "",
                        comparison.verdict if comparison else "",
                        f"{result.latency_ms(0.5):.2f}", f"{result.latency_ms(0.95):.2f}",
                    ]
                )  # fmt: skip
    return out.getvalue()


def to_markdown(report: Report) -> str:
    """Return the report as tables, the verdicts in words."""
    made = report.provenance
    lines = [f"# {report.title}", ""]
    lines += [*report.remarks, ""] if report.remarks else []
    for experiment in report.experiments:
        lines += [*_table(experiment), ""]
    if report.figures:
        lines += [
            "| figure | value |",
            "|---|---|",
            *(f"| {name} | {value:.4g} |" for name, value in report.figures.items()),
            "",
        ]
    lines.append(
        f"Made from {made.in_words()}."
        " Overlap is the mean Jaccard similarity with the baseline's passages."
        " Intervals are 95 % paired bootstrap, p-values paired permutation tests with Holm's"
        " correction."
    )
    return "\n".join(lines) + "\n"


def _table(experiment: Experiment) -> list[str]:
    measures = list(experiment.results[0].intervals)
    compared = {comparison.arm: comparison for comparison in experiment.comparisons}
    has_answers = experiment.results[0].grounded_rate is not None
    columns = [
        "arm",
        *measures,
        *(["grounded"] if has_answers else []),
        "overlap",
        f"against {experiment.baseline}",
        "p (Holm)",
        "p50 ms",
        "p95 ms",
    ]
    lines = [
        f"## {experiment.collection}: {len(experiment.questions)} questions, {experiment.passages}"
        " documents",
        "",
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
    ]
    lines += [
        _row(result, measures, compared.get(result.arm.name), has_answers=has_answers)
        for result in experiment.results
    ]
    lines += ["", *(f"- {name}: {comparison.verdict}" for name, comparison in compared.items())]
    return lines


def _row(
    result: ArmResult,
    measures: Sequence[str],
    comparison: PairedComparison | None,
    *,
    has_answers: bool,
) -> str:
    cells = [result.arm.name, *(f"{result.intervals[measure].mean:.4f}" for measure in measures)]
    if has_answers:
        cells.append(f"{result.grounded_rate or 0.0:.3f}")
    cells.append(f"{result.overlap:.2f}")
    if comparison:
        difference = comparison.difference
        cells += [
            f"{difference.mean:+.4f} [{difference.low:+.4f}, {difference.high:+.4f}]",
            f"{comparison.p_holm:.4f}",
        ]
    else:
        cells += ["", ""]
    return (
        "| "
        + " | ".join([*cells, f"{result.latency_ms(0.5):.1f}", f"{result.latency_ms(0.95):.1f}"])
        + " |"
    )
