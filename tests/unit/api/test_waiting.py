"""Few places for long work: the next ones wait for a bounded time, and who leaves frees a place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable

import pytest
from starlette.types import Message

from app.api.streaming import Places
from app.core.cancel import CancelToken
from app.core.errors import Busy, Cancelled

WAIT_S = 20.0


def _never() -> Awaitable[Message]:
    return asyncio.get_running_loop().create_future()


async def _gone() -> Message:
    return {"type": "http.disconnect"}


def test_a_place_that_does_not_become_free_is_busy_and_so_is_a_long_queue() -> None:
    async def run() -> None:
        go_on, begun = threading.Event(), threading.Event()
        places = Places(1, most_waiting=1, wait_s=0.05)

        def work(_: CancelToken) -> str:
            begun.set()
            assert go_on.wait(WAIT_S)
            return "done"

        first = asyncio.ensure_future(places.run(work, _never))
        assert await asyncio.to_thread(begun.wait, WAIT_S)
        found = await asyncio.gather(
            places.run(work, _never), places.run(work, _never), return_exceptions=True
        )
        assert [type(each) for each in found] == [Busy, Busy]
        go_on.set()
        assert await first == "done"
        assert await places.run(work, _never) == "done"

    asyncio.run(run())


def test_a_client_that_leaves_cancels_its_work_and_the_place_is_free_when_that_ended() -> None:
    async def run() -> None:
        places = Places(1, most_waiting=4, wait_s=WAIT_S)

        def work(cancel: CancelToken) -> None:
            assert cancel.wait(WAIT_S)
            cancel.raise_if_cancelled()

        with pytest.raises(Cancelled):
            await places.run(work, _gone)
        assert await places.run(lambda _: 7) == 7

    asyncio.run(run())


def test_a_cancelled_call_keeps_its_place_until_the_thread_ends() -> None:
    async def run() -> None:
        begun, go_on = threading.Event(), threading.Event()
        places = Places(1, most_waiting=4, wait_s=0.05)

        def work(cancel: CancelToken) -> None:
            begun.set()
            assert cancel.wait(WAIT_S)
            assert go_on.wait(WAIT_S)

        call = asyncio.ensure_future(places.run(work))
        assert await asyncio.to_thread(begun.wait, WAIT_S)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(Busy):
            await places.run(lambda _: None)
        go_on.set()
        while True:
            try:
                assert await places.run(lambda _: 7) == 7
            except Busy:
                continue
            break

    asyncio.run(run())
