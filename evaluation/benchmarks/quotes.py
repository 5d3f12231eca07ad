"""Measure what caching sentence vectors saves a quoted answer.

`python -m evaluation.benchmarks.quotes [--data DIR] [--questions N]`

Each question is quoted twice in turn, by an encoder that remembers and by one that does not, from
the same evidence: questions one behind the other in the collection, which are about one subject,
and as many drawn from all of it. Writes evaluation/reports/quotes.md and .json; fails when a quote
differs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np

from app.core.ports import PassageEncoder
from app.core.types import Evidence
from app.evaluation.collections import TestQuestion, from_folder
from app.generation.quote.quoting import ExtractiveGenerator, Selection
from app.models.embedding import RememberedEncoder
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from evaluation.lib.reports import COLLECTIONS, SEED, Line, hash_of, options, say, write
from evaluation.lib.workbench import indexed, made_with
from evaluation.studies.extractive import evidence_for

Asked = Sequence[tuple[str, tuple[Evidence, ...]]]


def main() -> int:
    given = options(__doc__, **COLLECTIONS, questions=(120, "questions of each kind"))
    squad = from_folder(given.data / "squad").judged()
    answerable = [question for question in squad.questions if question.answers]
    embedder = MiniLmEmbedder()
    draw = random.Random(SEED)
    with indexed(squad, given.cache) as bench:
        lines: list[Line] = []
        figures: dict[str, float] = {}
        for name, questions in _kinds(answerable, given.questions, draw).items():
            say(f"{len(questions)} {name} questions")
            asked = [(question.text, evidence_for(bench, question.text)) for question in questions]
            different, found = _compare(asked, embedder)
            lines.append(Line(f"{name}: questions quoted differently", different))
            figures |= {f"{name}: {key}": value for key, value in found.items()}
        made = made_with(hash_of(RetrievalOptions(), given.questions))
    remark = (
        "Milliseconds to choose the sentences of an answer, retrieval aside, in alternation;"
        " a memory begins empty with each kind."
    )
    title = "Quoting with sentences remembered"
    return write("quotes", title, [remark], lines, figures, "make bench-quotes", made=made)


def _kinds(
    questions: Sequence[TestQuestion], most: int, draw: random.Random
) -> dict[str, Sequence[TestQuestion]]:
    begin = draw.randrange(max(1, len(questions) - most))
    return {
        "neighbouring": questions[begin : begin + most],
        "random": draw.sample(questions, min(most, len(questions))),
    }


def _compare(asked: Asked, encoder: PassageEncoder) -> tuple[int, dict[str, float]]:
    """Return how many questions are quoted differently, milliseconds and ratios."""
    ways = {
        "computed": ExtractiveGenerator(encoder),
        "remembered": ExtractiveGenerator(RememberedEncoder(encoder)),
    }
    took_ms: dict[str, list[float]] = {way: [] for way in ways}
    different = 0
    for number, (question, evidence) in enumerate(asked):
        chosen: dict[str, Selection] = {}
        for way in sorted(ways, reverse=number % 2 == 1):  # neither is always the second
            begun = time.perf_counter()
            chosen[way] = ways[way].select(question, evidence)
            took_ms[way].append((time.perf_counter() - begun) * 1000)
        different += chosen["computed"] != chosen["remembered"]
    figures: dict[str, float] = {}
    for name, share in (("p50", 50), ("p95", 95)):
        computed, remembered = (
            float(np.percentile(took_ms[way], share)) for way in ("computed", "remembered")
        )
        figures |= {
            f"computed {name} ms": computed,
            f"remembered {name} ms": remembered,
            f"remembered / computed {name}": remembered / computed,
        }
    return different, figures


if __name__ == "__main__":
    raise SystemExit(main())
