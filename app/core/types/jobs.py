"""Long work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

JobState = Literal["queued", "running", "paused", "done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobFile:
    """Progress of one file within a job; `progress` in [0, 1]."""

    filename: str
    state: Literal["queued", "running", "done", "failed"]
    progress: float


@dataclass(frozen=True, slots=True)
class Job:
    """A persistent unit of long work.

    `payload` and `result` are JSON values; `eta_s` is in seconds.
    """

    id: str
    kind: str
    state: JobState
    done: int
    total: int | None
    unit: str
    eta_s: float | None
    errors: tuple[str, ...]
    files: tuple[JobFile, ...]
    payload: Mapping[str, object]
    result: Mapping[str, object] | None
    created_at: str
    updated_at: str
