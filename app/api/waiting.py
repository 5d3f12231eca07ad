"""Waiting for a job without holding a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from anyio import to_thread

from app.core.types import Job
from app.jobs.board import JobBoard, is_finished


async def settled(board: JobBoard, job_id: str, until: Callable[[Job], bool] = is_finished) -> Job:
    """Return the job once `until` holds or it has ended.

    Many uploads may wait at once, each for minutes; a blocked thread for each would use up the pool that all requests share.

    Raises:
        NotFound: No such job.
    """
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(woken.set)

    with board.subscribe(job_id, wake):
        while True:
            woken.clear()
            job = await to_thread.run_sync(board.get, job_id)
            if until(job) or is_finished(job):
                return job
            await woken.wait()
