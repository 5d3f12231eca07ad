"""Options of the job runner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobOptions:
    """How much runs at once."""

    workers: int = 2
    keep_finished: int = 1000
    """Finished jobs kept for the list, newest first."""
