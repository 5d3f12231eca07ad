"""Hold the rules of each kind of job: handler, lane, exclusive mark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.core.types import Job
from app.jobs.context import Handler, Lane


@dataclass(frozen=True, slots=True)
class Kind:
    """Rules for running jobs of one name."""

    handler: Handler
    lane: Lane
    exclusive: Callable[[Mapping[str, object]], str]

    def mark(self, job: Job) -> str:
        """Return the key that jobs must not share to run together; empty for none."""
        return self.mark_of(job.kind, job.payload)

    def mark_of(self, name: str, payload: Mapping[str, object]) -> str:
        """Return the mark of a job of this kind by its payload."""
        key = self.exclusive(payload)
        return f"{name}:{key}" if key else ""


def share_nothing(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of kinds whose jobs may all run at once: none."""
    del payload
    return ""


def per_library(payload: Mapping[str, object]) -> str:
    """Return the exclusive key of a whole library: one such job at a time."""
    return str(payload.get("library", "all"))
