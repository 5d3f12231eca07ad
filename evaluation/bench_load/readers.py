"""The load generator: readers of event streams in a process of their own.

    python -m evaluation.bench_load.readers URL --streams 64 --seconds 60 [--extra 136]

Prints one JSON object: how long tokens were under way, what went wrong, and how long those over the cap waited for their refusal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

BODY = json.dumps({"question": "What is the melting point of copper?", "library": "papers", "stream": True}).encode()
STAMP = re.compile(rb"t(\d{12,})(?=[^\d])")
_WAIT_S = 30.0
_SPREAD_S = 10.0
"""The first answers begin within this time: the length of one."""


@dataclass
class Seen:
    """What the readers of one run have seen."""

    under_way_ms: list[float] = field(default_factory=list)
    """Per token, from the model host's send to our read."""
    answers: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    """Of the clients over the cap."""
    waited_s: list[float] = field(default_factory=list)
    """Of the clients over the cap: until the status line."""
    retry_after: int = 0
    """Refusals that said when to come back."""


async def open_stream(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for one answer as a stream."""
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST /api/v1/query HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + f"Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
    await writer.drain()
    return reader, writer


async def read_answer(host: str, port: int, seen: Seen) -> None:
    """Read one answer to its end, and note when each token came."""
    reader, writer = await open_stream(host, port)
    try:
        status = await asyncio.wait_for(reader.readline(), _WAIT_S)
        if b" 200 " not in status:
            seen.errors[status.decode("latin-1").strip()] += 1
            return
        rest, last = b"", b""
        while block := await asyncio.wait_for(reader.read(65536), _WAIT_S):
            now = time.monotonic_ns()
            rest += block
            end = rest.rfind(b"\n") + 1
            seen.under_way_ms += [(now - int(stamp)) / 1e6 for stamp in _tokens(rest[:end])]
            last, rest = (last + rest[:end])[-65536:], rest[end:]
        if b"event: final" in last and b"event: error" not in last:
            seen.answers += 1
        else:
            seen.errors["ended without an answer"] += 1
    except TimeoutError:
        seen.errors["silence"] += 1
    finally:
        writer.close()


def _tokens(text: bytes) -> list[bytes]:
    """Return the stamps of token events; the closing event repeats the whole text."""
    return [stamp for event in text.split(b"event: ") if event.startswith(b"token") for stamp in STAMP.findall(event)]


async def keep_reading(host: str, port: int, after_s: float, until: float, seen: Seen) -> None:
    """One answer after the other until the time is up; the first one after a while, so that not all begin and end together."""
    await asyncio.sleep(after_s)
    while time.monotonic() < until:
        try:
            await read_answer(host, port, seen)
        except OSError as error:
            seen.errors[type(error).__name__] += 1
            await asyncio.sleep(0.1)


async def try_once(host: str, port: int, at: float, seen: Seen) -> None:
    """Come when all are busy: how long until it is said, and with what."""
    await asyncio.sleep(max(0.0, at - time.monotonic()))
    begun = time.monotonic()
    try:
        reader, writer = await open_stream(host, port)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _WAIT_S)
        seen.waited_s.append(time.monotonic() - begun)
        seen.statuses[head.split(b" ", 2)[1].decode()] += 1
        seen.retry_after += b"\r\nretry-after:" in head.lower()
        writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        seen.waited_s.append(time.monotonic() - begun)
        seen.errors[f"over the cap: {type(error).__name__}"] += 1


async def run(url: str, streams: int, seconds: float, extra: int) -> Seen:
    """Read with so many at once for so long; `extra` more come spread over the second half."""
    parts, seen = urlsplit(url), Seen()
    host, port = parts.hostname or "", parts.port or 80
    begun = time.monotonic()
    readers = [keep_reading(host, port, _SPREAD_S * at / streams, begun + seconds, seen) for at in range(streams)]
    half = seconds / 2
    late = [try_once(host, port, begun + half + half * 0.6 * at / max(1, extra), seen) for at in range(extra)]
    await asyncio.gather(*readers, *late)
    return seen


def main() -> None:
    """Read, and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("url")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--extra", type=int, default=0)
    asked = parser.parse_args()
    print(json.dumps(vars(asyncio.run(run(asked.url, asked.streams, asked.seconds, asked.extra)))))


if __name__ == "__main__":
    main()
