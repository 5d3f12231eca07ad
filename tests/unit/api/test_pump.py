"""Pumps: back-pressure, silences, slots, the shortcut, and what ended the work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from queue import Queue

import pytest

from app.api.pump import QUEUE_LIMIT, Pump, StreamSlots, last_item
from app.core.cancel import CancelToken
from app.core.errors import Busy, ProviderTimeout

WAIT_S = 5.0


def test_a_slow_reader_holds_the_producer_back() -> None:
    made: list[int] = []
    full = threading.Event()

    def produce(_: CancelToken) -> Iterator[str]:
        for n in range(10 * QUEUE_LIMIT):
            made.append(n)
            if n == QUEUE_LIMIT:
                full.set()
            yield str(n)

    async def scenario() -> int:
        pump = Pump(produce, StreamSlots(1))
        await pump.start()
        first = await pump.next_batch(WAIT_S)
        assert first is not None
        await asyncio.to_thread(full.wait, WAIT_S)
        assert len(made) <= len(first) + QUEUE_LIMIT + 1
        seen = len(first)
        while (batch := await pump.next_batch(WAIT_S)) is not None:
            assert len(batch) <= QUEUE_LIMIT
            seen += len(batch)
        return seen

    assert asyncio.run(scenario()) == 10 * QUEUE_LIMIT == len(made)


def test_streams_over_the_cap_are_refused_at_once() -> None:
    slots = StreamSlots(2)
    first, _ = Pump(lambda _: iter([""]), slots), Pump(lambda _: iter([""]), slots)
    with pytest.raises(Busy) as refused:
        Pump(lambda _: iter([""]), slots)
    assert refused.value.retry_after_s is not None

    async def run() -> None:
        await first.start()
        while await first.next_batch(WAIT_S) is not None:
            pass

    asyncio.run(run())
    assert slots.taken == 1


def test_the_last_item_is_returned_and_what_ended_the_work_is_raised() -> None:
    assert asyncio.run(last_item(Pump(lambda _: iter(range(1000)), StreamSlots(1)))) == 999
    assert asyncio.run(last_item(Pump(lambda _: iter(()), StreamSlots(1)))) is None

    def fails(_: CancelToken) -> Iterator[int]:
        yield 1
        raise ProviderTimeout("the model went silent")

    with pytest.raises(ProviderTimeout):
        asyncio.run(last_item(Pump(fails, StreamSlots(1))))


def test_a_silence_begins_with_the_last_item_not_with_the_stream() -> None:
    async def scenario() -> None:
        items: Queue[str | None] = Queue()
        pump = Pump(lambda _: iter(items.get, None), StreamSlots(1))
        await pump.start()
        loop = asyncio.get_running_loop()
        for text in ("a", "b", "c"):
            loop.call_later(0.4, items.put, text)
            asked_s = loop.time()
            assert await pump.next_batch(1.0) == [text], "each comes in time, all three take longer than one silence may"
        assert await pump.next_batch(1.0) == []
        assert loop.time() - asked_s > 1.39
        items.put(None)
        assert await pump.next_batch(WAIT_S) is None

    asyncio.run(scenario())


@pytest.mark.parametrize("taken", [1, 2, 5, 1000])
def test_items_take_the_shortcut_only_behind_those_before_them(taken: int) -> None:
    """The shortcut refuses one item in `taken`; whichever way each goes, the reader has them in order."""
    written: list[int] = []
    shortcuts: list[int] = []

    def shortcut(item: int) -> bool:
        if item % taken == 0:
            return False
        written.append(item)
        shortcuts.append(item)
        return True

    def items(_: CancelToken) -> Iterator[int]:
        yield from range(3000)
        for item in range(3000, 30_000):  # a busy machine may have queued all of those before the reader came
            if shortcuts or taken == 1:
                return
            time.sleep(0.001)
            yield item

    async def scenario() -> None:
        pump = Pump(items, StreamSlots(1))
        pump.use_shortcut(shortcut)
        await pump.start()
        while (batch := await pump.next_batch(WAIT_S)) is not None:
            await asyncio.sleep(0)  # between taking and writing, the thread goes on
            written.extend(batch)

    asyncio.run(scenario())
    assert written == list(range(len(written)))
    assert len(written) >= 3000
    assert bool(shortcuts) == (taken > 1)


def test_what_takes_the_shortcut_is_no_silence_and_none_takes_it_when_it_is_closed() -> None:
    async def scenario() -> None:
        items: Queue[str | None] = Queue()
        passed: list[str] = []

        def shortcut(item: str) -> bool:
            passed.append(item)
            return True

        pump = Pump(lambda _: iter(items.get, None), StreamSlots(1))
        pump.use_shortcut(shortcut)
        await pump.start()
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        for at, text in enumerate("abc"):
            loop.call_later(0.3 * (at + 1), items.put, text)
        assert await pump.next_batch(0.5) == []
        assert passed == ["a", "b", "c"]
        assert loop.time() - asked_s > 1.39, "the silence begins with the last"
        waiting = asyncio.create_task(pump.next_batch(WAIT_S))
        await asyncio.sleep(0)
        pump.use_shortcut(None)
        items.put("d")
        assert await waiting == ["d"]
        items.put(None)
        assert await pump.next_batch(WAIT_S) is None

    asyncio.run(scenario())
