"""Parse in warm child processes under limits: a hostile file costs one child.

A child is told apart from the server in memory, processor time, open files and wall clock, cannot
write files, gets an empty environment (no keys) and no descriptor but its end of a socket pair.
What it answers is capped and read as text.

References:
    Apache Tika, "The Robustness of Apache Tika": process isolation is primary, limits inside a
    library only reduce.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict, fields, replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Self

from app.core.cancel import CancelToken
from app.core.errors import Busy, Cancelled, DocuMindError, InputError, Unreadable, error_classes
from app.core.labels import found_labels
from app.core.serialization import from_json
from app.core.types import Highlight, Listing, PageBoxes, PageText, PageWords, ParsedDocument
from app.ingest.options import IngestOptions

# Exchange a JSON header and a body between server and parsing child.

_TITLE_CHARACTERS = 2_000
_AUTHORS = 1_000

Header = Mapping[str, Any]
"""Decoded JSON; what a child answers is checked before it is used."""


def send(pipe: Connection, header: Mapping[str, object], body: bytes = b"") -> None:
    pipe.send_bytes(json.dumps(header, default=_fields).encode())
    pipe.send_bytes(body)


def receive(pipe: Connection, most_bytes: int | None = None) -> tuple[Header, bytes]:
    """Return the next header and body, each of `most_bytes` at most; nothing is unpickled.

    Raises:
        EOFError: The other side closed.
        OSError: It announced more bytes.
    """
    return json.loads(pipe.recv_bytes(most_bytes)), pipe.recv_bytes(most_bytes)


def pack_document(parsed: ParsedDocument) -> tuple[dict[str, object], bytes]:
    return {"document": replace(parsed, text="")}, parsed.text.encode()


def unpack_document(header: Header, body: bytes) -> ParsedDocument:
    """Return an answer's document, names cut for the expressions that read them without a limit."""
    found = from_json(ParsedDocument, {**header["document"], "text": body.decode()})
    cut, labels = slice(_TITLE_CHARACTERS), header["document"]["labels"]
    return replace(
        found,
        headings=tuple(replace(one, title=one.title[cut]) for one in found.headings),
        title=None if found.title is None else found.title[cut],
        authors=tuple(author[cut] for author in found.authors[:_AUTHORS]),
        labels=found_labels(labels["tags"], labels["metadata"]),
    )


def _fields(value: object) -> dict[str, object]:
    """Return a value object by the names of its fields, for JSON."""
    return {one.name: getattr(value, one.name) for one in fields(value)}  # type: ignore[arg-type]


def pack_error(error: DocuMindError) -> dict[str, object]:
    return {"error": type(error).__name__, "message": error.message}


def unpack_error(header: Header) -> DocuMindError:
    """Return the error of an answer; a class that is no input error becomes the base."""
    found = error_classes().get(str(header["error"]), InputError)
    return (found if issubclass(found, InputError) else InputError)(str(header["message"]))


# Start a parsing process in its confines, and talk to it.

_START_TIMEOUT_S = 60.0
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
    "from app.ingest.sandbox_child import main; main(int(sys.argv[2]), sys.argv[3])"
)
# One thread and one arena: the address space is limited, and each reserves tens of megabytes.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "LC_ALL": "C.UTF-8"}


