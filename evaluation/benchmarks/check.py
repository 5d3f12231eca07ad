"""Measure how many sentences a minute a text is checked at.

`python -m evaluation.benchmarks.check [--data DIR] [--sentences N]`

The sentences are questions of squad with their answers put in, half of them with another question's
answer. They are checked against a library that holds all passages of squad, then against one text
of 20 passages that holds some of them. Writes evaluation/reports/check.md and .json; fails under
1,000 sentences a minute.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import asdict, replace

from app.answer.checking import CheckService
from app.answer.search import LibrarySearcher
from app.core.types import CheckReport
from app.evaluation.collections import Collection, from_folder
from app.models.minilm import MiniLmEmbedder
from app.models.reader import MiniLmReader
from app.retrieval.request import RetrievalOptions
from evaluation.lib.reports import COLLECTIONS, SEED, Line, hash_of, options, write
from evaluation.lib.workbench import indexed, made_with

LEAST = 1000
"""Sentences a minute that are asked for."""
_SOURCE_PASSAGES = 20
_ASKING = re.compile(
    r"\b(?:how (?:many|much|long|often|far|old)|who|whom|whose|what|which|when|where|why|how)\b"
    r"(?:\s+(?:[\w'-]+\s+){0,4}?(?=(?:is|are|was|were|did|do|does|has|have|had|can|could|would"
    r"|will|should)\b))?",
    re.IGNORECASE,
)


def main() -> int:
    given = options(__doc__, **COLLECTIONS, sentences=(1000, "in the text"))
    squad = from_folder(given.data / "squad").judged()
    text = _text(squad, given.sentences)
    source = "\n\n".join(passage.text for passage in squad.passages[:_SOURCE_PASSAGES])
    embedder = MiniLmEmbedder()
    with indexed(squad, given.cache) as bench:
        plain = replace(bench, embedder=embedder)  # sentences are embedded here, not remembered
        searcher = LibrarySearcher(plain.retriever(RetrievalOptions()), embedder)
        checker = CheckService(
            searcher_for=lambda _: searcher, documents=lambda _: (), reader=MiniLmReader()
        )
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
            lines.append(Line(f"{name}: sentences a minute", a_minute, LEAST, at_most=False))
            figures |= {
                f"{name}: {verdict}": count for verdict, count in asdict(report.counts).items()
            }
        made = made_with(hash_of(given.sentences))
    command = "python -m evaluation.benchmarks.check"
    return write("check", "Speed of checking a text", (), lines, figures, command, made=made)


def _text(squad: Collection, most: int) -> str:
    """Return sentences, every second one with the answer of another question."""
    draw = random.Random(SEED)
    asked = [question for question in squad.questions if question.answers]
    chosen = [draw.choice(asked) for _ in range(most)]
    return "\n\n".join(
        _claim(one.text, (one if at % 2 == 0 else draw.choice(asked)).answers[0])
        for at, one in enumerate(chosen)
    )


def _claim(question: str, answer: str) -> str:
    """Return a statement from a question and its answer, as a small model writes."""
    asked = question.strip().rstrip("?. ")
    claim, replaced = _ASKING.subn(lambda _: f"{answer} ", asked, count=1)
    claim = " ".join((claim if replaced else f"{asked}: {answer}").split())
    return f"{claim[0].upper()}{claim[1:]}."


if __name__ == "__main__":
    raise SystemExit(main())
