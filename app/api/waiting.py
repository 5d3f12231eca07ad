"""Waiting for a job without holding a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from anyio import to_thread

from app.core.cancel import CancelToken
from app.core.types import Job
from app.jobs.board import JobBoard, is_finished


async def settled(
    board: JobBoard, job_id: str, until: Callable[[Job], bool], stopping: CancelToken
) -> Job | None:
    """Return the job once `until` holds or it has ended; None if the server stops.

    After a stop, the next start continues the job. Many uploads may wait at once, each for minutes;
    a blocked thread for each would use up the pool that all requests share.

    Raises:
        NotFound: No such job.
    """
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def look() -> Job | None:
        job = board.get(job_id)
        return job if until(job) or is_finished(job) else None

    def wake() -> None:
        # In the job's thread: a job changes hundreds of times; wake the loop only for waiters.
        if look() is not None:
            loop.call_soon_threadsafe(woken.set)

    with (
        board.subscribe(job_id, wake),
        stopping.calling(partial(loop.call_soon_threadsafe, woken.set)),
    ):
        while True:
            woken.clear()
            job = await to_thread.run_sync(look)
            if job is not None or stopping.cancelled:
                return job
            await woken.wait()
