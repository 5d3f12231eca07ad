"""An evaluation as one HTML file: charts as inline SVG, no script, nothing from outside."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

from app.evaluation.report import Report, to_json

_WIDTH, _ROW_HEIGHT = 460, 26  # of a chart, in pixels
_QUESTIONS = 40
"""Questions shown in a scorecard: those on which the arms differ most."""

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:68rem;padding:0 1rem;color:#1c2330;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .7rem;border-bottom:1px solid #d8dde6;text-align:right}"
    "th:first-child,td:first-child{text-align:left}.charts{display:flex;flex-wrap:wrap;gap:2rem}summary{cursor:pointer}"
    "details{border-bottom:1px solid #e6e9ef;padding:.3rem 0}li{margin:.2rem 0}li.hit{font-weight:600}small{color:#5a6475}"
)


Content = Mapping[str, Any]
"""A part of a JSON report with passages."""


def to_html(report: Report) -> str:
    """Return the whole page: per collection two charts, the verdicts, and a scorecard with the passages."""
    return page_of(json.loads(to_json(report, passages=True)))


def page_of(content: Content) -> str:
    """Return the page of a JSON report that was written with its passages."""
    made, title = content["provenance"], html.escape(content["title"])
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>",
        *(f"<p>{html.escape(remark)}</p>" for remark in content["remarks"]),
    ]
    for experiment in content["experiments"]:
        parts += _section(experiment, content["timings"].get(experiment["collection"], {}))
    parts.append(
        f"<p><small>git {html.escape(made['git_sha'][:12])}, settings {html.escape(made['settings_hash'])}, index"
        f" {html.escape(made['fingerprint'])}, seed {made['seed']}</small></p></body></html>"
    )
    return "".join(parts)


def _section(experiment: Content, timings: Content) -> Iterator[str]:
    rows = _rows(experiment, timings)
    measure = experiment["measure"]
    yield f"<h2>{html.escape(experiment['collection'])}</h2>"
    yield f"<p>{experiment['questions']} questions, {experiment['passages']} documents</p>"
    yield f"<div class='charts'>{_svg(_quality(rows, measure))}{_svg(_quality_by_latency(rows, measure))}</div><ul>"
    for comparison in experiment["comparisons"]:
        yield f"<li>{html.escape(comparison['arm'])}: {html.escape(comparison['verdict'])}</li>"
    yield "</ul><h3>Where the arms differ</h3>"
    yield from _scorecard(experiment)


def _rows(experiment: Content, timings: Content) -> list[dict[str, object]]:
    return [
        {"arm": arm["name"], **arm["measures"][experiment["measure"]], "p50": timings.get(arm["name"], {}).get("p50_ms", 0.0)}
        for arm in experiment["arms"]
    ]


def _quality(rows: list[dict[str, object]], measure: str) -> dict[str, object]:
    """Means with their intervals, in the order of the arms."""
    import altair as alt  # noqa: PLC0415 - the eval extra

    data = alt.Data(values=rows)
    y = alt.Y("arm:N", sort=None, title=None)
    bars = alt.Chart(data).mark_errorbar(ticks=True).encode(alt.X("low:Q", title=measure).scale(zero=False), alt.X2("high:Q"), y)
    points = alt.Chart(data).mark_point(filled=True, size=60).encode(alt.X("mean:Q").scale(zero=False), y)
    chart = alt.layer(bars, points).properties(width=_WIDTH, height=_ROW_HEIGHT * len(rows), title="Quality, 95 % intervals")
    spec: dict[str, object] = chart.to_dict()
    return spec


def _quality_by_latency(rows: list[dict[str, object]], measure: str) -> dict[str, object]:
    """Mean against median time, one labelled point per arm."""
    import altair as alt  # noqa: PLC0415 - the eval extra

    data = alt.Data(values=rows)
    base = alt.Chart(data).encode(
        alt.X("p50:Q", title="median search time, ms").scale(type="log"),
        alt.Y("mean:Q", title=measure).scale(zero=False),
    )
    labels = base.mark_text(align="left", dx=7).encode(text="arm:N")
    chart = alt.layer(base.mark_point(filled=True, size=60), labels).properties(
        width=_WIDTH, height=_ROW_HEIGHT * len(rows), title="Quality against time"
    )
    spec: dict[str, object] = chart.to_dict()
    return spec


def _svg(spec: dict[str, object]) -> str:
    """Render a Vega-Lite chart offline."""
    import vl_convert  # noqa: PLC0415 - the eval extra, 40 MB

    drawn: str = vl_convert.vegalite_to_svg(spec)
    return drawn


def _scorecard(experiment: Content) -> Iterator[str]:
    """The questions on which the arms differ most, each arm's value and passages."""
    arms = experiment["arms"]

    def spread(question: str) -> float:
        values = [float(arm["per_question"].get(question, 0.0)) for arm in arms]
        return max(values) - min(values)

    texts = experiment["question_texts"]
    for question in sorted(texts, key=lambda question: (-spread(question), question))[:_QUESTIONS]:
        marks = " ".join(f"{html.escape(arm['name'])} {arm['per_question'].get(question, 0.0):.2f}" for arm in arms)
        yield f"<details><summary>{html.escape(texts[question])} <small>{marks}</small></summary>"
        for arm in arms:
            yield f"<h4>{html.escape(arm['name'])}</h4><ol>"
            for passage in experiment["found"][arm["name"]].get(question, ()):
                mark = " class='hit'" if passage in experiment["relevant"].get(question, ()) else ""
                preview = html.escape(experiment["previews"].get(passage, ""))
                yield f"<li{mark}><small>{html.escape(passage)}</small> {preview}</li>"
            yield "</ol>"
        yield "</details>"