class SandboxProcess:
    def __init__(self, options: IngestOptions) -> None:
        self._options = options
        self.parses = 0
        self._control, theirs = Pipe()
        paths = [str(Path(__file__).resolve().parents[2]), *(path for path in sys.path if path)]
        told = (json.dumps(paths), str(theirs.fileno()), json.dumps(asdict(options)))
        command = [sys.executable, "-I", "-S", "-B", "-c", _BOOT, *told]
        with theirs, ExitStack() as unless_started:
            unless_started.callback(self._control.close)
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_ENVIRONMENT,
                pass_fds=(theirs.fileno(),),
                # Ctrl-C in a terminal is for the server alone, and a kill for all of the group.
                start_new_session=True,
            )
            unless_started.pop_all()
        self._ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait until the child has its imports behind it.

        Raises:
            Busy: It did not start; too little memory, most likely.
        """
        if self._ready:
            return
        try:
            is_ready = self._control.poll(_START_TIMEOUT_S)
            if is_ready:
                receive(self._control)
        except (EOFError, OSError):
            is_ready = False
        if not is_ready:
            self.kill()
            raise Busy(
                "the parsing process did not start (too little memory?); try again in a moment",
                retry_after_s=5,
            )
        self._ready = True

    def call(self, header: Mapping[str, object], body: bytes) -> tuple[Header, bytes] | None:
        """Send a request and return the answer, None when the child died over it.

        Raises:
            TimeoutError: The wall clock ran out.
            OSError: The answer passes the output cap, or our end was closed.
        """
        self.parses += 1
        deadline = time.monotonic() + self._options.parse_wall_s
        late = threading.Timer(self._options.parse_wall_s, self.stop)
        late.daemon = True  # a server that ends does not wait for it
        late.start()
        try:
            send(self._control, header, body)
            return receive(self._control, self._options.parse_output_bytes)
        except (EOFError, ConnectionError) as exc:
            if time.monotonic() >= deadline:
                raise TimeoutError from exc
            return None
        finally:
            late.cancel()

    def stop(self) -> None:
        """Make the child and what it started end; a call under way returns None."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def kill(self) -> int:
        """End the child and return how it ended (a negative number is a signal)."""
        self.stop()
        self._control.close()
        return self._process.wait()

    def exit_code(self) -> int:
        """Return how a child that closed its socket ended."""
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return self.kill()


PARSES_PER_CHILD = 200
"""Then a fresh one takes over: leaks of native libraries stay bounded, and start-up (0.3 s) is
1-2 ms per parse."""
SLOT_WAIT_S = 30.0
"""A client that waits for a text is told then that all children are busy."""
_SLOT_STEP_S = 0.5
"""How soon a client that has left is noticed in the queue."""


