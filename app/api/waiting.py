"""Waiting for a job, or for a place to work, without holding a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from anyio import to_thread
from starlette.types import Receive

from app.api.sse import cancel_on_disconnect
from app.core.cancel import CancelToken
from app.core.errors import Busy
from app.core.types import Job
from app.jobs.board import JobBoard, is_finished

T = TypeVar("T")


class Places:
    """Threads for requests that may work for minutes: few, so that the others are served.

    A place is free again when its work has ended, not when its client has left.
    """

    def __init__(self, places: int, *, most_waiting: int, wait_s: float) -> None:
        """Let `places` work at once, and up to `most_waiting` wait `wait_s` seconds for that."""
        self._places = places
        self._free = asyncio.Semaphore(places)
        self._most_waiting = most_waiting
        self._waiting = 0
        self._wait_s = wait_s

    async def run(self, work: Callable[[CancelToken], T], receive: Receive | None = None) -> T:
        """Return what `work` returns in a thread of its own.

        Its token is cancelled when this call is, and when `receive` says that the client left.

        Raises:
            Busy: No place became free in time, or too many wait for one.
            Cancelled: The client left before the work began.
        """
        cancel = CancelToken()
        leaving = receive and asyncio.ensure_future(cancel_on_disconnect(receive, cancel))
        try:
            await self._take()
            if cancel.cancelled:
                self._free.release()
                cancel.raise_if_cancelled()
            working = asyncio.ensure_future(to_thread.run_sync(work, cancel))
            working.add_done_callback(self._give_back)
            return await asyncio.shield(working)
        finally:
            cancel.cancel()
            if leaving:
                leaving.cancel()

    async def _take(self) -> None:
        busy = Busy(
            f"{self._places} texts are being checked or read already; try again in a moment",
            retry_after_s=max(1.0, self._wait_s),
        )
        if self._waiting >= self._most_waiting:
            raise busy
        self._waiting += 1
        try:
            await asyncio.wait_for(self._free.acquire(), self._wait_s)
        except TimeoutError:
            raise busy from None
        finally:
            self._waiting -= 1

    def _give_back(self, ended: asyncio.Future[T]) -> None:
        self._free.release()
        if not ended.cancelled():
            ended.exception()  # seen, though the client may have left


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
