"""Write an evaluation as one HTML file: inline SVG charts, no script.

Nothing is loaded from outside.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

from app.evaluation.charts import Point, quality, quality_by_time
from app.evaluation.report import Provenance, Report, to_json

_QUESTIONS = 40
"""Questions shown in a scorecard: those on which the arms differ most."""

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:68rem;padding:0"
    " 1rem;color:#1c2330;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{padding:.25rem .7rem;border-bottom:1px"
    " solid #d8dde6;text-align:right}"
    "th:first-child,td:first-child{text-align:left}.charts{display:flex;flex-wrap:wrap;gap:2rem}summary{cursor:pointer}"
    "details{border-bottom:1px solid #e6e9ef;padding:.3rem 0}li{margin:.2rem"
    " 0}li.hit{font-weight:600}small{color:#5a6475}"
)


Content = Mapping[str, Any]
"""A part of a JSON report with passages."""


def to_html(report: Report) -> str:
    """Return the page: two charts per collection, verdicts, and a scorecard.

    The scorecard shows passages.
    """
    return page_of(json.loads(to_json(report, passages=True)))


def page_of(content: Content) -> str:
    """Return the page of a JSON report that was written with its passages."""
    made, title = content["provenance"], html.escape(content["title"])
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport'"
        " content='width=device-width'>",
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>",
        *(f"<p>{html.escape(remark)}</p>" for remark in content["remarks"]),
    ]
    for experiment in content["experiments"]:
        parts += _section(experiment, content["timings"].get(experiment["collection"], {}))
    parts.append(
        f"<p><small>{html.escape(Provenance(**made).in_words())}</small></p></body></html>"
    )
    return "".join(parts)


def _section(experiment: Content, timings: Content) -> Iterator[str]:
    points = _points(experiment, timings)
    measure = experiment["measure"]
    yield f"<h2>{html.escape(experiment['collection'])}</h2>"
    yield f"<p>{experiment['questions']} questions, {experiment['passages']} documents</p>"
    yield (
        "<div"
        f" class='charts'>{quality(points, measure)}{quality_by_time(points, measure)}</div><ul>"
    )
    for comparison in experiment["comparisons"]:
        yield f"<li>{html.escape(comparison['arm'])}: {html.escape(comparison['verdict'])}</li>"
    yield "</ul><h3>Where the arms differ</h3>"
    yield from _scorecard(experiment)


def _points(experiment: Content, timings: Content) -> list[Point]:
    return [
        Point(
            arm["name"],
            p50_ms=timings.get(arm["name"], {}).get("p50_ms", 0.0),
            **arm["measures"][experiment["measure"]],
        )
        for arm in experiment["arms"]
    ]


def _scorecard(experiment: Content) -> Iterator[str]:
    """The questions on which the arms differ most, each arm's value and passages."""
    arms = experiment["arms"]

    def spread(question: str) -> float:
        values = [float(arm["per_question"].get(question, 0.0)) for arm in arms]
        return max(values) - min(values)

    texts = experiment["question_texts"]
    for question in sorted(texts, key=lambda question: (-spread(question), question))[:_QUESTIONS]:
        marks = " ".join(
            f"{html.escape(arm['name'])} {arm['per_question'].get(question, 0.0):.2f}"
            for arm in arms
        )
        yield f"<details><summary>{html.escape(texts[question])} <small>{marks}</small></summary>"
        for arm in arms:
            yield f"<h4>{html.escape(arm['name'])}</h4><ol>"
            for passage in experiment["found"][arm["name"]].get(question, ()):
                mark = " class='hit'" if passage in experiment["relevant"].get(question, ()) else ""
                preview = html.escape(experiment["previews"].get(passage, ""))
                yield f"<li{mark}><small>{html.escape(passage)}</small> {preview}</li>"
            yield "</ol>"
        yield "</details>"