class SandboxedParser:
    """A Parser that sends requests to a pool of children; thread-safe.

    A context manager. Children start with the first request, or with `warm`. One that breaks a
    limit is replaced, and its file is Unreadable for good: the same file would break the limit
    again.
    """

    def __init__(self, options: IngestOptions) -> None:
        self._options = options
        self._slots: queue.LifoQueue[SandboxProcess | None] = queue.LifoQueue()
        for _ in range(max(1, options.parse_processes)):
            self._slots.put(None)
        self._children: set[SandboxProcess] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm(self) -> None:
        """Start the child that the next parse takes, without waiting for it."""
        with suppress(queue.Empty):
            child = self._slots.get_nowait()
            try:
                child = child if child is not None and child.alive else self._start()
            finally:
                self._slots.put(child)

    def close(self) -> None:
        """End all children; parses under way are Cancelled."""
        with self._lock:
            self._closed = True
            children, self._children = list(self._children), set()
        for child in children:
            child.kill()

    @property
    def pids(self) -> list[int]:
        with self._lock:
            return [child.pid for child in self._children if child.alive]

    def parse(
        self,
        content: bytes | Path,
        filename: str,
        cancel: CancelToken | None = None,
        words: Sequence[PageWords] = (),
    ) -> ParsedDocument:
        """Return the parsed document; see `Parser`. One whose parse broke a limit is Unreadable."""
        request = {"operation": "parse", "words": words}
        answer = self._ask(request, content, filename, cancel)
        try:
            return unpack_document(*answer)
        except (KeyError, TypeError, ValueError) as exc:
            raise Unreadable(
                f"{filename!r} made the parser answer nonsense ({exc}); save it again and upload"
                " that"
            ) from exc

    def addresses(self, content: bytes, base: str) -> Listing:
        header, _ = self._ask({"operation": "addresses"}, content, base)
        return from_json(Listing, header["listing"])

    def page_boxes(
        self, content: bytes | Path, pages: Sequence[PageText], words: Sequence[PageWords] = ()
    ) -> tuple[PageBoxes, ...]:
        request = {"operation": "boxes", "pages": pages, "words": words}
        header, _ = self._ask(request, content, "the original")
        return from_json(tuple[PageBoxes, ...], header["boxes"])

    def highlighted(
        self,
        content: bytes | Path,
        highlights: Sequence[Highlight],
        words: Sequence[PageWords] = (),
    ) -> bytes:
        request = {"operation": "highlight", "highlights": highlights, "words": words}
        return self._ask(request, content, "the original")[1]

    def page_words(
        self, content: bytes | Path, number: int, cancel: CancelToken | None = None
    ) -> PageWords:
        request = {"operation": "words", "page": number}
        header, _ = self._ask(request, content, f"page {number}", cancel)
        return from_json(PageWords, header["words"])

    def _ask(
        self,
        request: Mapping[str, object],
        content: bytes | Path,
        filename: str,
        cancel: CancelToken | None = None,
    ) -> tuple[Header, bytes]:
        path = str(content.absolute()) if isinstance(content, Path) else None
        body = content if isinstance(content, bytes) else b""
        child = self._free_slot(cancel)
        kept: SandboxProcess | None = None
        try:
            child = self._ready_child(child)
            whole = {**request, "path": path, "filename": filename}
            with cancel.calling(child.stop) if cancel else nullcontext():
                answer = self._call(child, whole, body, filename)
            kept = child
        except Unreadable:
            if cancel is not None:
                cancel.raise_if_cancelled()  # which is why the child ended
            raise
        finally:
            if kept is None and child is not None:
                self._drop(child)
            self._slots.put(kept)
        if "error" in answer[0]:
            raise unpack_error(answer[0])
        return answer

    def _free_slot(self, cancel: CancelToken | None) -> SandboxProcess | None:
        """Return a slot's child, waited for as long as it takes for work that no one waits for."""
        if cancel is None:
            return self._slots.get()
        waited_s = 0.0
        while waited_s < SLOT_WAIT_S:
            cancel.raise_if_cancelled()
            with suppress(queue.Empty):
                return self._slots.get(timeout=_SLOT_STEP_S)
            waited_s += _SLOT_STEP_S
        raise Busy("all parsers are at work on other files; try again later", retry_after_s=30)

    def _ready_child(self, child: SandboxProcess | None) -> SandboxProcess:
        if child is not None and (child.parses >= PARSES_PER_CHILD or not child.alive):
            self._drop(child)
            child = None
        if child is None:
            child = self._start()
        try:
            child.wait_ready()
        except Busy:
            self._drop(child)
            raise
        return child

    def _call(
        self, child: SandboxProcess, request: dict[str, object], body: bytes, filename: str
    ) -> tuple[Header, bytes]:
        limits = self._options
        try:
            answer = child.call(request, body)
        except TimeoutError as exc:
            late = f"took longer than {limits.parse_wall_s:g} s"
            raise self._refusal(filename, late) from exc
        except OSError as exc:
            large = f"holds more text than {limits.parse_output_bytes:,} bytes"
            raise self._refusal(filename, large) from exc
        if answer is None:
            raise self._refusal(filename, self._death(child.exit_code()))
        return answer

    def _refusal(self, filename: str, reason: str) -> Unreadable | Cancelled:
        if self._closed:
            return Cancelled("the parser was closed while it worked")
        return Unreadable(
            f"{filename!r} {reason} while it was parsed, so the parse was stopped; save it again"
            " or split it and upload that"
        )

    def _death(self, code: int) -> str:
        if code == -signal.SIGXCPU:
            return f"needed more than {self._options.parse_cpu_s} s of processor time"
        if code == -signal.SIGKILL:
            return "was stopped by the system (out of memory?)"
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        limit = math.ceil(self._options.parse_memory_bytes / 1024**2)
        return f"crashed the parser ({name}; {limit} MB of memory are allowed)"

    def _start(self) -> SandboxProcess:
        with self._lock:
            if self._closed:
                raise Cancelled("the parser is closed")
            child = SandboxProcess(self._options)
            self._children.add(child)
            return child

    def _drop(self, child: SandboxProcess) -> None:
        with self._lock:
            self._children.discard(child)
        child.kill()
