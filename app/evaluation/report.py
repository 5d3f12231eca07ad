"""Describe a finished evaluation, write it as JSON, CSV, Markdown and a page, and store it."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.core.errors import NotFound
from app.evaluation.metrics import Interval, ReportComparison


@dataclass(frozen=True, slots=True)
class ReportProvenance:
    """The inputs of a report."""

    # runs with equal inputs give equal JSON except `timings`
    git_sha: str
    settings_hash: str
    """Of everything the arms were run with; see `settings_hash`."""
    fingerprint: str
    """Of the index: model, chunker, analyzer."""
    models: Mapping[str, str]
    """Digest by model name."""
    seed: int

    def in_words(self) -> str:
        """Return the known inputs in one line; commit, index or model may be unknown."""
        models = ", ".join(f"{name} {digest[:12]}".strip() for name, digest in self.models.items())
        known = (
            ("git", self.git_sha[:12]),
            ("settings", self.settings_hash),
            ("index", self.fingerprint),
            ("models", models),
            ("seed", str(self.seed)),
        )
        return ", ".join(f"{name} {value}" for name, value in known if value)


class Part(BaseModel):
    """A part of a report, as the API sends it."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)


class ReportArm(Part):
    """One arm over one set of questions."""

    name: str
    settings: dict[str, object]
    measures: dict[str, Interval] = Field(description="by measure")
    grounded_rate: float | None
    overlap_with_baseline: float
    per_question: dict[str, float] = Field(description="the experiment's measure by question id")


class ReportExperiment(Part):
    """All arms over one set of questions."""

    collection: str
    questions: int
    passages: int
    baseline: str
    measure: str
    arms: list[ReportArm]
    comparisons: list[ReportComparison]
    question_texts: dict[str, str] = Field(description="by question id")
    relevant: dict[str, list[str]] = Field(
        description="judged passages by question id; doc_ids for your own documents"
    )
    found: dict[str, dict[str, list[str]]] = Field(
        description="passages by arm and question id, best first; the first are keys of `previews`"
    )
    previews: dict[str, str] = Field(description="the beginning of each passage")


class ArmTimings(Part):
    """Duration of an arm's searches, in milliseconds."""

    p50_ms: float
    p95_ms: float
    stages_p50_ms: dict[str, float]


class EvaluationReport(Part):
    """A finished report."""

    title: str
    provenance: ReportProvenance
    remarks: list[str]
    figures: dict[str, float]
    experiments: list[ReportExperiment]
    timings: dict[str, dict[str, ArmTimings]] = Field(description="by collection and arm")


ANSWER = "answer"
"""Stands for the answer itself among the passages of a question."""
SEPARATOR = " · "
"""Between a passage's name and what tells it from another of the same document."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """All arms over one set of questions, as reported, and how long their searches took."""

    shown: ReportExperiment
    timings: Mapping[str, ArmTimings]

    def arm(self, name: str) -> ReportArm:
        """Return an arm by name.

        Raises:
            KeyError: No such arm.
        """
        return {arm.name: arm for arm in self.shown.arms}[name]


def settings_hash(experiments: Sequence[Experiment]) -> str:
    """Return 16 hex digits of the SHA-256 of all arms' settings."""
    arms = [[arm.settings for arm in experiment.shown.arms] for experiment in experiments]
    return hashlib.sha256(json.dumps(arms, sort_keys=True, default=str).encode()).hexdigest()[:16]


def report_of(
    title: str,
    provenance: ReportProvenance,
    experiments: Sequence[Experiment],
    remarks: Sequence[str] = (),
    figures: Mapping[str, float] | None = None,
) -> EvaluationReport:
    return EvaluationReport(
        title=title,
        provenance=provenance,
        remarks=list(remarks),
        figures=dict(figures or {}),
        experiments=[experiment.shown for experiment in experiments],
        timings={one.shown.collection: dict(one.timings) for one in experiments},
    )


_BY_QUESTION: dict[str, Any] = {
    **dict.fromkeys(("question_texts", "relevant", "found", "previews"), True),
    "arms": {"__all__": {"per_question"}},
}
"""What is there for each question; a scorecard needs it, a report in the repository does not."""


def to_json(report: EvaluationReport, *, passages: bool = False) -> str:
    """Return the report; only the key `timings` varies.

    `passages` keeps each question's text and values and the beginnings of the passages that each
    arm found, for a scorecard.
    """
    left_out = None if passages else {"experiments": {"__all__": _BY_QUESTION}}
    content = report.model_dump(exclude=left_out)
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


