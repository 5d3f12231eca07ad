"""Define spans: named durations with attributes, for external tracing.

A span never carries a question, an answer, a file name or an error's message: class names, counts,
models and durations only. Without a watcher `SILENT` costs a call that does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from app.core.errors import Cancelled

Attribute = str | int | float | bool
Attributes = Mapping[str, Attribute]


class Span(Protocol):
    """A stretch of time under way. Not shared between threads."""

    def child(self, name: str, attributes: Attributes) -> Span:
        """Begin a span inside this one."""
        ...

    def put(self, attributes: Attributes) -> None:
        """Add attributes; a later value replaces an earlier one."""
        ...

    def end(self, error: BaseException | None = None) -> None:
        """End the span; an error marks it failed with its class name. Idempotent."""
        ...


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
        ...

    def around(self, span: Span) -> AbstractContextManager[None]:
        """Make a span current for a block: spans started inside are its children."""
        ...


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


class _SilentSpan:
    """Records nothing."""

    def child(self, name: str, attributes: Attributes) -> Span:  # noqa: ARG002
        """Return itself."""
        return self

    def put(self, attributes: Attributes) -> None:
        """Forget them."""

    def end(self, error: BaseException | None = None) -> None:
        """Do nothing."""


class _SilentSpans:
    """Begins spans that record nothing."""

    def begin(self, name: str, attributes: Attributes, traceparent: str = "") -> Span:  # noqa: ARG002
        """Return the silent span."""
        return SILENT_SPAN

    def around(self, span: Span) -> AbstractContextManager[None]:  # noqa: ARG002
        """Surround with nothing."""
        return nullcontext()


SILENT_SPAN: Span = _SilentSpan()
SILENT: Spans = _SilentSpans()
