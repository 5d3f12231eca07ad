"""A job as it runs in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from app.core.cancel import CancelToken
from app.core.types import Job, JobState

Stop = Literal["pause", "cancel", "shutdown", "lost"]
"""Why a token was cancelled; `lost`: another process runs the job now."""

_AFTER: dict[Stop | None, JobState] = {"shutdown": "queued", "lost": "queued", "pause": "paused"}


@dataclass(slots=True)
class LiveJob:
    """An unfinished job in this process; guarded by the runner's lock."""

    job: Job
    token: CancelToken = field(default_factory=CancelToken)
    stop: Stop | None = None
    """Why the token was cancelled."""
    saved_at_s: float = 0.0
    unsaved: bool = False
    """Whether it shows more than its row."""
    saving: threading.Lock = field(default_factory=threading.Lock)
    """Held while its row is written where two threads write it."""
    ticket: int = 0
    """Of the queue that several processes share."""
    not_before_s: float = 0.0
    attempts: int = 0
    listeners: list[Callable[[], None]] = field(default_factory=list)

    @property
    def state_after_stop(self) -> JobState:
        """Return the state of a job that stopped as it was asked to."""
        return _AFTER.get(self.stop, "cancelled")
