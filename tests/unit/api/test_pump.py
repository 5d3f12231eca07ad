"""Pumps: back-pressure, silences, slots, the shortcut, and what ended the work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from queue import Queue

import pytest

from app.api.streaming import QUEUE_LIMIT, Pump, StreamSlots, last_item
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


def test_silence_is_an_empty_batch_and_ends_with_the_next_item() -> None:
    async def scenario() -> None:
        items: Queue[str | None] = Queue()
        pump = Pump(lambda _: iter(items.get, None), StreamSlots(1))
        await pump.start()
        assert await pump.next_batch(0.01) == []
        assert await pump.next_batch(0.01) == []
        items.put("a")
        assert await pump.next_batch(WAIT_S) == ["a"]
        items.put(None)
        assert await pump.next_batch(WAIT_S) is None

    asyncio.run(scenario())