_COLUMNS = (
    "collection", "arm", "questions", "measure", "mean", "low", "high", "difference", "p_holm",
    "verdict", "p50_ms", "p95_ms",
)  # fmt: skip


def to_csv(report: EvaluationReport) -> str:
    """Return one row per collection, arm and measure."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for experiment in report.experiments:
        compared = {comparison.arm: comparison for comparison in experiment.comparisons}
        for arm in experiment.arms:
            times = report.timings[experiment.collection][arm.name]
            for measure, interval in arm.measures.items():
                comparison = compared.get(arm.name) if measure == experiment.measure else None
                rows.writerow(
                    [
                        experiment.collection, arm.name, experiment.questions, measure,
                        f"{interval.mean:.4f}", f"{interval.low:.4f}", f"{interval.high:.4f}",
                        f"{comparison.difference.mean:+.4f}" if comparison else "",
                        f"{comparison.p_holm:.4f}" if comparison else "",
                        comparison.verdict if comparison else "",
                        f"{times.p50_ms:.2f}", f"{times.p95_ms:.2f}",
                    ]
                )  # fmt: skip
    return out.getvalue()


def to_trec(
    relevance: Mapping[str, Mapping[str, int]], runs: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, str]:
    """Return files of trec_eval by name: `qrels`, and a run for each name of `runs`.

    Args:
        relevance: Grades by question and passage; of the questions that the runs answer.
        runs: Passages by question, best first.
    """

    def column(name: str) -> str:
        return re.sub(r"\s+", "_", name)

    asked = dict.fromkeys(question for ranked in runs.values() for question in ranked)
    files = {
        "qrels": "".join(
            f"{column(question)} 0 {column(passage)} {grade}\n"
            for question in asked
            for passage, grade in relevance.get(question, {}).items()
        )
    }
    for name, ranked in runs.items():
        tag = re.sub(r"[^\w.=-]+", "_", name)
        files[f"{tag}.run"] = "".join(
            f"{column(question)} Q0 {column(passage)} {rank} {len(passages) - rank + 1} {tag}\n"
            for question, passages in ranked.items()
            for rank, passage in enumerate(passages, start=1)
        )
    return files


def to_markdown(report: EvaluationReport) -> str:
    """Return the report as tables."""
    lines = [f"# {report.title}", ""]
    lines += [*report.remarks, ""] if report.remarks else []
    for experiment in report.experiments:
        lines += [*_table(experiment, report.timings[experiment.collection]), ""]
    if report.figures:
        lines += [
            "| figure | value |",
            "|---|---|",
            *(f"| {name} | {value:.4g} |" for name, value in report.figures.items()),
            "",
        ]
    lines.append(
        f"Made from {report.provenance.in_words()}."
        " Overlap is the mean Jaccard similarity with the baseline's passages."
        " Intervals are 95 % paired bootstrap, p-values paired permutation tests with Holm's"
        " correction: over 0.05 an arm cannot be told from the baseline."
    )
    return "\n".join(lines) + "\n"


def _table(experiment: ReportExperiment, timings: Mapping[str, ArmTimings]) -> list[str]:
    first = experiment.arms[0]
    compared = {comparison.arm: comparison for comparison in experiment.comparisons}
    has_answers = first.grounded_rate is not None
    columns = [
        "arm",
        *first.measures,
        *(["grounded"] if has_answers else []),
        "overlap",
        f"against {experiment.baseline}",
        "p (Holm)",
        "p50 ms",
        "p95 ms",
    ]
    rows = []
    for arm in experiment.arms:
        against = ["", ""]
        if comparison := compared.get(arm.name):
            by = comparison.difference
            against = [
                f"{by.mean:+.4f} [{by.low:+.4f}, {by.high:+.4f}]",
                f"{comparison.p_holm:.4f}",
            ]
        times = timings[arm.name]
        rows.append(
            [
                arm.name,
                *(f"{arm.measures[measure].mean:.4f}" for measure in first.measures),
                *([f"{arm.grounded_rate or 0.0:.3f}"] if has_answers else []),
                f"{arm.overlap_with_baseline:.2f}",
                *against,
                f"{times.p50_ms:.1f}",
                f"{times.p95_ms:.1f}",
            ]
        )
    return [
        f"## {experiment.collection}: {experiment.questions} questions, {experiment.passages}"
        " documents",
        "",
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


# Draw a report's chart as inline SVG: a row per arm, its mean with the interval, its median time.

_WIDTH, _ROW, _TOP, _BOTTOM = 460, 26, 8, 40  # of the plot and of one arm in it, in pixels
_CHARACTER = 6.6  # width of a letter of 11 px, a little more than it takes
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """One arm in a chart."""

    arm: str
    mean: float
    low: float
    high: float
    p50_ms: float


def chart(points: Sequence[Point], measure: str) -> str:
    """Return a chart of means with 95 % intervals and median times, one row per arm, in order."""
    left = max(len(point.arm) for point in points) * _CHARACTER + 12
    least, most = min(point.low for point in points), max(point.high for point in points)
    height = _ROW * len(points)
    width, tall = left + _WIDTH + 90, _TOP + height + _BOTTOM

    def x(value: float) -> float:
        return (value - least) / (most - least) * _WIDTH if most > least else _WIDTH / 2

    parts = [_text(_WIDTH / 2, height + 32, f"{measure}, 95 % intervals; median time", "middle")]
    for step in range(_TICKS if most > least else 1):
        value = least + (most - least) * step / (_TICKS - 1)
        parts.append(_line(x(value), height, x(value), height + 4))
        parts.append(_text(x(value), height + 16, f"{value:.3g}", "middle"))
    for row, point in enumerate(points):
        y = _ROW * (row + 0.5)
        said = f"{point.arm}: {point.mean:.4f} ({point.low:.4f} to {point.high:.4f})"
        parts += [
            _text(-8, y + 4, point.arm, "end"),
            _line(x(point.low), y, x(point.high), y),
            f'<circle cx="{x(point.mean):.1f}" cy="{y}" r="4" fill="#4c78a8">'
            f"<title>{html.escape(said)}</title></circle>",
            _text(_WIDTH + 8, y + 4, f"{point.p50_ms:.1f} ms"),
        ]
    return (
        f'<svg role="img" width="{width:.0f}" height="{tall}" viewBox="0 0 {width:.0f} {tall}"'
        ' font-family="sans-serif" font-size="11" fill="#1c2330"><title>Quality and time</title>'
        f'<g transform="translate({left:.0f},{_TOP})"><rect width="{_WIDTH}" height="{height}"'
        f' fill="none" stroke="#d8dde6"/>{"".join(parts)}</g></svg>'
    )


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1}" y2="{y2}" stroke="#1c2330"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


# Write an evaluation as one HTML file without scripts.

_QUESTIONS = 40
"""Questions shown in a scorecard: those on which the arms differ most."""

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:68rem;padding:0"
    " 1rem;color:#1c2330;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .7rem;border-bottom:1px"
    " solid #d8dde6;text-align:right}"
    "th:first-child,td:first-child{text-align:left}"
    "summary{cursor:pointer}"
    "details{border-bottom:1px solid #e6e9ef;padding:.3rem 0}li{margin:.2rem"
    " 0}li.hit{font-weight:600}small{color:#5a6475}"
)


def to_html(report: EvaluationReport) -> str:
    """Return the page: a chart per collection, verdicts, and a scorecard with passages."""
    title = html.escape(report.title)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport'"
        " content='width=device-width'>",
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>",
        *(f"<p>{html.escape(remark)}</p>" for remark in report.remarks),
    ]
    for experiment in report.experiments:
        parts += _section(experiment, report.timings.get(experiment.collection, {}))
    parts.append(f"<p><small>{html.escape(report.provenance.in_words())}</small></p></body></html>")
    return "".join(parts)


def _section(experiment: ReportExperiment, timings: Mapping[str, ArmTimings]) -> Iterator[str]:
    measure = experiment.measure
    points = []
    for arm in experiment.arms:
        found = arm.measures[measure]
        ms = timings[arm.name].p50_ms if arm.name in timings else 0.0
        points.append(Point(arm.name, found.mean, found.low, found.high, ms))
    yield f"<h2>{html.escape(experiment.collection)}</h2>"
    yield f"<p>{experiment.questions} questions, {experiment.passages} documents</p>"
    yield f"{chart(points, measure)}<ul>"
    for comparison in experiment.comparisons:
        yield f"<li>{html.escape(comparison.arm)}: {html.escape(comparison.verdict)}</li>"
    yield "</ul><h3>Where the arms differ</h3>"

    def spread(question: str) -> float:
        values = [arm.per_question.get(question, 0.0) for arm in experiment.arms]
        return max(values) - min(values)

    texts = experiment.question_texts
    for question in sorted(texts, key=lambda question: (-spread(question), question))[:_QUESTIONS]:
        marks = " ".join(
            f"{html.escape(arm.name)} {arm.per_question.get(question, 0.0):.2f}"
            for arm in experiment.arms
        )
        yield f"<details><summary>{html.escape(texts[question])} <small>{marks}</small></summary>"
        for arm in experiment.arms:
            yield f"<h4>{html.escape(arm.name)}</h4><ol>"
            for passage in experiment.found[arm.name].get(question, ()):
                if passage not in experiment.previews:
                    continue
                mark = " class='hit'" if passage in experiment.relevant.get(question, ()) else ""
                preview = html.escape(experiment.previews.get(passage, ""))
                yield f"<li{mark}><small>{html.escape(passage)}</small> {preview}</li>"
            yield "</ol>"
        yield "</details>"


# Store finished reports, one folder each; purge quotes of purged documents.

Format = Literal["json", "md", "csv", "html"]
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OUTCOMES = "outcomes.jsonl"


@dataclass(frozen=True, slots=True)
class EvaluationSummary:
    """A finished report in the list."""

    id: Annotated[str, Field(description="id id of the job that made it")]
    title: str
    created_at: str


class ReportArchive:
    """Reports under one folder; each is written whole before it is listed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def outcomes(self, report_id: str) -> Path:
        """Return where the outcomes of a run are kept until its report is made."""
        folder = self._folder / report_id
        folder.mkdir(parents=True, exist_ok=True)
        return folder / _OUTCOMES

    def save(
        self, report_id: str, report: EvaluationReport, created_at: str, *, own_documents: bool
    ) -> EvaluationSummary:
        """Write a report; on return it is listed and its outcomes are gone.

        The id is that of the job, the time UTC in ISO 8601. With `own_documents`, passages are of
        the libraries, named by doc_id, so that `forget` looks at them.
        """
        folder = self._folder / report_id
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / "report.json", to_json(report, passages=True))
        row = {"title": report.title, "created_at": created_at, "own_documents": own_documents}
        _replace(folder / "entry.json", json.dumps(row))
        (folder / _OUTCOMES).unlink(missing_ok=True)
        return EvaluationSummary(report_id, report.title, created_at)

    def list(self) -> list[EvaluationSummary]:
        found = []
        for path in self._folder.glob("*/entry.json"):
            row = json.loads(path.read_text(encoding="utf-8"))
            found.append(EvaluationSummary(path.parent.name, row["title"], row["created_at"]))
        return sorted(found, key=lambda entry: (entry.created_at, entry.id), reverse=True)

    def text(self, report_id: str, kind: Format) -> str:
        """Return a report in one format.

        Raises:
            NotFound: There is no finished report of this id.
        """
        report = self.read(report_id)
        if kind == "json":
            return to_json(report, passages=True)
        return {"md": to_markdown, "csv": to_csv, "html": to_html}[kind](report)

    def read(self, report_id: str) -> EvaluationReport:
        """Return a finished report.

        Raises:
            NotFound: There is none of this id.
        """
        folder = self._folder / report_id
        if not _ID.fullmatch(report_id) or not (folder / "entry.json").is_file():
            raise NotFound(
                f"no evaluation report {report_id!r}; a run has one when its job is done"
            )
        return EvaluationReport.model_validate_json((folder / "report.json").read_bytes())

    def forget(self, alive: Callable[[str], bool]) -> int:
        """Remove what reports quote of deleted documents; return the number of texts.

        Scores stay: they say nothing of a text. Outcomes of runs that have not ended go too; those
        are asked again.
        """
        for path in self._folder.glob(f"*/{_OUTCOMES}"):
            path.unlink(missing_ok=True)
        gone = 0
        for entry in self._folder.glob("*/entry.json"):
            if json.loads(entry.read_text(encoding="utf-8"))["own_documents"]:
                report = self.read(entry.parent.name)
                removed = sum(_redact(experiment, alive) for experiment in report.experiments)
                if removed:
                    _replace(entry.with_name("report.json"), to_json(report, passages=True))
                gone += removed
        return gone


def _redact(experiment: ReportExperiment, alive: Callable[[str], bool]) -> int:
    """Empty previews and questions of deleted documents; return how many had text."""
    previews, texts = experiment.previews, experiment.question_texts
    document = {name: name.partition(SEPARATOR)[0] for name in previews}
    answers = {name for name, doc_id in document.items() if doc_id == ANSWER}
    dead = {name for name in previews if name not in answers and not alive(document[name])}
    for by_question in experiment.found.values():
        for names in by_question.values():
            if dead.intersection(names):
                dead |= answers.intersection(names)  # an answer quotes what it was made of
    asked = {
        question
        for question, documents in experiment.relevant.items()
        if not all(map(alive, documents))
    }
    removed = sum(previews[name] != "" for name in dead) + sum(
        texts[question] != "" for question in asked
    )
    previews.update(dict.fromkeys(dead, ""))
    texts.update(dict.fromkeys(asked, ""))
    return removed


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
