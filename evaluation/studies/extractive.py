"""Measure the quoting answerer on odd lines of seven sets.

Its quotes, its refusals, and how sure it is.

    python -m evaluation.studies.extractive [--data DIR] [--questions N] [--write]

Every set is put to its own library, and three to each other's. `--write` first fits the weights on
the even lines and replaces app/generation/extractive.json. Reports go to
evaluation/reports/extractive.{json,md}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.bootstrap.libraries import fingerprint_of
from app.core.ids import fingerprint8
from app.core.release import checkout_sha
from app.evaluation.metrics import area_under_curve
from app.evaluation.statistics import bootstrap_interval
from app.ingest.options import IngestOptions
from app.providers.minilm import MiniLmEmbedder
from app.retrieval.options import RetrievalOptions
from evaluation.lib.extractive.asked import TOP_K, Groups, ReadQuestion, gather
from evaluation.lib.extractive.fitting import WEIGHTS, Weights, fit, packaged, shipped
from evaluation.lib.paths import REPORTS
from evaluation.lib.workbench import SEED, arguments, hash_of

COMMAND = "python -m evaluation.studies.extractive --write --sets squad clapnq chunking covidqa"
_BINS = 10
_CALIBRATED: Sequence[str] = ("clapnq", "chunking", "covidqa", "squad")
_PAIRS = {"squad": "squad unanswerable", "clapnq": "clapnq", "mtragun": "mtragun"}
"""Where the answerable questions of a comparison are, and the others."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The result of one question."""

    answerable: bool
    confidence: float
    right: bool
    """The quote is right, were it made."""
    covered: float
    """Share of the reference spans in the quote, were it made."""
    words: int
    sentences: int


def outcome(weights: Weights, one: ReadQuestion) -> Outcome:
    """Return what a question gets."""
    chosen = one.chosen(weights.ranking, words_only=weights.words_only)
    quoted = " ".join(candidate.text for candidate in chosen)
    return Outcome(
        one.asking.question.answerable,
        weights.probability(one),
        one.right(chosen),
        one.asking.covered(quoted),
        len(quoted.split()),
        len(chosen),
    )


def calibration_error(outcomes: Sequence[Outcome]) -> float:
    """Return the mean gap between confidence and outcome over ten equal bins.

    References:
        Naeini, Cooper, Hauskrecht: Obtaining well calibrated probabilities using Bayesian binning,
            AAAI 2015.
    """
    sure = np.array([one.confidence for one in outcomes])
    right = np.array([float(one.right) for one in outcomes])
    place = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    gaps = [abs(float((sure[place == at] - right[place == at]).sum())) for at in range(_BINS)]
    return sum(gaps) / len(outcomes)


