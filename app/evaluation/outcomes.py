"""Store outcomes question by question, so an interrupted run continues."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from app.evaluation.arms import Arm
from app.evaluation.runner import ArmSearch, RankedPassages

Values = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """One arm's result for one question.

    `values` are measures known only when asking (answers).
    """

    found: RankedPassages
    values: Values = field(default_factory=dict)


class OutcomeLog:
    """An append-only file of outcomes, one JSON object a line.

    A line cut short by a crash is asked again.
    """

    def __init__(self, path: Path) -> None:
        """Read what an earlier run left at `path`."""
        self._path = path
        self._known: dict[tuple[str, str], QuestionOutcome] = {}
        if path.is_file():
            whole = path.read_bytes()
            whole = whole[: whole.rfind(b"\n") + 1]
            for line in whole.splitlines():
                row = json.loads(line)
                found = row["found"]
                passages = RankedPassages(
                    tuple(found["passages"]),
                    tuple(found["texts"]),
                    found["ms"],
                    found["stages_ms"],
                    found["confidence"],
                )
                self._known[row["arm"], row["question"]] = QuestionOutcome(passages, row["values"])
            path.write_bytes(whole)

    def __len__(self) -> int:
        """Return how many outcomes are known."""
        return len(self._known)

    def get(self, arm: str, question: str) -> QuestionOutcome | None:
        """Return what is known of a question under an arm."""
        return self._known.get((arm, question))

    def add(self, arm: str, question: str, outcome: QuestionOutcome) -> None:
        """Keep an outcome."""
        self._known[arm, question] = outcome
        row = {
            "arm": arm,
            "question": question,
            "found": asdict(outcome.found),
            "values": outcome.values,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True)
class Remembered:
    """An `ArmSearch` that asks only what is not known yet."""

    search: ArmSearch
    log: OutcomeLog
    asked: Callable[[], None]
    """Told after each question, known or not; may raise Cancelled."""

    def __call__(self, arm: Arm, question: str, top_k: int) -> RankedPassages:
        """Return what is known, or ask and keep it."""
        known = self.log.get(arm.name, question)
        if known is None:
            known = QuestionOutcome(self.search(arm, question, top_k))
            self.log.add(arm.name, question, known)
        self.asked()
        return known.found
