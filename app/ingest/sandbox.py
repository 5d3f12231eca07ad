"""Parse in warm child processes under limits: a hostile file costs one child.

A child is told apart from the server in memory, processor time, open files and wall clock, cannot
write files, gets an empty environment (no keys) and no descriptor but its end of a socket pair.
What it answers is capped and read as text.

References:
    Apache Tika, "The Robustness of Apache Tika": process isolation is primary, limits inside a
    library only reduce.
"""

from __future__ import annotations

import math
import queue
import signal
import threading
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from app.core.cancel import CancelToken
from app.core.errors import Busy, Cancelled, Unreadable
from app.core.types import PageBoxes, PageText, ParsedDocument
from app.ingest.options import IngestOptions
from app.ingest.sandbox_process import SandboxProcess
from app.ingest.sandbox_wire import (
    FrameTooLarge,
    Header,
    pack_pages,
    unpack_boxes,
    unpack_document,
    unpack_error,
)

PARSES_PER_CHILD = 200
"""Then a fresh one takes over: leaks of native libraries stay bounded, and start-up (0.3 s) is
1-2 ms per parse."""
SLOT_WAIT_S = 30.0
"""A client that waits for a text is told then that all children are busy."""
_SLOT_STEP_S = 0.5
"""How soon a client that has left is noticed in the queue."""


class SandboxedParser:
    """Parser and PageLocator that send requests to a pool of children; thread-safe.

    A context manager. Children start with the first request, or with `warm`. One that breaks a
    limit is replaced, and its file is Unreadable for good: the same file would break the limit
    again.
    """

    def __init__(self, options: IngestOptions) -> None:
        """Prepare a pool of `options.parse_processes` children."""
        self._options = options
        self._slots: queue.LifoQueue[SandboxProcess | None] = queue.LifoQueue()
        for _ in range(max(1, options.parse_processes)):
            self._slots.put(None)
        self._children: set[SandboxProcess] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        """Return the parser itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all children."""
        self.close()

    def warm(self) -> None:
        """Start the children of free slots without waiting for them.

        The next parses find them ready.
        """
        free = []
        while True:
            try:
                free.append(self._slots.get_nowait())
            except queue.Empty:
                break
        try:
            free = [child if child is not None and child.alive else self._start() for child in free]
        finally:
            for child in free:
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
        """Process ids of the living children."""
        with self._lock:
            return [child.pid for child in self._children if child.alive]

    def parse(
        self, content: bytes | Path, filename: str, cancel: CancelToken | None = None
    ) -> ParsedDocument:
        """Return the parsed document; see `Parser`.

        Raises:
            UnsupportedType: No parser for this content.
            Encrypted: It wants a password.
            NoTextLayer: Pages without text.
            TooLarge: It passes a limit of the options.
            Unreadable: It is empty or damaged, or its parse broke a limit or crashed; trying again
                cannot help.
            Cancelled: The parser was closed in between, or `cancel` was cancelled.
            Busy: A child could not be started, or, with `cancel`, none was free in time.
        """
        answer = self._ask({"operation": "parse"}, content, filename, cancel)
        try:
            return unpack_document(*answer)
        except (KeyError, TypeError, ValueError) as exc:
            raise Unreadable(
                f"{filename!r} made the parser answer nonsense ({exc}); save it again and upload"
                " that"
            ) from exc

    def page_boxes(self, content: bytes | Path, pages: Sequence[PageText]) -> tuple[PageBoxes, ...]:
        """Return the boxes of text spans on the pages of a PDF; see `PageLocator`."""
        header, _ = self._ask(
            {"operation": "boxes", "pages": pack_pages(pages)}, content, "the original"
        )
        return unpack_boxes(header)

    def _ask(
        self,
        request: dict[str, object],
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
            with cancel.calling(child.stop) if cancel else nullcontext():
                answer = self._call(
                    child, {**request, "path": path, "filename": filename}, body, filename
                )
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
        """Return a slot's child, waited for as long as it takes for work that nobody waits for."""
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
        try:
            answer = child.call(request, body)
        except TimeoutError as exc:
            raise self._refusal(
                filename, f"took longer than {self._options.parse_wall_s:g} s"
            ) from exc
        except FrameTooLarge as exc:
            raise self._refusal(
                filename, f"holds more text than {self._options.parse_output_bytes:,} bytes ({exc})"
            ) from exc
        except OSError as exc:  # our end was closed under us
            raise Cancelled("the parser was closed while it worked") from exc
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
