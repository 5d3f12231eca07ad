"""Ask for a re-embedding: its payload, and one job a library at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, cast

from app.core.errors import Conflict
from app.core.types import Job, Library, Scope
from app.evaluation.answer_cases import AnswerCase
from app.jobs.board import is_finished
from app.jobs.runner import JobRunner

REEMBED = "reembed"

Action = Literal["start", "rollback", "discard"]


@dataclass(frozen=True, slots=True)
class ReembedPayload:
    """The request."""

    library: Library
    action: Action = "start"
    provider: str | None = None
    """Who embeds; None is what is configured."""
    model: str | None = None
    force: bool = False
    """Swap even when fewer passages are found."""
    questions: tuple[AnswerCase, ...] = ()
    """The user's own; empty makes some of the library's sentences and titles."""

    def to_json(self) -> dict[str, object]:
        """Return the payload as JSON values; a host that is away is tried again."""
        return {**asdict(self), "library": self.library.value, "retry": True}

    @classmethod
    def from_json(cls, payload: Mapping[str, object]) -> ReembedPayload:
        """Return the payload of a job."""
        rows = cast("Sequence[Mapping[str, object]]", payload["questions"])
        return cls(
            Library(str(payload["library"])),
            cast("Action", payload["action"]),
            cast("str | None", payload["provider"]),
            cast("str | None", payload["model"]),
            bool(payload["force"]),
            tuple(_case(row) for row in rows),
        )


def _case(row: Mapping[str, object]) -> AnswerCase:
    def strings(name: str) -> tuple[str, ...]:
        return tuple(cast("Sequence[str]", row[name]))

    return AnswerCase(
        str(row["question"]),
        cast("Scope", row["library"]),
        str(row["intent"]),
        strings("expected_substrings"),
        strings("keywords"),
        strings("expected_docs"),
        bool(row["oos"]),
    )


def request_reembed(runner: JobRunner, payload: ReembedPayload) -> Job:
    """Start a re-embedding, or join or resume the same one.

    Raises:
        Conflict: Another one of this library has not ended.
    """
    wanted = json.loads(json.dumps(payload.to_json()))
    for job in runner.list(1000):
        if (
            job.kind != REEMBED
            or is_finished(job)
            or job.payload["library"] != payload.library.value
        ):
            continue
        if json.loads(json.dumps(dict(job.payload))) != wanted:
            raise Conflict(
                f"job {job.id} re-embeds library {payload.library.value!r} ({job.state}): wait for"
                " it or cancel it first"
            )
        return runner.resume(job.id) if job.state == "paused" else job
    return runner.submit(REEMBED, wanted, unit="chunks")