def reliability(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a row per bin of confidence: how many, how sure, how often right."""
    rows = []
    for at in range(_BINS):
        held = [one for one in outcomes if min(int(one.confidence * _BINS), _BINS - 1) == at]
        if held:
            sure, right = (
                np.mean([one.confidence for one in held]),
                np.mean([one.right for one in held]),
            )
            rows.append(
                f"| {at / _BINS:.1f} to {(at + 1) / _BINS:.1f} | {len(held)} | {sure:.2f} | {right:.2f} |"
            )
    return rows


def _share(flags: Sequence[bool | float]) -> str:
    if not flags:
        return "-"
    found = bootstrap_interval(np.asarray(flags, dtype=np.float64), seed=SEED, resamples=2000)
    return f"{found.mean:.3f} ({found.low:.3f} to {found.high:.3f})"


def quotes_table(found: Mapping[str, Sequence[Outcome]], answer_from: float) -> list[str]:
    """Return what is quoted, by set."""
    lines = [
        "| set | questions | right in the quote | answered and right | spans covered | refused | words |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, outcomes in found.items():
        own = [one for one in outcomes if one.answerable]
        if own and name != "mtragun":
            answered = [one.right and one.confidence >= answer_from for one in own]
            refused = [one.confidence < answer_from for one in own]
            cells = [
                _share([one.right for one in own]),
                _share(answered),
                _share([one.covered for one in own]),
                _share(refused),
            ]
            lines.append(
                f"| {name} | {len(own)} | {' | '.join(cells)} | {np.mean([one.words for one in own]):.0f} |"
            )
    return lines


def refusals_table(found: Mapping[str, Sequence[Outcome]], answer_from: float) -> list[str]:
    """Return how the answerable are told from the others."""
    lines = [
        "| set | answerable | not | AUC | refused of the answerable | refused of the others | precision |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, other in _PAIRS.items():
        if name not in found:
            continue
        own = [one.confidence for one in found[name] if one.answerable]
        foreign = [one.confidence for one in found[other] if not one.answerable]
        refused = [sum(value < answer_from for value in side) for side in (own, foreign)]
        cells = [
            f"{area_under_curve(own, foreign):.3f}",
            _share([value < answer_from for value in own]),
        ]
        cells += [
            _share([value < answer_from for value in foreign]),
            f"{refused[1] / max(1, sum(refused)):.2f}",
        ]
        lines.append(f"| {name} | {len(own)} | {len(foreign)} | {' | '.join(cells)} |")
    for name, outcomes in found.items():
        if ">" in name:
            lines.append(
                f"| {name} | 0 | {len(outcomes)} | - | - | {_share([one.confidence < answer_from for one in outcomes])} | - |"
            )
    return lines


def section(
    title: str, groups: Groups, weights: Weights, answer_from: float
) -> tuple[list[str], dict[str, float]]:
    """Return one part of the report, and its calibration errors."""
    odd = {
        name: [outcome(weights, one) for one in questions if not one.even]
        for name, questions in groups.items()
    }
    errors: dict[str, float] = {
        name: round(calibration_error(odd[name]), 4) for name in _CALIBRATED if name in odd
    }
    lines = [
        "",
        f"## {title}",
        "",
        *quotes_table(odd, answer_from),
        "",
        *refusals_table(odd, answer_from),
        "",
    ]
    lines.append(
        "Expected calibration error: "
        + ", ".join(f"{name} {value:.3f}" for name, value in errors.items())
        + "."
    )
    for name in sorted(errors.keys() & {"clapnq", "chunking"}):
        lines += [
            "",
            f"| confidence on {name} | questions | mean | right |",
            "|---|---|---|---|",
            *reliability(odd[name]),
        ]
    return lines, errors


def write_report(groups: Groups, ways: Sequence[Weights], answer_from: float, index: str) -> None:
    """Write and print the report of both ways of reading."""
    lines = [
        "# Quoted answers",
        "",
        f"Weights fitted on even lines by `{COMMAND}`, figures from odd lines.",
        f"{TOP_K} passages a question, nothing quoted under a probability of {answer_from}. Shares with 95 % intervals.",
        "Right: the gold string, or four fifths of the words of a reference span, are in the quote; for pubmedqa and",
        "cranfield, the quoted passage is a relevant one.",
    ]
    errors = {}
    for title, weights in zip(("With vectors", "By words alone"), ways, strict=True):
        part, errors[title] = section(title, groups, weights, answer_from)
        lines += part
    sha, settings = checkout_sha(), hash_of(RetrievalOptions(), answer_from)
    lines += ["", f"Made from git {sha[:12]}, settings {settings}, index {index}, seed {SEED}."]
    result = {
        "command": COMMAND,
        "git_sha": sha,
        "settings_hash": settings,
        "answer_from": answer_from,
        "errors": errors,
    }
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / "extractive.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (REPORTS / "extractive.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def main() -> None:
    """Fit on request, report, and write."""
    parser = arguments("Fit and report the quoting answerer.")
    parser.add_argument(
        "--write", action="store_true", help="fit again and replace app/generation/extractive.json"
    )
    parser.add_argument("--questions", type=int, default=400, help="most questions of a set")
    parser.add_argument(
        "--sets",
        nargs="+",
        default=[],
        help="only these, each put to its own library; default: all",
    )
    parser.add_argument(
        "--answer-from", type=float, default=0.2, help="least probability for a quote"
    )
    given = parser.parse_args()
    groups = gather(given.data, given.cache, given.questions, given.sets)
    even = {name: [one for one in questions if one.even] for name, questions in groups.items()}
    ways = [
        fit(even, words_only=only) if given.write else shipped(words_only=only)
        for only in (False, True)
    ]
    model = MiniLmEmbedder(given.cache / "graph").identity
    write_report(
        groups, ways, given.answer_from, fingerprint8(fingerprint_of(model, IngestOptions()))
    )
    if given.write:
        text = json.dumps(packaged(ways[0], ways[1], given.answer_from, COMMAND), indent=2)
        WEIGHTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
