"""Record how a question was answered: stages, durations, counts, candidates.

Candidates are recorded on request.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from app.core.errors import Cancelled
from app.core.types import ContextTrace, StageTrace, TraceItem, TraceReport

Attribute = str | int | float | bool
Attributes = Mapping[str, Attribute]


class Span(Protocol):
    """A stretch of time under way. Not shared between threads."""

    def child(self, name: str, attributes: Attributes) -> Span:
        """Begin a span inside this one."""

    def put(self, attributes: Attributes) -> None:
        """Add attributes; a later value replaces an earlier one."""

    def end(self, error: BaseException | None = None) -> None:
        """End the span; an error marks it failed with its class name. Idempotent."""


class Spans(Protocol):
    """Starts spans; thread-safe."""

    def begin(self, name: str, attributes: Attributes, traceparent: str = "") -> Span:
        """Begin a span, inside the one that surrounds this thread or task if any.

        Args:
            name: From a small fixed set.
            attributes: To begin with.
            traceparent: A caller's W3C Trace Context header; the span continues the caller's trace.
                Anything else is ignored.
        """

    def around(self, span: Span) -> AbstractContextManager[None]:
        """Make a span current for a block: spans started inside are its children."""


@contextmanager
def ended_with_block(span: Span) -> Iterator[Span]:
    """End a span with its block; failed if the block raises an error.

    A block that is left early or cancelled has not failed.
    """
    error: BaseException | None = None
    try:
        yield span
    except (GeneratorExit, Cancelled):
        span.put({"documind.cancelled": True})
        raise
    except BaseException as failure:
        error = failure
        raise
    finally:
        span.end(error)


class _Silent:
    """A span, and a source of spans, that records nothing."""

    def begin(
        self,
        name: str,  # noqa: ARG002
        attributes: Attributes,  # noqa: ARG002
        traceparent: str = "",  # noqa: ARG002
    ) -> Span:
        return self

    def child(self, name: str, attributes: Attributes) -> Span:  # noqa: ARG002
        return self

    def around(self, span: Span) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def put(self, attributes: Attributes) -> None:
        pass

    def end(self, error: BaseException | None = None) -> None:
        pass


_SILENT = _Silent()
SILENT_SPAN: Span = _SILENT
SILENT: Spans = _SILENT


@dataclass(slots=True)
class StageRecorder:
    """Filled in by the stage itself while it runs."""

    n_in: int
    n_out: int = 0
    items: tuple[TraceItem, ...] = ()


@dataclass(slots=True)
class Trace:
    """Records one question; not shared between threads.

    `full` asks stages to record candidates. `span` is the question's span for tracing; stages and
    model calls are spans inside it.
    """

    full: bool = False
    span: Span = SILENT_SPAN
    llm_calls: int = 0
    context: ContextTrace | None = None
    _stages: list[StageTrace] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, n_in: int = 0) -> Iterator[StageRecorder]:
        """Time a stage; it is recorded even when it raises."""
        recorder = StageRecorder(n_in)
        with self.within(name, {}) as span:
            start = time.perf_counter()
            try:
                yield recorder
            finally:
                elapsed_ms = (time.perf_counter() - start) * 1000
                span.put({"documind.in": recorder.n_in, "documind.out": recorder.n_out})
                self._stages.append(
                    StageTrace(
                        name, round(elapsed_ms, 3), recorder.n_in, recorder.n_out, recorder.items
                    )
                )

    @contextmanager
    def within(self, name: str, attributes: Attributes) -> Iterator[Span]:
        """Surround a block with a span; what happens there is inside it."""
        outer = self.span
        if outer is SILENT_SPAN:  # no tracing: a search has nine stages
            yield outer
            return
        try:
            with ended_with_block(outer.child(name, attributes)) as self.span:
                yield self.span
        finally:
            self.span = outer

    def items(self, rows: Iterable[TraceItem]) -> tuple[TraceItem, ...]:
        """Return candidate rows on a full trace; otherwise leave the iterable unread."""
        return tuple(rows) if self.full else ()

    def report(self) -> TraceReport:
        return TraceReport(tuple(self._stages), self.llm_calls, self.context)


Failure = TypeVar("Failure", bound=Exception)


class Calls:
    """Counts of one engine since the start of this process; thread-safe."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.count = 0
        self.seconds = 0.0
        self.failures = 0
        self._lock = threading.Lock()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the block as one call, however it ends."""
        started_s = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.count += 1
                self.seconds += time.perf_counter() - started_s

    def failed(self, error: Failure) -> Failure:
        """Count a failure, and return it to be raised."""
        with self._lock:
            self.failures += 1
        return error


def counted(*parts: object) -> Sequence[Calls]:
    """Return the counts of those parts that another process serves."""
    found = (getattr(part, "calls", None) for part in parts)
    return [calls for calls in found if isinstance(calls, Calls)]
