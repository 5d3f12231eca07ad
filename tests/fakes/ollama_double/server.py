"""The double's public face: start, script, count."""

from __future__ import annotations

import re
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from http.server import ThreadingHTTPServer
from types import TracebackType

from tests.fakes.ollama_double.engine import Engine, ScriptedEngine
from tests.fakes.ollama_double.handler import Handler
from tests.fakes.ollama_double.models import (
    DEFAULT_MODELS,
    DoubleModel,
    Fault,
    Recorded,
    Runner,
    Script,
    default_answer,
    full_name,
)

DEFAULT_CTX = 4096
FOREVER = timedelta(days=365 * 290)


class OllamaDouble(ThreadingHTTPServer):
    """A server on a free loopback port; use as a context manager."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        models: Sequence[DoubleModel] = DEFAULT_MODELS,
        *,
        version: str = "0.33.0",
        tokens_per_s: float = 0.0,
        read_tokens_per_s: float = 0.0,
        embed_ms: float = 0.0,
        port: int = 0,
        engines: Mapping[str, Engine] | None = None,
        max_queue: int = 512,
    ) -> None:
        self.models = list(models)
        self.version = version
        self.tokens_per_s = tokens_per_s
        """0: as fast as the socket takes them."""
        self.read_tokens_per_s = read_tokens_per_s
        """How fast prompts are read; 0: as fast as the engine does."""
        self._engines = dict(engines or {})
        """Real models by name; the others say what is written down."""
        self._turns: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self.embed_ms = embed_ms
        """Milliseconds per embedded text."""
        self.max_queue = max_queue
        self.requests: list[Recorded] = []
        self.claims: dict[str, object] = {}
        """Figures of a closing line that are sent instead of the true ones."""
        self.aborted = 0
        """Requests whose client went away before the end."""
        self.truncations = 0
        self.reloads = 0
        self._running: set[object] = set()
        self.most_running = 0
        """Most chat requests at once."""
        self.loaded: dict[str, Runner] = {}
        """By digest: names of one model share a runner."""
        self.lock = threading.Lock()
        self.abort_seen = threading.Condition(self.lock)
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._scripts: deque[Script] = deque()
        super().__init__(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> OllamaDouble:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop accepting; open streams are cut by their clients."""
        self.shutdown()
        self.server_close()
        self._thread.join(5)

    def say(self, *answers: str | Script) -> None:
        """Queue answers for the next chat requests that they are for."""
        self._scripts.extend(
            answer if isinstance(answer, Script) else Script.of(answer) for answer in answers
        )

    def fail(self, path: str, *faults: Fault) -> None:
        """Queue faults for the next requests of a path, one each."""
        self._faults[path].extend(faults)

    def bodies(self, path: str) -> list[dict[str, object]]:
        """Bodies received on a path."""
        return [request.body for request in self.requests if request.path == path]

    def find(self, name: str) -> DoubleModel | None:
        wanted = full_name(name).lower()
        return next(
            (model for model in self.models if full_name(model.name).lower() == wanted), None
        )

    def since(self, *release: int) -> bool:
        """Whether the version is that release or a later one."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3]) >= release

    def engine(self, model: DoubleModel) -> Engine:
        """What stands behind a model."""
        return self._engines.get(model.name) or ScriptedEngine(model, self.next_script)

    def stand_behind(self, name: str, engine: Engine) -> None:
        """Let a model of this name speak by an engine of its own."""
        self._engines[name] = engine

    def turn(self, model: DoubleModel) -> AbstractContextManager[object]:
        """One at a time for a real model; what is written down needs no turn."""
        return self._turns[model.name] if model.name in self._engines else nullcontext()

    def next_fault(self, path: str) -> Fault | None:
        with self.lock:
            return self._faults[path].popleft() if self._faults[path] else None

    def next_script(self, prompt: str, model: DoubleModel) -> Script:
        with self.lock:
            script = next((script for script in self._scripts if script.asked in prompt), None)
            if script is not None:
                self._scripts.remove(script)
                return script
        return Script.of(default_answer(prompt, model.obedient))

    def note_line(self) -> None:
        """A line of a stream leaves now; for doubles that keep times."""

    def load(
        self, model: DoubleModel, name: str, asked: object, shift: object, stay: timedelta | None
    ) -> int:
        """Keep a model in memory for a while; returns its window. Another request of window loads it again."""
        wanted = int(asked) if isinstance(asked, int | float) else model.num_ctx or DEFAULT_CTX
        shifts = shift is not False if self.since(0, 30, 0) and model.dimension is None else True
        until = datetime.now(UTC) + (stay if stay is not None else FOREVER)
        with self.lock:
            before = self.loaded.get(model.digest)
            if before is None or (before.asked, before.shifts) != (wanted, shifts):
                self.reloads += before is not None
                window = max(4, min(wanted, model.context_length))
                self.loaded[model.digest] = Runner(full_name(name), wanted, shifts, window, until)
                return window
            before.until = until
            return before.window

    def unload(self, model: DoubleModel) -> None:
        """Take a model out of memory, under all its names."""
        with self.lock:
            self.loaded.pop(model.digest, None)

    def in_memory(self) -> list[tuple[DoubleModel, Runner]]:
        """Models that have not expired, with the name that loaded them."""
        with self.lock:
            self.loaded = {
                digest: runner
                for digest, runner in self.loaded.items()
                if runner.until > datetime.now(UTC)
            }
            found = [(self.find(runner.name), runner) for runner in self.loaded.values()]
        return [(model, runner) for model, runner in found if model is not None]

    def enter(self, request: object) -> None:
        """Note that a chat request runs."""
        with self.lock:
            self._running.add(request)
            self.most_running = max(self.most_running, len(self._running))

    def leave(self, request: object) -> None:
        """Note that it does not any more."""
        with self.lock:
            self._running.discard(request)

    def note_abort(self) -> None:
        with self.abort_seen:
            self.aborted += 1
            self.abort_seen.notify_all()

    def wait_for_abort(self, count: int = 1, timeout_s: float = 5.0) -> bool:
        """Return whether so many clients have gone within the time."""
        with self.abort_seen:
            return self.abort_seen.wait_for(lambda: self.aborted >= count, timeout_s)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are counted, not printed."""
