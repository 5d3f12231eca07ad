"""Options of the job runner."""

from __future__ import annotations

from dataclasses import dataclass


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
    keep_finished: int = 1000
    """Finished jobs kept for the list, newest first."""
    save_interval_s: float = 2.0
    """Progress is written to the store this often at most; the state of a job at once."""
    give_way_s: float = 5.0
    """Longest pause of a background step while interactive work runs, so that it always gets on."""
    retry_s: float = 5.0
    """First wait before an accepted job is tried again after a retryable error; doubles up to a
    minute."""
