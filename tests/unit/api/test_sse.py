"""Streams: order, heartbeat, errors, and a reader's leaving that stops the work."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.types import Message, Scope

from app.api.streaming import EventStream, Produce, Pump, StreamSlots, each, event
from app.core.cancel import CancelToken
from app.core.errors import Busy, ProviderTimeout

WAIT_S = 5.0
SCOPE: Scope = {"type": "http"}


class Reader:
    """A client on the other end of one reply; leaves when told to."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.gone = asyncio.Event()
        self.got = asyncio.Event()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        self.got.set()

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)


def text_event(item: str) -> bytes:
    return event("token", {"text": item})


def stream(produce: Produce[str], slots: StreamSlots, heartbeat_s: float = 10.0) -> EventStream:
    return EventStream(
        Pump(lambda cancel: each(produce(cancel), text_event), slots), "req1", heartbeat_s
    )


def freed(slots: StreamSlots) -> bool:
    """Wait until the work has ended and given its slot back."""
    deadline = time.monotonic() + WAIT_S
    while slots.taken and time.monotonic() < deadline:
        threading.Event().wait(0.001)
    return slots.taken == 0


def test_events_come_in_order_and_end() -> None:
    async def scenario() -> Reader:
        reader = Reader()
        await stream(lambda _: iter(["a", "b\nc", "\u6570\u2028"]), slots)(
            SCOPE, reader.receive, reader.send
        )
        return reader

    slots = StreamSlots(1)
    reader = asyncio.run(scenario())
    headers = dict(reader.sent[0]["headers"])
    assert headers[b"x-accel-buffering"] == b"no"
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert b"content-length" not in headers
    expected = 'event: token\ndata: {"text":"a"}\n\nevent: token\ndata: {"text":"b\\nc"}\n\n'
    assert reader.body.decode().startswith(f": connected\n\n{expected}")
    assert reader.sent[-1]["more_body"] is False
    assert freed(slots)


def test_silence_is_filled_with_comments() -> None:
    go = threading.Event()

    def quiet(_: CancelToken) -> Iterator[str]:
        assert go.wait(WAIT_S)
        yield "late"

    async def scenario() -> bytes:
        reader = Reader()
        reply = asyncio.create_task(
            stream(quiet, StreamSlots(1), heartbeat_s=0.01)(SCOPE, reader.receive, reader.send)
        )
        while reader.body.count(b": heartbeat") < 2:
            await asyncio.wait_for(reader.got.wait(), WAIT_S)
            reader.got.clear()
        go.set()
        await reply
        return reader.body

    assert b"late" in asyncio.run(scenario())


@pytest.mark.parametrize("first", [True, False])
def test_a_reader_that_leaves_stops_the_work_before_and_after_the_first_item(first: bool) -> None:
    stopped = threading.Event()
    slots = StreamSlots(1)

    def model(cancel: CancelToken) -> Iterator[str]:
        try:
            if first:
                yield "one"
            assert cancel.wait(WAIT_S)
            cancel.raise_if_cancelled()
        finally:
            stopped.set()

    async def scenario() -> None:
        reader = Reader()
        reply = asyncio.create_task(stream(model, slots)(SCOPE, reader.receive, reader.send))
        while (b"one" if first else b"connected") not in reader.body:
            await asyncio.wait_for(reader.got.wait(), WAIT_S)
            reader.got.clear()
        reader.gone.set()
        await asyncio.wait_for(reply, WAIT_S)

    asyncio.run(scenario())
    assert stopped.wait(WAIT_S)
    assert freed(slots)


def test_errors_end_the_stream_as_a_problem() -> None:
    def fails(_: CancelToken) -> Iterator[str]:
        yield "a"
        raise ProviderTimeout("the model went silent")

    def breaks(_: CancelToken) -> Iterator[str]:
        raise KeyError("secret detail")

    async def scenario(produce: Produce[str]) -> str:
        reader = Reader()
        await stream(produce, StreamSlots(1))(SCOPE, reader.receive, reader.send)
        return reader.body.decode()

    ours = asyncio.run(scenario(fails))
    assert ours.index("event: token") < ours.index("event: error")
    assert '"code":"provider_timeout"' in ours
    assert '"request_id":"req1"' in ours
    foreign = asyncio.run(scenario(breaks))
    assert '"status":500' in foreign
    assert "secret" not in foreign


def test_without_a_thread_the_slot_is_free_again_and_the_reader_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slots = StreamSlots(1)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def scenario() -> None:
        reader, start = Reader(), threading.Thread.start
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(
            None, int
        )  # the helper that starts threads exists before they run out
        monkeypatch.setattr(threading.Thread, "start", refuse)
        try:
            await stream(lambda _: iter([""]), slots)(SCOPE, reader.receive, reader.send)
        finally:
            monkeypatch.setattr(threading.Thread, "start", start)

    with pytest.raises(Busy):
        asyncio.run(scenario())
    assert slots.taken == 0


def test_leaving_what_is_made_of_items_closes_them() -> None:
    closed: list[bool] = []

    def items() -> Iterator[int]:
        try:
            yield from range(3)
        finally:
            closed.append(True)

    made = each(items(), str)
    assert next(made) == "0"
    made.close()
    assert closed == [True]
