"""Read the pairs of SummEdits: a summary, its source, and whether it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.core.sentences import sentence_spans
from app.core.types import Verdict
from app.generation.reading import Claim, ReadPassage
from app.generation.support import FAITHFUL_FEATURES, Comparison, Floats, SupportModel


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of a summary, compared with its document."""

    verdict: Verdict
    """`weak` for all that the rules leave open."""
    held: float
    row: Floats
    good: bool
    weight: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of a domain with its label: whether the document holds all of it."""

    domain: str
    good: bool
    sentences: tuple[Said, ...]


def summaries(folder: Path, judge: SupportModel) -> Iterator[Summary]:
    """Yield each domain's summaries, compared; untouched sentences count a third."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            left = {
                row["original_summary"][start:end]
                for start, end in sentence_spans(row["original_summary"])
            }
            good = row["label"] == 1
            texts = [row["summary"][start:end] for start, end in sentence_spans(row["summary"])]
            compared = compare(
                judge,
                [(text, ReadPassage.of_text(row["doc"])) for text in texts],
                source_given=True,
            )
            yield Summary(
                path.stem,
                good,
                tuple(
                    Said(
                        found.verdict(0.0) if found else "not_found",
                        found.held if found else 0.0,
                        changes,
                        good or text in left,
                        1.0 if good or text not in left else 0.3,
                    )
                    for text, (found, changes) in zip(texts, compared, strict=True)
                ),
            )


def compare(
    judge: SupportModel, pairs: Sequence[tuple[str, ReadPassage]], *, source_given: bool
) -> list[tuple[Comparison | None, Floats]]:
    """Return each claim's comparison with its passage, and faithful row."""
    out: list[tuple[Comparison | None, Floats]] = []
    for text, passage in pairs:
        examination = judge.examine([passage], source_given=source_given)
        found = examination.compare(Claim(text), passage)
        out.append((found, found.changes if found else np.zeros(len(FAITHFUL_FEATURES))))
    return out
