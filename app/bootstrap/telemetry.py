"""Create spans for a configured collector; otherwise none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.errors import InvalidInput
from app.core.hosts import without_credentials
from app.core.spans import SILENT, Spans
from app.settings import Settings

logger = logging.getLogger(__name__)


@contextmanager
def open_spans(settings: Settings, release: str) -> Iterator[Spans]:
    """Yield where spans begin; on leaving, what is left is sent.

    A collector that cannot be used is told in the log and costs the spans, never the server.
    """
    endpoint = settings.otel_exporter_otlp_endpoint
    if not endpoint:
        yield SILENT
        return
    from app.providers.telemetry import OtelSpans, otlp_exporter  # noqa: PLC0415  # loaded only when asked for

    try:
        exporter = otlp_exporter(endpoint)
    except InvalidInput as error:
        logger.warning("%s; the server goes on without traces", error.message)
        yield SILENT
        return
    logger.info("traces go to %s", without_credentials(endpoint))
    with OtelSpans(exporter, release) as spans:
        yield spans
