"""Rows of the study to tables: every share with its count and its 95 % interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

import numpy as np

from app.evaluation.metrics import Interval, bootstrap_interval, per_question
from evaluation.lib.models.asking import Row, Task

Relevance = Mapping[str, Mapping[str, int]]
Done = Sequence[tuple[Task, Row]]
"""Tasks with their rows."""
MEASURE = "nDCG@10"
_RESAMPLES = 2000
_SEED = 7


def strategies(
    done: Done, relevance: Mapping[str, Relevance]
) -> tuple[list[str], dict[str, float]]:
    """Return the table and figures of strategies against the baseline.

    Over questions that both searched.

    Args:
        done: Finished tasks of the part.
        relevance: Judgements by collection and question.
    """
    lines = [
        f"| collection | strategy | questions | {MEASURE} | against baseline | degraded | calls |"
        " seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    figures: dict[str, float] = {}
    for collection in dict.fromkeys(task.collection for task, _ in done):
        arms = _by_arm([pair for pair in done if pair[0].collection == collection])
        values = {
            arm: per_question(
                {task.question_id: row.ranking for task, row in pairs},
                relevance[collection],
                [MEASURE],
            )[MEASURE]
            for arm, pairs in arms.items()
        }
        for arm, pairs in arms.items():
            both = [one for one in values[arm] if one in values["baseline"]]
            own, base = (
                np.array([values[name][one] for one in both]) for name in (arm, "baseline")
            )
            gain = bootstrap_interval(own - base, seed=_SEED, resamples=_RESAMPLES)
            against = (
                "" if arm == "baseline" else f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
            )
            degraded, calls = (
                sum(row.degraded for _, row in pairs),
                sum(row.calls for _, row in pairs) / len(pairs),
            )
            lines.append(
                f"| {collection} | {arm} | {len(both)} | {float(own.mean()):.3f} | {against} |"
                f" {degraded} | {calls:.1f}"
                f" | {_median(pairs, lambda row: row.whole_s)} |"
            )
            figures[f"{collection} {arm} {MEASURE}"] = float(own.mean())
            if arm != "baseline":
                figures[f"{collection} {arm} {MEASURE} minus baseline"] = gain.mean
            figures[f"{collection} {arm} questions"] = len(both)
    return lines, figures


def modes(done: Done) -> tuple[list[str], dict[str, float]]:
    """Return the table of modes with the baseline strategy, and its figures."""
    lines = [
        "| mode | questions | answered | cited | leaks | loops | nothing supported | quoted"
        " instead | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    figures: dict[str, float] = {}
    for arm, pairs in _by_arm(done).items():
        answered = [row for _, row in pairs if row.status == "answered"]
        counts = {
            "questions": len(pairs),
            "answered": len(answered),
            "cited": sum(row.cited for row in answered),
            "leaks": sum(row.leak for _, row in pairs),
            "loops": sum(row.loop for _, row in pairs),
            "nothing supported": sum(not row.cited for row in answered),
            "quoted instead": sum(bool(row.reason) for row in answered),
        }
        lines.append(
            f"| {arm} | {' | '.join(map(str, counts.values()))} |"
            f" {_median(pairs, lambda row: row.whole_s)} |"
        )
        figures |= {f"{arm} {name}": count for name, count in counts.items()}
    return lines, figures


def prompts(done: Done) -> tuple[list[str], dict[str, float]]:
    """Return the table of both prompts, and its figures."""
    lines = [
        "| collection | prompt | questions | right, seen | right, the model's words | right,"
        " quotes alone | absent | refused"
        " | leaks | loops | prompt tokens | quote s | whole s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    figures: dict[str, float] = {}
    for collection in dict.fromkeys(task.collection for task, _ in done):
        for arm, pairs in _by_arm(
            [pair for pair in done if pair[0].collection == collection]
        ).items():
            known, absent = (
                [row for task, row in pairs if task.absent == flag] for flag in (False, True)
            )
            shares = {
                "right seen": _share([bool(row.seen) for row in known]),
                "right own": _share([bool(row.own) for row in known]),
                "right quotes": _share([bool(row.quote) for row in known]),
                "refused": _share([row.status == "abstained" for row in absent]),
            }
            seen, own, quotes, refused = (_written(one) for one in shares.values())
            asked = [pair for pair in pairs if pair[1].prompt_tokens]
            lines.append(
                f"| {collection} | {arm} | {len(known)} | {seen} | {own} | {quotes} |"
                f" {len(absent)} | {refused}"
                f" | {sum(row.leak for _, row in pairs)} | {sum(row.loop for _, row in pairs)}"
                f" | {_median(asked, lambda row: row.prompt_tokens)} |"
                f" {_median(pairs, lambda row: row.quote_s)}"
                f" | {_median(pairs, lambda row: row.whole_s)} |"
            )
            figures |= {
                f"{collection} {arm} {name}": one.mean for name, one in shares.items() if one
            }
            figures |= {
                f"{collection} {arm} questions": len(known),
                f"{collection} {arm} absent": len(absent),
            }
    return lines, figures


def _by_arm(done: Done) -> dict[str, list[tuple[Task, Row]]]:
    found: dict[str, list[tuple[Task, Row]]] = {}
    for task, row in done:
        found.setdefault(task.arm, []).append((task, row))
    return found


def _share(flags: Sequence[bool]) -> Interval | None:
    if not flags:
        return None
    return bootstrap_interval(np.asarray(flags, dtype=np.float64), seed=_SEED, resamples=_RESAMPLES)


def _written(one: Interval | None) -> str:
    return "" if one is None else f"{one.mean:.2f} [{one.low:.2f}, {one.high:.2f}]"


def _median(pairs: Done, of: Callable[[Row], float | None]) -> str:
    values = [value for _, row in pairs if (value := of(row)) is not None]
    return f"{median(values):.4g}" if values else ""
