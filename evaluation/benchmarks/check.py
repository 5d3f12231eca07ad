"""Measure how many sentences a minute a text is checked at.

`python -m evaluation.benchmarks.check [--data DIR] [--sentences N]`

The sentences are questions of squad with their answers put in, half of them with another question's
answer. They are checked against a library that holds all passages of squad, then against one text
of 20 passages that holds some of them. Writes evaluation/reports/check.md and .json; fails under
1,000 sentences a minute.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict, replace

from app.answer.checking import CheckService
from app.answer.search import LibrarySearcher
from app.core.types import CheckReport
from app.evaluation.collections import Collection, from_folder
from app.generation.prompts import GenerationOptions
from app.models.minilm import MiniLmEmbedder
from app.retrieval.request import RetrievalOptions
from evaluation.lib.planting import claim_of
from evaluation.lib.served import Line, write
from evaluation.lib.workbench import SEED, arguments, hash_of, indexed

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
    embedder = MiniLmEmbedder()
    with indexed(squad, given.cache) as bench:
        plain = replace(bench, embedder=embedder)  # sentences are embedded here, not remembered
        searcher = LibrarySearcher(plain.retriever(RetrievalOptions()), embedder)
        checker = CheckService(searcher_for=lambda _: searcher, options=GenerationOptions())
        figures: dict[str, float] = {}
        lines: list[Line] = []
        ways: dict[str, Callable[[], CheckReport]] = {
            "library": lambda: checker.in_libraries(text, "public"),
            "one text": lambda: checker.against(text, source),
        }
        for name, check in ways.items():
            began = time.perf_counter()
            report = check()
            a_minute = len(report.sentences) / (time.perf_counter() - began) * 60
            lines.append(Line(f"{name}: sentences a minute", a_minute, LEAST, "", at_most=False))
            figures |= {
                f"{name}: {verdict}": count for verdict, count in asdict(report.counts).items()
            }
        made = bench.provenance(hash_of(given.sentences))
    command = "python -m evaluation.benchmarks.check"
    return write("check", "Speed of checking a text", (), lines, figures, command, made=made)


def _text(squad: Collection, most: int) -> str:
    """Return sentences, every second one with the answer of another question."""
    draw = random.Random(SEED)
    asked = [question for question in squad.questions if question.answers]
    chosen = [draw.choice(asked) for _ in range(most)]
    return "\n\n".join(
        claim_of(one.text, (one if at % 2 == 0 else draw.choice(asked)).answers[0])
        for at, one in enumerate(chosen)
    )


if __name__ == "__main__":
    raise SystemExit(main())
