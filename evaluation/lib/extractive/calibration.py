"""Say how well confidences fit what became of the quotes: tables with counts and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.evaluation.metrics import area_under_curve, bootstrap_interval
from evaluation.lib.workbench import SEED

BINS = 10
PAIRS = {
    "clapnq": "clapnq",
    "squad": "squad unanswerable",
    "mtragun": "mtragun",
    "fetaqa": "fetaqa absent",
}
"""Where the answerable questions of a comparison are, and the others."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question."""

    answerable: bool
    confidence: float
    right: bool
    """The quote is right, were it made."""


Outcomes = Mapping[str, Sequence[Outcome]]
"""By set."""


def calibration_error(outcomes: Sequence[Outcome]) -> float:
    """Return the mean gap between confidence and outcome over ten equal bins.

    References:
        Naeini, Cooper, Hauskrecht: Obtaining well calibrated probabilities using Bayesian binning,
            AAAI 2015.
    """
    return sum(abs(sure - right) * len(held) for held, sure, right in _bins(outcomes)) / len(
        outcomes
    )


def _bins(outcomes: Sequence[Outcome]) -> list[tuple[list[Outcome], float, float]]:
    """Return the outcomes of each bin that has some, mean confidence and share right."""
    found = []
    for at in range(BINS):
        held = [one for one in outcomes if min(int(one.confidence * BINS), BINS - 1) == at]
        if held:
            sure = float(np.mean([one.confidence for one in held]))
            found.append((held, sure, float(np.mean([one.right for one in held]))))
    return found


def reliability_table(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return a row per bin of confidence: how many, how sure, how often right."""
    lines = [
        f"| confidence on {name} | questions | mean | right, with 95 % interval |",
        "|---|---|---|---|",
    ]
    for held, sure, _ in _bins(outcomes):
        at = min(int(held[0].confidence * BINS), BINS - 1)
        cells = [str(len(held)), f"{sure:.2f}", share([one.right for one in held])]
        lines.append(f"| {at / BINS:.1f} to {(at + 1) / BINS:.1f} | {' | '.join(cells)} |")
    return ["", *lines]


def refusals_table(found: Outcomes, answer_from: float) -> list[str]:
    """Return how the answerable questions of a set are told from the others."""
    lines = [
        "| set | answerable | not | AUC | refused of the answerable | right quotes refused"
        " | refused of the others | precision |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, other in ((name, other) for name, other in PAIRS.items() if name in found):
        own = [one for one in found[name] if one.answerable]
        foreign = [one for one in found[other] if not one.answerable]
        wrongly = [one.confidence < answer_from for one in own]
        rightly = [one.confidence < answer_from for one in foreign]
        area = area_under_curve(
            [one.confidence for one in own], [one.confidence for one in foreign]
        )
        lost = [one.right and one.confidence < answer_from for one in own]
        precision = sum(rightly) / max(1, sum(rightly) + sum(wrongly))
        cells = [f"{area:.3f}", share(wrongly), share(lost), share(rightly), f"{precision:.2f}"]
        lines.append(f"| {name} | {len(own)} | {len(foreign)} | {' | '.join(cells)} |")
    return lines


def share(flags: Sequence[bool | float]) -> str:
    """Return a mean with its 95 % bootstrap interval."""
    if not flags:
        return "-"
    found = bootstrap_interval(np.asarray(flags, dtype=np.float64), seed=SEED, resamples=2000)
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"
