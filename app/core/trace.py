"""Record how a question was answered: stages, durations, counts, candidates.

Candidates are recorded on request.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.core.spans import SILENT_SPAN, Attributes, Span, ended_with_block
from app.core.types import ContextTrace, Disagreement, StageTrace, TraceItem, TraceReport


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
    disagreements: tuple[Disagreement, ...] = ()
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
        """Return what was recorded so far."""
        return TraceReport(tuple(self._stages), self.llm_calls, self.context, self.disagreements)
