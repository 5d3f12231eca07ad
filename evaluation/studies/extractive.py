"""Measure what the quoting answerer quotes, on odd lines of eight sets.

    python -m evaluation.studies.extractive [--data DIR] [--questions N] [--write]

Every set is put to its own library. `--write` first fits the ranking of sentences on squad's even
lines and puts it into app/generation/extractive.json; confidence is then to be fitted again
(evaluation/studies/confidence.py). Writes evaluation/reports/extractive.{json,md}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.bootstrap.libraries import fingerprint_of
from app.core.ids import checkout_sha, fingerprint8
from app.generation.quoting import ExtractiveModel
from app.ingest.names import IngestOptions
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from evaluation.lib.extractive import (
    TOP_K,
    Groups,
    ReadQuestion,
    Weights,
    fit_ranking,
    gather,
    keep,
    packaged_ranking,
    share,
    shipped,
)
from evaluation.lib.paths import publish
from evaluation.lib.workbench import SEED, arguments, hash_of

COMMAND = "python -m evaluation.studies.extractive --write --sets squad"


@dataclass(frozen=True, slots=True)
class Quoted:
    """The quote of one question, were it made."""

    right: bool
    covered: float
    """Share of the reference spans in the quote."""
    words: int
    confidence: float


def quoted(weights: Weights, one: ReadQuestion) -> Quoted:
    chosen = one.chosen(weights.ranking, words_only=weights.words_only)
    text = " ".join(candidate.text for candidate in chosen)
    return Quoted(
        one.right(chosen), one.asking.covered(text), len(text.split()), weights.confidence(one)
    )


def quotes_table(groups: Groups, weights: Weights, answer_from: float) -> list[str]:
    lines = [
        "| set | questions | right in the quote | answered and right | spans covered | words |",
        "|---|---|---|---|---|---|",
    ]
    for name, questions in groups.items():
        asked = [one for one in questions if one.asking.question.answerable and not one.even]
        if not asked or name == "mtragun":
            continue
        found = [quoted(weights, one) for one in asked]
        cells = [
            share([one.right for one in found]),
            share([one.right and one.confidence >= answer_from for one in found]),
            share([one.covered for one in found])
            if any(one.asking.spans for one in asked)
            else "-",
            f"{np.mean([one.words for one in found]):.0f}",
        ]
        lines.append(f"| {name} | {len(found)} | {' | '.join(cells)} |")
    return lines


def write_report(groups: Groups, ways: Sequence[Weights], answer_from: float, index: str) -> None:
    """Write and print the report of both ways of reading."""
    lines = [
        "# Quoted answers",
        "",
        f"The ranking is fitted on even lines of squad by `{COMMAND}`; figures are of odd lines.",
        f"{TOP_K} passages a question, nothing quoted under a probability of {answer_from}."
        " Shares with 95 % intervals.",
        "Right: the gold string, or four fifths of the words of a reference span, are in the quote;"
        " for pubmedqa and",
        "cranfield, the quoted passage is a relevant one. Refusals: [confidence](confidence.md).",
    ]
    for title, weights in zip(("With vectors", "By words alone"), ways, strict=True):
        lines += ["", f"## {title}", "", *quotes_table(groups, weights, answer_from)]
    sha, settings = checkout_sha(), hash_of(RetrievalOptions(), answer_from)
    lines += ["", f"Made from git {sha[:12]}, settings {settings}, index {index}, seed {SEED}."]
    result = {
        "command": COMMAND,
        "git_sha": sha,
        "settings_hash": settings,
        "answer_from": answer_from,
    }
    publish("extractive", result, "\n".join(lines) + "\n")


def main() -> None:
    parser = arguments("Fit and report the quoting answerer.")
    parser.add_argument("--write", action="store_true", help="fit the ranking again")
    parser.add_argument("--questions", type=int, default=400, help="most questions of a set")
    parser.add_argument("--sets", nargs="+", default=[], help="only these; default: all")
    given = parser.parse_args()
    groups = gather(given.data, given.cache, given.questions, given.sets)
    ways, answer_from = (
        [shipped(words_only=only) for only in (False, True)],
        ExtractiveModel.load().answer_from,
    )
    if given.write:
        even = [one for one in groups["squad"] if one.even]
        ways = [replace(way, ranking=fit_ranking(even, words_only=way.words_only)) for way in ways]
        keep(packaged_ranking(ways[0].ranking, ways[1].ranking, COMMAND))
    model = MiniLmEmbedder(given.cache / "graph").identity
    write_report(groups, ways, answer_from, fingerprint8(fingerprint_of(model, IngestOptions())))


if __name__ == "__main__":
    main()
