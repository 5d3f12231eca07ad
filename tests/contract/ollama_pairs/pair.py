"""A request with what its reply must be.

`{chat}` and `{embed}` stand for a model that answers and one that embeds.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

Json = dict[str, object]
JSON = "application/json; charset=utf-8"
PLAIN_JSON = "application/json"
"""What the runner says passes through without a charset."""
FIRST, ALL = (0, 0, 1), (999, 0, 0)
TOO_LONG = "the input length exceeds the context length"
LLAMA_SERVER = (0, 30, 0)
"""The release from which llama-server does the work."""


@dataclass(frozen=True)
class Received:
    """A whole reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.body.split(b"\n") if line.strip()]

    @property
    def value(self) -> Json:
        found: Json = json.loads(self.body)
        return found

    def text(self, name: str) -> str:
        return str(self.value.get(name))


Holds = Callable[[Received], bool]


@dataclass(frozen=True)
class Pair:
    """A request and what must come back: an error's text as a pattern, or anything that `holds`."""

    name: str
    path: str
    body: object = None
    """JSON when it is a dict or list, else sent as it is."""
    status: int = 200
    error: str = ""
    holds: Holds | None = None
    method: str = "POST"
    kind: str | None = JSON
    """Content type; None where there is no body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    since: tuple[int, int, int] = FIRST
    until: tuple[int, int, int] = ALL


def ask(url: str, pair: Pair, *, chat: str, embed: str) -> Received:
    """Send a pair's request as it stands, with no client in between."""
    content = json.dumps(pair.body) if isinstance(pair.body, dict | list) else str(pair.body or "")
    content = content.replace("{chat}", chat).replace("{embed}", embed)
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    try:
        connection.request(
            pair.method, pair.path, content.encode() if content else None, dict(pair.headers)
        )
        reply = connection.getresponse()
        return Received(
            reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        )
    finally:
        connection.close()


def wrong(pair: Pair, got: Received, *, chat: str, embed: str) -> str:
    """What differs from the pair, empty when nothing does."""
    shown = f"{got.status} {got.headers.get('content-type')} {got.body[:300]!r}"
    if got.status != pair.status:
        return f"status {pair.status} expected: {shown}"
    if pair.kind is not None and got.headers.get("content-type", "") != pair.kind:
        return f"content type {pair.kind!r} expected: {shown}"
    if pair.error:
        wanted = pair.error.replace("{chat}", re.escape(chat)).replace("{embed}", re.escape(embed))
        if re.fullmatch(wanted, got.text("error"), re.DOTALL) is None:
            return f"error {wanted!r} expected: {shown}"
    if pair.holds is not None and not pair.holds(got):
        return f"does not hold: {shown}"
    return ""


def turn(text: str = "Say the word: river", **more: object) -> Json:
    options = {"temperature": 0, "num_predict": 8, "num_ctx": 2048, **dict(more.pop("options", {}))}  # type: ignore[call-overload]
    return {
        "model": "{chat}",
        "messages": [{"role": "user", "content": text}],
        "options": options,
        "stream": False,
        **more,
    }


def embed(value: object, **more: object) -> Json:
    return {"model": "{embed}", "input": value, **more}


def holds_at(pair: Pair, version: str) -> bool:
    """Whether a pair is for a release; source builds (0.0.0) are older than llama-server here, as the one that was read."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    numbers = (0, 24, 0) if numbers == (0, 0, 0) else numbers
    return pair.since <= numbers < pair.until
