"""The load generator: readers of event streams in a process of their own.

    python -m evaluation.benchmarks.load.readers URL --streams 64 --seconds 60 [--extra 136]
    [--direct]

Prints one JSON object: what was read when, what went wrong, and how long those over the cap waited
for their refusal. With `--direct` it reads from the model host itself: what is measured then is the
machine and the measurement.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlsplit

from evaluation.benchmarks.load.facts import QUESTIONS, document

_WAIT_S = 60.0
"""For a whole answer, which takes ten seconds."""
_SPREAD_S = 10.0
"""The first answers begin within this time: the length of one."""
Times = list[tuple[int, int]]
"""How many characters of an answer were there, and when (ns)."""


@dataclass
class Seen:
    """Tokens and times that the readers of one run received."""

    texts: list[tuple[str, Times]] = field(default_factory=list)
    """Per answer its provisional text and when it came."""
    errors: Counter[str] = field(default_factory=Counter)
    supported: int = 0
    """Sentences of final answers that a kept citation holds."""
    sentences: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    """Of the clients over the cap."""
    waited_s: list[float] = field(default_factory=list)
    """Of the clients over the cap: until the head of the reply."""
    retry_after: int = 0
    """Refusals that said when to come back."""


class Reply(asyncio.Protocol):
    """One reply, read as it comes; subclasses know what a token looks like."""

    separator = b"\n\n"

    def __init__(self) -> None:
        """Wait for a connection."""
        loop = asyncio.get_running_loop()
        self.head: asyncio.Future[bytes] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.text = ""
        self.times: Times = []
        self.final: dict[str, object] | None = None
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        """Note the time, then look what came."""
        now = time.monotonic_ns()
        self._rest += data
        if not self.head.done():
            end = self._rest.find(b"\r\n\r\n")
            if end < 0:
                return
            self.head.set_result(self._rest[:end])
            self._rest = self._rest[end + 4 :]
        *pieces, self._rest = self._rest.split(self.separator)
        for piece in pieces:
            if token := self.token(piece):
                self.text += token
                self.times.append((len(self.text), now))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        for future in (self.head, self.ended):
            if not future.done():
                future.set_result(b"" if future is self.head else None)  # type: ignore[arg-type]  # each by its own type

    def token(self, piece: bytes) -> str:
        """Return the text that a piece adds."""
        raise NotImplementedError


class Events(Reply):
    """Of DocuMind: server-sent events."""

    def token(self, piece: bytes) -> str:
        _, found, event = piece.partition(b"event: ")
        name, _, data = event.partition(b"\ndata: ")
        if not found or name not in {b"token", b"final"}:
            return ""
        body = json.loads(data)
        if name == b"final":
            self.final = body
            return ""
        return str(body["text"])


class Lines(Reply):
    """Of the model host: one object a line."""

    separator = b"\n"

    def token(self, piece: bytes) -> str:
        if not piece.startswith(b"{"):  # the frame of a chunk
            return ""
        body = json.loads(piece)
        if body["done"]:
            self.final = {"sentences": []}
        return str(body["message"]["content"])


class Client:
    """Asks one server."""

    def __init__(self, url: str, *, direct: bool) -> None:
        """Keep the address and what is asked there."""
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._direct = direct
        self._number = count()

    async def open(self) -> tuple[asyncio.Transport, Reply]:
        """Ask for one answer as a stream."""
        loop = asyncio.get_running_loop()
        transport, reply = await loop.create_connection(
            Lines if self._direct else Events, self._host, self._port
        )
        path, body = self._request()
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nConnection:"
            " close\r\nContent-Type: application/json\r\n"
        )
        transport.write(
            head.encode() + f"Content-Length: {len(content)}\r\n\r\n".encode() + content
        )
        return transport, reply

    def _request(self) -> tuple[str, dict[str, object]]:
        question = QUESTIONS[next(self._number) % len(QUESTIONS)]
        if self._direct:
            prompt = f'<passage-0 n="1">\n{document()}\n</passage-0>\n{question}'
            return "/api/chat", {
                "model": "llama3.2",
                "messages": [{"role": "user", "content": prompt}],
                "stream": True,
            }
        return "/api/v1/query", {"question": question, "library": "papers", "stream": True}

    async def read(self, seen: Seen) -> None:
        """Read one answer to its end."""
        transport, reply = await self.open()
        try:
            head = await asyncio.wait_for(asyncio.shield(reply.head), _WAIT_S)
            if b" 200 " not in head.split(b"\r\n")[0]:
                seen.errors[head.split(b"\r\n")[0].decode("latin-1") or "closed"] += 1
                return
            await asyncio.wait_for(reply.ended, _WAIT_S)
        except TimeoutError:
            seen.errors["no end"] += 1
            return
        finally:
            transport.close()
        if reply.final is None:
            seen.errors["ended without an answer"] += 1
            return
        sentences = reply.final["sentences"]
        assert isinstance(sentences, list)
        seen.texts.append((reply.text, reply.times))
        seen.sentences += len(sentences)
        seen.supported += sum(sentence["verdict"] == "supported" for sentence in sentences)

    async def keep_reading(self, after_s: float, until: float, seen: Seen) -> None:
        """Read answers one after the other until the time is up.

        The first starts after a while, so that not all begin and end together.
        """
        await asyncio.sleep(after_s)
        while time.monotonic() < until:
            try:
                await self.read(seen)
            except OSError as error:
                seen.errors[type(error).__name__] += 1
                await asyncio.sleep(0.1)

    async def try_once(self, at: float, seen: Seen) -> None:
        """Come when all are busy: how long until it is said, and with what."""
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        begun = time.monotonic()
        try:
            transport, reply = await self.open()
            head = await asyncio.wait_for(asyncio.shield(reply.head), _WAIT_S)
            transport.close()
            if head:
                seen.statuses[head.split(b" ", 2)[1].decode()] += 1
                seen.retry_after += b"\r\nretry-after:" in head.lower()
            else:
                seen.errors["over the cap: closed"] += 1
        except (OSError, TimeoutError) as error:
            seen.errors[f"over the cap: {type(error).__name__}"] += 1
        seen.waited_s.append(time.monotonic() - begun)


async def drive(client: Client, streams: int, seconds: float, extra: int) -> Seen:
    """Read with `streams` readers for `seconds`; `extra` more come in between.

    The first questions come at random times: at even ones their tokens would fall together, eight
    at a time.
    """
    seen, begun = Seen(), time.monotonic()
    spread = min(_SPREAD_S, seconds / 2)
    draw = random.Random(streams)
    readers = [
        client.keep_reading(draw.uniform(0, spread), begun + seconds, seen) for _ in range(streams)
    ]
    late = [
        client.try_once(begun + spread + (seconds - spread) * at / max(1, extra), seen)
        for at in range(extra)
    ]
    await asyncio.gather(*readers, *late)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("url")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--extra", type=int, default=0)
    parser.add_argument("--direct", action="store_true")
    asked = parser.parse_args()
    seen = asyncio.run(
        drive(Client(asked.url, direct=asked.direct), asked.streams, asked.seconds, asked.extra)
    )
    print(json.dumps(vars(seen)))


if __name__ == "__main__":
    main()
