"""Measure what the reader is worth: does the sentence that leads hold the answer, with and without it?

    python -m evaluation.studies.reader [--data DIR] [--questions N]

Questions of squad and clapnq (DATA, docs/evaluation.md) are put to their own library, those of
evaluation/everyday to six short documents in words that the documents do not have. Of the ten best
passages, cutoff or not, the three nearest units are taken. Writes evaluation/reports/reader.{md,json}.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from app.core.types import Evidence
from app.evaluation.collections import TestQuestion, from_documents
from app.evaluation.workshop import Bench
from app.generation.quote.quoting import ExtractiveGenerator
from app.models.minilm import MiniLmEmbedder
from app.models.reader import MiniLmReader
from evaluation.lib.reports import COLLECTIONS, ROOT, options, say, share, table, write
from evaluation.lib.workbench import indexed
from evaluation.studies.extractive import Asked, Asking, clapnq, evidence_for, remembering, squad

COMMAND = "python -m evaluation.studies.reader"
EVERYDAY = ROOT / "evaluation" / "everyday"
PASSAGES = 10


def everyday() -> Asked:
    """Return questions about short documents in words that these do not have; some have no answer."""
    rows = json.loads((EVERYDAY / "questions.json").read_text("utf-8"))
    asked = (
        Asking(
            TestQuestion(row["id"], row["question"], line=at, answerable=not row["absent"]),
            patterns=tuple(row["answers"]),
            need=len(row["answers"]),
        )
        for at, row in enumerate(rows)
    )
    return Asked(replace(from_documents(EVERYDAY), name="everyday"), tuple(asked))


def answerable(asked: Asked) -> Asked:
    """Return a set without the questions that have no answer."""
    return replace(
        asked, questions=tuple(one for one in asked.questions if one.question.answerable)
    )


def sets(data: Path, most: int) -> Iterator[Asked]:
    """Yield the sets, those with answers."""
    yield answerable(everyday())
    yield squad(data, most)[0]
    found = answerable(clapnq(data))
    yield replace(found, questions=found.questions[:most])


def evidence_of(bench: Bench, asked: Sequence[Asking]) -> list[tuple[Evidence, ...]]:
    """Return the ten best passages of each question."""
    return [evidence_for(bench, one.question.text, weak=True, most=PASSAGES) for one in asked]


def main() -> None:
    given = options(__doc__, **COLLECTIONS, questions=(300, "most questions of a set"))
    encoder, reader = MiniLmEmbedder(), MiniLmReader()
    rows: list[tuple[object, ...]] = []
    figures: dict[str, float] = {}
    for asked in sets(given.data, given.questions):
        name = asked.collection.name
        with indexed(asked.collection, given.cache, encoder) as bench:
            found = evidence_of(bench, asked.questions)
            known = remembering(bench)
            for way, by in (("words and vectors", None), ("with the reader", reader)):
                generator, begun = ExtractiveGenerator(known, by), time.perf_counter()
                near = [
                    [
                        f"{unit.above} {unit.text}"
                        for unit in generator.nearest(one.question.text, evidence)
                    ]
                    for one, evidence in zip(asked.questions, found, strict=True)
                ]
                lead, three = (
                    [
                        one.right(" ".join(texts[:n]), None)
                        for one, texts in zip(asked.questions, near, strict=True)
                    ]
                    for n in (1, 3)
                )
                ms = 1000 * (time.perf_counter() - begun) / len(near)
                rows.append((name, way, len(lead), share(lead), share(three), f"{ms:.0f}"))
                figures[f"{name}: the first of them, {way}"] = sum(lead) / len(lead)
                say(f"{name}, {way}")
    head = "set|ordered by|questions|the first holds the answer|one of three|ms a question"
    remarks = [
        "Shares with 95 % intervals. The weight of the reader was chosen on squad and clapnq; what is"
        " asked for by `everyday` shares almost no word with its answer."
    ]
    lines = table(head.split("|"), rows)
    write(
        "reader",
        "What the reader is worth",
        remarks,
        [],
        figures,
        COMMAND,
        tables=lines,
        sets=[EVERYDAY, given.data / "squad", given.data / "foreign" / "clapnq"],
    )


if __name__ == "__main__":
    main()
