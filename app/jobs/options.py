"""Options of the job runner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from app.jobs.context import Lane

LANES: tuple[Lane, ...] = get_args(Lane)


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Limits of concurrent jobs, and intervals of progress writes, in seconds."""

    workers: int = 2
    """Threads for work someone waits for (ingest, samples, delete)."""
    background_workers: int = 2
    """Threads for long work (backfill, rebuild, bulk, evaluation); they give way to the former
    between steps."""
    network_workers: int = 1
    """Threads for downloads (arXiv, model pull), which wait far more than they work."""
    lanes: tuple[Lane, ...] = LANES
    """Lanes that this process works in; jobs of others wait for another process."""
    keep_finished: int = 1000
    """Finished jobs kept for the list, newest first."""
    save_interval_s: float = 2.0
    """Progress is written to the store this often at most; the state of a job at once."""
    give_way_s: float = 5.0
    """Longest pause of a background step while interactive work runs, so that it always gets on."""
    retry_s: float = 5.0
    """First wait before an accepted job is tried again after a retryable error; doubles up to a
    minute."""
    poll_s: float = 1.0
    """Several processes: jobs, requests to stop and unsaved progress are looked at this often, for
    what no message told."""
    beat_s: float = 5.0
    """Several processes: a worker says this often that it lives, and looks for jobs of lost
    ones."""
    lost_after_s: float = 20.0
    """Several processes: a worker that was silent this long is lost, and its jobs run again."""

    @property
    def threads(self) -> Mapping[Lane, int]:
        """Return how many threads work in each lane."""
        counts: dict[Lane, int] = {
            "interactive": self.workers,
            "background": self.background_workers,
            "network": self.network_workers,
        }
        return {lane: counts[lane] for lane in self.lanes}
