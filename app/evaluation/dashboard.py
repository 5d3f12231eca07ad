"""An evaluation as one HTML file: charts as inline SVG, no script, nothing from outside."""

from __future__ import annotations

import html
from collections.abc import Iterator

from app.evaluation.report import Report
from app.evaluation.runner import ArmResult, Experiment

_WIDTH, _ROW_HEIGHT = 460, 26  # of a chart, in pixels
_QUESTIONS = 40
"""Questions shown in a scorecard: those on which the arms differ most."""

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:68rem;padding:0 1rem;color:#1c2330;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .7rem;border-bottom:1px solid #d8dde6;text-align:right}"
    "th:first-child,td:first-child{text-align:left}.charts{display:flex;flex-wrap:wrap;gap:2rem}summary{cursor:pointer}"
    "details{border-bottom:1px solid #e6e9ef;padding:.3rem 0}li{margin:.2rem 0}li.hit{font-weight:600}small{color:#5a6475}"
)


def to_html(report: Report) -> str:
    """Return the whole page: per collection two charts, the verdicts, and a scorecard with the passages."""
    made = report.provenance
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        f"<title>{html.escape(report.title)}</title><style>{_STYLE}</style></head><body><h1>{html.escape(report.title)}</h1>",
        *(f"<p>{html.escape(remark)}</p>" for remark in report.remarks),
    ]
    for experiment in report.experiments:
        parts += _section(experiment)
    parts.append(
        f"<p><small>git {html.escape(made.git_sha[:12])}, settings {html.escape(made.settings_hash)}, index"
        f" {html.escape(made.fingerprint)}, seed {made.seed}</small></p></body></html>"
    )
    return "".join(parts)


def _section(experiment: Experiment) -> Iterator[str]:
    yield f"<h2>{html.escape(experiment.collection)}</h2>"
    yield f"<p>{len(experiment.questions)} questions, {experiment.passages} documents</p>"
    yield f"<div class='charts'>{_svg(_quality(experiment))}{_svg(_quality_by_latency(experiment))}</div><ul>"
    for comparison in experiment.comparisons:
        yield f"<li>{html.escape(comparison.arm)}: {html.escape(comparison.verdict)}</li>"
    yield "</ul><h3>Where the arms differ</h3>"
    yield from _scorecard(experiment)


def _rows(experiment: Experiment) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for result in experiment.results:
        interval = result.intervals[experiment.measure]
        rows.append(
            {
                "arm": result.arm.name,
                "mean": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "p50": result.latency_ms(0.5),
            }
        )
    return rows


def _quality(experiment: Experiment) -> dict[str, object]:
    """Means with their intervals, in the order of the arms."""
    import altair as alt  # noqa: PLC0415 - the eval extra

    data = alt.Data(values=_rows(experiment))
    y = alt.Y("arm:N", sort=None, title=None)
    bars = (
        alt.Chart(data)
        .mark_errorbar(ticks=True)
        .encode(alt.X("low:Q", title=experiment.measure).scale(zero=False), alt.X2("high:Q"), y)
    )
    points = alt.Chart(data).mark_point(filled=True, size=60).encode(alt.X("mean:Q").scale(zero=False), y)
    chart = alt.layer(bars, points).properties(
        width=_WIDTH, height=_ROW_HEIGHT * len(experiment.results), title="Quality, 95 % intervals"
    )
    spec: dict[str, object] = chart.to_dict()
    return spec


def _quality_by_latency(experiment: Experiment) -> dict[str, object]:
    """Mean against median time, one labelled point per arm."""
    import altair as alt  # noqa: PLC0415 - the eval extra

    data = alt.Data(values=_rows(experiment))
    base = alt.Chart(data).encode(
        alt.X("p50:Q", title="median search time, ms").scale(type="log"),
        alt.Y("mean:Q", title=experiment.measure).scale(zero=False),
    )
    labels = base.mark_text(align="left", dx=7).encode(text="arm:N")
    chart = alt.layer(base.mark_point(filled=True, size=60), labels).properties(
        width=_WIDTH, height=_ROW_HEIGHT * len(experiment.results), title="Quality against time"
    )
    spec: dict[str, object] = chart.to_dict()
    return spec


def _svg(spec: dict[str, object]) -> str:
    """Render a Vega-Lite chart offline."""
    import vl_convert  # noqa: PLC0415 - the eval extra, 40 MB

    drawn: str = vl_convert.vegalite_to_svg(spec)
    return drawn


def _scorecard(experiment: Experiment) -> Iterator[str]:
    """The questions on which the arms differ most, each arm's value and passages."""

    def spread(question: str) -> float:
        values = [result.values[experiment.measure].get(question, 0.0) for result in experiment.results]
        return max(values) - min(values)

    shown = sorted(experiment.questions, key=lambda question: (-spread(question), question))[:_QUESTIONS]
    for question in shown:
        marks = " ".join(
            f"{html.escape(result.arm.name)} {result.values[experiment.measure].get(question, 0.0):.2f}"
            for result in experiment.results
        )
        yield f"<details><summary>{html.escape(experiment.questions[question])} <small>{marks}</small></summary>"
        for result in experiment.results:
            yield from _passages(result, question)
        yield "</details>"


def _passages(result: ArmResult, question: str) -> Iterator[str]:
    found = result.found[question]
    yield f"<h4>{html.escape(result.arm.name)}</h4><ol>"
    for passage, text in zip(found.passages[:5], found.texts[:5], strict=True):
        short = text[:200] + ("…" if len(text) > 200 else "")
        yield f"<li><small>{html.escape(passage)}</small> {html.escape(short)}</li>"
    yield "</ol>"
