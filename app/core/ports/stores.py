"""Define the ports of stores other than the index.

Jobs, answers, conversations, models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from app.core.types import (
    Answer,
    Job,
    Message,
    ModelFindings,
    ModelSpeed,
)


class JobStore(Protocol):
    """Jobs that survive a restart."""

    def create(
        self,
        kind: str,
        payload: Mapping[str, object],
        *,
        total: int | None = None,
        unit: str = "items",
    ) -> Job:
        """Store a queued job durably and return it."""
        ...

    def get(self, job_id: str) -> Job:
        """Return a job, or raise NotFound."""
        ...

    def list(self, limit: int = 100) -> Sequence[Job]:
        """Return jobs, newest first."""
        ...

    def unfinished(self) -> Sequence[Job]:
        """Return every queued, running or paused job, oldest first.

        Read at the start of a process.
        """
        ...

    def delete_finished(self, keep_finished: int) -> int:
        """Forget finished jobs beyond the newest `keep_finished`; return how many."""
        ...

    def save(self, job: Job) -> None:
        """Replace a job's state durably."""
        ...


class AnswerStore(Protocol):
    """Answers with their traces, by id, within retention."""

    def save(self, answer: Answer, record: Mapping[str, object]) -> None:
        """Keep an answer; `record` is its full JSON form."""
        ...

    def get(self, answer_id: str) -> Mapping[str, object]:
        """Return the record, or raise NotFound."""
        ...

    def add_feedback(self, answer_id: str, feedback: Mapping[str, object]) -> None:
        """Attach thumbs and the right passage, or raise NotFound."""
        ...

    def list(self, limit: int = 100, with_feedback: bool = False) -> Sequence[Mapping[str, object]]:
        """Return records, newest first."""
        ...

    def delete(self, older_than: str | None = None) -> int:
        """Forget all answers, or those before a UTC time; return how many."""
        ...


class ConversationStore(Protocol):
    """Conversations on the server: id, title, turns, running summary."""

    def create(self, title: str = "", library: str | None = None) -> str:
        """Return the id of a new conversation."""
        ...

    def get(self, conversation_id: str) -> Mapping[str, object]:
        """Return one with its turns, or raise NotFound.

        Keys: id, title, library, summary, folded, created_at, updated_at, turns [{role, content,
        answer_id, at}].
        """
        ...

    def list(self, limit: int = 100) -> Sequence[Mapping[str, object]]:
        """Return conversations without turns, newest first."""
        ...

    def begin(self, conversation_id: str, question: str, answer_id: str) -> None:
        """Keep a question that is being answered, as a turn of the user.

        It takes the place of the same question where that got no answer. Raise NotFound.
        """
        ...

    def append(self, conversation_id: str, said: Sequence[Message], answer_id: str) -> None:
        """Add a finished exchange atomically, in the place of the question that was begun."""
        ...

    def set_summary(self, conversation_id: str, summary: str, folded: int) -> None:
        """Keep the summary of the first `folded` messages."""
        ...

    def rename(self, conversation_id: str, title: str) -> None:
        """Change the title, or raise NotFound."""
        ...

    def delete(self, conversation_id: str, grace_s: float = 0) -> int:
        """Hide one, and forget it when its grace (seconds) is over; return how many."""
        ...

    def restore(self, conversation_id: str) -> None:
        """Undo a deletion within its grace, or raise NotFound."""
        ...

    def forget_due(self) -> int:
        """Forget the deleted ones whose grace is over; return how many."""
        ...

    def clear(self) -> int:
        """Forget all; return how many."""
        ...


class ModelStore(Protocol):
    """Keeps measurements and findings about models across restarts."""

    def speed(self, host: str, model: str) -> ModelSpeed | None:
        """Return how fast a model works on a host, None before it was measured."""
        ...

    def keep_speed(self, host: str, model: str, speed: ModelSpeed) -> None:
        """Replace the speed of a model on a host."""
        ...

    def findings(self, digest: str) -> ModelFindings | None:
        """Return what the test of a model found, None before it was tested."""
        ...

    def keep_findings(self, digest: str, model: str, findings: ModelFindings) -> None:
        """Replace what the test of a model found."""
        ...

    def tested(self) -> Sequence[tuple[str, ModelFindings]]:
        """Return names and findings of all tested models, newest first."""
        ...

    def chosen(self) -> str:
        """Return the model that was chosen to answer; empty for none."""
        ...

    def choose(self, model: str) -> None:
        """Keep which model answers from now on; empty: none is chosen."""
        ...
