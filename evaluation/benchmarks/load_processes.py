"""The processes of the load test: a model host of fixed rate, readers of streams, a watched server.

    python -m evaluation.benchmarks.load_processes host LOG        prints its address; writes LOG when stdin is closed
    python -m evaluation.benchmarks.load_processes read URL STREAMS SECONDS EXTRA [direct]
    python -m evaluation.benchmarks.load_processes watch GAPS      the server, configured by the environment
    python -m evaluation.benchmarks.load_processes idle GAPS       the watch alone: what this machine does to any process

`time.monotonic_ns` is one clock for all processes of a Linux machine, so that the host's log and a
reader's own times tell how long a token was under way.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import accumulate, cycle
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import FastAPI
from pydantic import TypeAdapter

from tests.fakes.ollama_double import OllamaDouble, Script
from tests.fakes.ollama_double.models import DoubleModel

TOKENS_PER_S = 20.0
Times = list[tuple[int, int]]
"""How many characters of an answer were there, and when (ns)."""
Sent = dict[str, Times]
"""By the text of the answer."""

FACTS = (
    "Copper is a soft red metal that was worked before any other metal of daily use",
    "It melts at 1085 degrees Celsius and boils at 2562 degrees Celsius",
    "Its density near room temperature is 8.96 grams per cubic centimetre",
    "The oldest copper mines of the Timna valley were dug more than 6000 years ago",
    "Roman copper came mainly from Cyprus, after which the metal is named",
    "A green layer of carbonate protects copper roofs from further corrosion",
    "Bronze is an alloy of copper with about 12 percent tin",
    "Brass is an alloy of copper with zinc, and it is easier to cast than copper itself",
    "Only silver conducts electricity better than copper at room temperature",
    "About 60 percent of all copper is used for wires and cables",
    "Chile has been the largest producer of copper for more than 30 years",
    "Copper can be recycled again and again without losing any of its quality",
    "A third of the copper that is used each year comes from recycled scrap",
    "Octopuses carry oxygen in blood that contains copper instead of iron",
    "Electrolytic refining brings copper to a purity of 99.99 percent",
    "The Statue of Liberty is covered with 80 tonnes of copper sheet",
)
QUESTIONS = (
    "What is the melting point of copper?",
    "Which alloys contain copper, and what are they used for?",
    "Where was copper mined in antiquity?",
    "How is copper refined to a high purity?",
    "Why are wires made of copper?",
    "Which animals need copper, and what for?",
    "How much copper is recycled?",
    "What happens to copper roofs in the weather?",
)
SENTENCES = 13
"""Of an answer; about 200 tokens."""
# A thousand openings for each fact: hardly a sentence is said twice, so that none is remembered by
# the check of another.
_ADVERBS = "Moreover,In short,Besides,Indeed,Here,In fact,Again,Also,Notably,In addition".split(",")
_SOURCES = "notes passages pages texts documents sources records papers files excerpts".split()
_VERBS = "say state tell hold report write explain mention note show".split()
_PASSAGE = re.compile(r'<passage-\w+ n="(\d+)"[^>]*>\n(.*?)\n</passage-', re.DOTALL)


def document() -> str:
    """Return the only document: every fact, in paragraphs of four sentences."""
    paragraphs = (". ".join(FACTS[at : at + 4]) + "." for at in range(0, len(FACTS), 4))
    return "Copper\n\n" + "\n\n".join(paragraphs) + "\n"


class SteadyHost(OllamaDouble):
    """Answers with reworded sentences of the passages it is shown, a different text each time."""

    def __init__(self) -> None:
        super().__init__(tokens_per_s=TOKENS_PER_S)
        self._draw = random.Random(8)
        self._answers: list[tuple[Script, list[int]]] = []
        self._current = threading.local()

    def next_script(self, prompt: str, model: DoubleModel) -> Script:
        del model
        held = [(fact, n) for n, text in _PASSAGE.findall(prompt) for fact in FACTS if fact in text]
        with self.lock:
            pick = self._draw.choice
            said = [
                f"{pick(_ADVERBS)}, the {pick(_SOURCES)} {pick(_VERBS)} that"
                f" {fact[0].lower()}{fact[1:]} [{n}]."
                for fact, n in (pick(held) for _ in range(SENTENCES if held else 0))
            ]
            script = Script.of(" ".join(said))
            self._current.times = []
            self._answers.append((script, self._current.times))
        return script

    def note_line(self) -> None:
        """Keep the time of a line that leaves now; each request has its own thread."""
        self._current.times.append(time.monotonic_ns())

    def log(self) -> Sent:
        return {
            "".join(script.tokens): list(
                zip(accumulate(map(len, script.tokens)), times, strict=False)
            )
            for script, times in self._answers
        }


# --- readers

_WAIT_S = 60.0
"""For a whole answer, which takes ten seconds."""
_SPREAD_S = 10.0
"""The first answers begin within this time: the length of one."""


@dataclass
class Seen:
    """Tokens and times that the readers of one run received."""

    texts: list[tuple[str, Times]] = field(default_factory=list)
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


class Readers:
    """Ask one server, or the model host itself: then the machine and the measurement are measured."""

    def __init__(self, url: str, *, direct: bool) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._direct = direct
        self._questions = cycle(QUESTIONS)
        self.seen = Seen()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        """Ask for one answer as a stream; return the head of the reply."""
        question = next(self._questions)
        path, body = "/api/v1/query", {"question": question, "library": "papers", "stream": True}
        if self._direct:
            prompt = f'<passage-0 n="1">\n{document()}\n</passage-0>\n{question}'
            messages = [{"role": "user", "content": prompt}]
            path, body = "/api/chat", {"model": "llama3.2", "messages": messages, "stream": True}
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=1 << 22)
        content = json.dumps(body).encode()
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        return reader, writer, await reader.readuntil(b"\r\n\r\n")

    async def _read(self) -> None:
        """Read one answer to its end."""
        reader, writer, head = await self._open()
        try:
            if b" 200 " not in head.split(b"\r\n")[0]:
                self.seen.errors[head.split(b"\r\n")[0].decode("latin-1")] += 1
                return
            text, times, final = "", Times(), None
            while final is None:
                piece = await reader.readuntil(b"\n" if self._direct else b"\n\n")
                token, final = _lines(piece) if self._direct else _events(piece)
                if token:
                    text += token
                    times.append((len(text), time.monotonic_ns()))
            self.seen.texts.append((text, times))
            self.seen.sentences += len(final)
            self.seen.supported += sum(one["verdict"] == "supported" for one in final)
        finally:
            writer.close()

    async def keep_reading(self, after_s: float, until: float) -> None:
        """Read answers one after the other until the time is up.

        The first starts after a while, so that not all begin and end together.
        """
        await asyncio.sleep(after_s)
        while time.monotonic() < until:
            try:
                await asyncio.wait_for(self._read(), _WAIT_S)
            except (OSError, EOFError, TimeoutError) as error:
                self.seen.errors[type(error).__name__] += 1
                await asyncio.sleep(0.1)

    async def try_once(self, at: float) -> None:
        """Come when all are busy: how long until it is said, and with what."""
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        begun = time.monotonic()
        try:
            _, writer, head = await asyncio.wait_for(self._open(), _WAIT_S)
            writer.close()
            self.seen.statuses[head.split(b" ", 2)[1].decode()] += 1
            self.seen.retry_after += b"\r\nretry-after:" in head.lower()
        except (OSError, EOFError, TimeoutError) as error:
            self.seen.errors[f"over the cap: {type(error).__name__}"] += 1
        self.seen.waited_s.append(time.monotonic() - begun)

    async def drive(self, streams: int, seconds: float, extra: int) -> Seen:
        """Read with `streams` readers for `seconds`; `extra` more come in between.

        The first questions come at random times: at even ones their tokens would fall together,
        eight at a time.
        """
        begun = time.monotonic()
        spread = min(_SPREAD_S, seconds / 2)
        draw = random.Random(streams)
        step = (seconds - spread) / max(1, extra)
        await asyncio.gather(
            *(self.keep_reading(draw.uniform(0, spread), begun + seconds) for _ in range(streams)),
            *(self.try_once(begun + spread + step * at) for at in range(extra)),
        )
        return self.seen


def _events(piece: bytes) -> tuple[str, list[dict[str, str]] | None]:
    """Return the text of a server-sent event of DocuMind, and the sentences of the last one."""
    name, _, data = piece.partition(b"event: ")[2].partition(b"\ndata: ")
    if name not in {b"token", b"final"}:
        return "", None
    body = json.loads(data)
    return ("", body["sentences"]) if name == b"final" else (str(body["text"]), None)


def _lines(piece: bytes) -> tuple[str, list[dict[str, str]] | None]:
    """Return the text of a line of the model host; a line that is no object frames a chunk."""
    if not piece.startswith(b"{"):
        return "", None
    body = json.loads(piece)
    return str(body["message"]["content"]), [] if body["done"] else None


# --- the watch on the event loop

PAUSE_S = 0.005


@asynccontextmanager
async def watched(path: Path) -> AsyncIterator[None]:
    """Write how much later than asked each pause of the loop ended: `seconds gap_ms` a line."""
    samples: list[tuple[float, float]] = []

    async def sample() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(PAUSE_S)
            late_ms = max(0.0, (time.perf_counter() - begun - PAUSE_S) * 1000)
            samples.append((time.monotonic(), late_ms))

    task = asyncio.create_task(sample())
    try:
        yield
    finally:
        task.cancel()
        path.write_text("".join(f"{at:.4f} {late:.3f}\n" for at, late in samples))


async def _idle(path: Path) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with watched(path):
        await ended.wait()


def _serve(path: Path) -> None:
    from app.api.app import create_app  # noqa: PLC0415  # the other processes need none of it
    from app.api.serving import configure, make_server  # noqa: PLC0415
    from app.settings import Settings  # noqa: PLC0415

    settings = Settings()
    configure(settings.log_level, as_json=settings.log_json)
    app = create_app(settings)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(served: FastAPI) -> AsyncIterator[object]:
        async with inner(served) as state, watched(path):
            yield state

    app.router.lifespan_context = lifespan  # type: ignore[assignment]  # FastAPI types it by its own state
    make_server(app, settings).run()


def main(role: str, where: str, *rest: str) -> None:
    if role == "host":
        host = SteadyHost()
        with host:
            print(host.url, flush=True)
            sys.stdin.read()
        Path(where).write_text(json.dumps(host.log()), "utf-8")
    elif role == "read":
        streams, seconds, extra, *direct = rest
        readers = Readers(where, direct=bool(direct))
        seen = asyncio.run(readers.drive(int(streams), float(seconds), int(extra)))
        print(TypeAdapter(Seen).dump_json(seen).decode())
    elif role == "watch":
        _serve(Path(where))
    else:
        asyncio.run(_idle(Path(where)))


if __name__ == "__main__":
    main(*sys.argv[1:])
