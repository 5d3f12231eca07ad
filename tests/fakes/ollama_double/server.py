"""The double's public face: start, script, count."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from http.server import ThreadingHTTPServer
from types import TracebackType

from tests.fakes.ollama_double.handler import Handler
from tests.fakes.ollama_double.models import DEFAULT_MODELS, DoubleModel, Fault, Recorded, Script, default_answer


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
        embed_ms: float = 0.0,
        port: int = 0,
        max_queue: int = 512,
    ) -> None:
        self.models = list(models)
        self.version = version
        self.tokens_per_s = tokens_per_s
        """0: as fast as the socket takes them."""
        self.embed_ms = embed_ms
        """Milliseconds per embedded text."""
        self.max_queue = max_queue
        self.requests: list[Recorded] = []
        self.aborted = 0
        """Requests whose client went away before the end."""
        self.truncations = 0
        self.reloads = 0
        self._running: set[Handler] = set()
        self.most_running = 0
        """Most chat requests at once."""
        self.loaded: dict[str, tuple[object, ...]] = {}
        self.lock = threading.Lock()
        self.abort_seen = threading.Condition(self.lock)
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._scripts: deque[Script] = deque()
        super().__init__(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> OllamaDouble:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop accepting; open streams are cut by their clients."""
        self.shutdown()
        self.server_close()
        self._thread.join(5)

    def say(self, *answers: str | Script) -> None:
        """Queue answers for the next chat requests that they are for."""
        self._scripts.extend(answer if isinstance(answer, Script) else Script.of(answer) for answer in answers)

    def fail(self, path: str, *faults: Fault) -> None:
        """Queue faults for the next requests of a path, one each."""
        self._faults[path].extend(faults)

    def bodies(self, path: str) -> list[dict[str, object]]:
        """Bodies received on a path."""
        return [request.body for request in self.requests if request.path == path]

    def find(self, name: str) -> DoubleModel | None:
        wanted = name.lower() if ":" in name else f"{name.lower()}:latest"
        return next((model for model in self.models if model.name.lower() in {wanted, name.lower()}), None)

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

    def load(self, model: DoubleModel, key: tuple[object, ...]) -> None:
        """Note what a model is loaded with; another key loads it again."""
        with self.lock:
            before = self.loaded.get(model.name)
            self.reloads += before is not None and before != key
            self.loaded[model.name] = key

    def enter(self, request: Handler) -> None:
        """Note that a chat request runs."""
        with self.lock:
            self._running.add(request)
            self.most_running = max(self.most_running, len(self._running))

    def leave(self, request: Handler) -> None:
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
