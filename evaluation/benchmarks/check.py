"""Measure how many sentences a minute a text is checked at.

`python -m evaluation.benchmarks.check [--data DIR] [--sentences N]`

The sentences are questions of squad with their answers put in, half of them with another question's
answer. They are checked against a library that holds all passages of squad, then against one text
of 20 passages that holds some of them. Writes evaluation/reports/check.md and .json; fails under
1,000 sentences a minute.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import replace

from app.answer.checking import CheckService
from app.answer.search import LibrarySearcher
from app.core.types import CheckReport, Library
from app.evaluation.collections import Collection, from_folder
from app.generation.prompts import GenerationOptions
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from evaluation.lib.planting import claim_of
from evaluation.lib.workbench import SEED, Figures, arguments, hash_of, indexed, write_figures

LEAST = 1000
"""Sentences a minute that are asked for."""
_SOURCE_PASSAGES = 20


def main() -> int:
    """Measure and write; the exit code says whether both are fast enough."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sentences", type=int, default=1000, help="in the text")
    given = parser.parse_args()
    squad = from_folder(given.data / "squad").judged()
    text = _text(squad, given.sentences)
    source = "\n\n".join(passage.text for passage in squad.passages[:_SOURCE_PASSAGES])
    embedder = MiniLmEmbedder(given.cache / "graph")
    with indexed({Library.PUBLIC: [squad]}, given.cache) as bench:
        plain = replace(bench, embedder=embedder)  # sentences are embedded here, not remembered
        searcher = LibrarySearcher(plain.retriever(RetrievalOptions()), embedder)
        checker = CheckService(
            searcher_for=lambda _: searcher,
            options=GenerationOptions(),
        )
        figures: dict[str, float] = {}
        timings: dict[str, float] = {}
        _measure("library", lambda: checker.in_libraries(text, "public"), figures, timings)
        _measure("one text", lambda: checker.against(text, source), figures, timings)
        made = replace(bench.provenance(), settings_hash=hash_of(given.sentences))
    remark = f"Made by `python -m evaluation.benchmarks.check` on {os.cpu_count()} cores."
    write_figures(Figures("Speed of checking a text", made, figures, timings, (remark,)), "check")
    return int(min(timings.values()) < LEAST)


def _text(squad: Collection, most: int) -> str:
    """Return sentences, every second one with the answer of another question."""
    draw = random.Random(SEED)
    asked = [question for question in squad.questions if question.answers]
    chosen = [draw.choice(asked) for _ in range(most)]
    return "\n\n".join(
        claim_of(one.text, (one if at % 2 == 0 else draw.choice(asked)).answers[0])
        for at, one in enumerate(chosen)
    )


def _measure(
    name: str,
    check: Callable[[], CheckReport],
    figures: dict[str, float],
    timings: dict[str, float],
) -> None:
    began = time.perf_counter()
    report = check()
    took = time.perf_counter() - began
    for verdict, count in report.counts.items():
        figures[f"{name}: {verdict}"] = count
    timings[f"{name}: sentences a minute"] = len(report.sentences) / took * 60


if __name__ == "__main__":
    raise SystemExit(main())
