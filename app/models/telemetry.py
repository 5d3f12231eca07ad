"""Make spans with OpenTelemetry; the only module that imports it.

Nothing here runs unless a collector is configured. The provider is our own and never the
process-wide one, so that libraries that are instrumented for OpenTelemetry (Chroma is) send nothing
through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Self

from opentelemetry import context as ambient
from opentelemetry import trace
from opentelemetry.sdk.resources import (
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.core.errors import InvalidInput
from app.core.trace import Attributes, Span

EXPORT_TIMEOUT_S = 5.0
"""Longest wait for the collector. Only the end of the process waits, never a request: spans
leave in batches from a thread."""


class OtelSpan:
    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer = tracer
        self.span = span

    def child(self, name: str, attributes: Attributes) -> Span:
        inside = trace.set_span_in_context(self.span)
        return OtelSpan(
            self._tracer, self._tracer.start_span(name, context=inside, attributes=dict(attributes))
        )

    def put(self, attributes: Attributes) -> None:
        self.span.set_attributes(dict(attributes))

    def end(self, error: BaseException | None = None) -> None:
        """End the span; report only an error's class, for its message may hold a document."""
        if not self.span.is_recording():
            return
        if error is not None:
            self.span.set_attribute("error.type", type(error).__name__)
            self.span.set_status(trace.StatusCode.ERROR, type(error).__name__)
        self.span.end()


class OtelSpans:
    """Exports spans in batches; leaving the context sends the rest."""

    def __init__(self, exporter: SpanExporter, release: str) -> None:
        ours = Resource({SERVICE_NAME: "documind", SERVICE_VERSION: release})
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of the environment win; nothing about the
        # machine is looked up.
        self._provider = TracerProvider(
            resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("documind", release)
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, name: str, attributes: Attributes, traceparent: str = "") -> Span:
        parent = self._propagator.extract({"traceparent": traceparent}) if traceparent else None
        return OtelSpan(
            self._tracer, self._tracer.start_span(name, context=parent, attributes=dict(attributes))
        )

    @contextmanager
    def around(self, span: Span) -> Iterator[None]:
        """Surround a block of this thread or task with a span."""
        if not isinstance(span, OtelSpan):
            yield
            return
        token = ambient.attach(trace.set_span_in_context(span.span))
        try:
            yield
        finally:
            ambient.detach(token)

    def flush(self) -> None:
        self._provider.force_flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._provider.shutdown()


def otlp_exporter(endpoint: str) -> SpanExporter:
    """Return an exporter by OTLP over HTTP to `/v1/traces` below a collector's address.

    Raises:
        InvalidInput: The extra is not installed; the message says how to install it.
    """
    try:
        otlp = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as exc:
        raise InvalidInput(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set but its exporter is not installed; run: pip install"
            f" opentelemetry-exporter-otlp-proto-http=={version('opentelemetry-sdk')}"
        ) from exc
    address = f"{endpoint.rstrip('/')}/v1/traces"
    made: SpanExporter = otlp.OTLPSpanExporter(endpoint=address, timeout=EXPORT_TIMEOUT_S)
    return made
