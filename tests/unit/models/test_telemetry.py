"""Spans: what they hold, how they nest, and that nobody is told anything unless asked."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app.bootstrap.services import open_spans
from app.core.errors import Cancelled, InvalidInput
from app.core.trace import SILENT, SILENT_SPAN, Trace, ended_with_block
from app.models.telemetry import OtelSpans
from app.settings import Settings
from tests.fakes.collector import Collector


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[OtelSpans]:
    with OtelSpans(exporter, "1.2.3") as opened:
        yield opened


def settings(tmp_path: Path, endpoint: str) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path, otel_exporter_otlp_endpoint=endpoint)


def by_name(spans: OtelSpans, exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    spans.flush()
    return {span.name: span for span in exporter.get_finished_spans()}


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def test_stages_are_spans_inside_the_question(
    spans: OtelSpans, exporter: InMemorySpanExporter
) -> None:
    trace = Trace(span=spans.begin("question", {"documind.library": "papers"}))
    with trace.stage("generate", 3) as stage:
        with trace.within("chat", {"gen_ai.request.model": "m"}) as call:
            call.put({"gen_ai.usage.output_tokens": 7})
        stage.n_out = 1
    with trace.stage("ground"):
        pass
    trace.span.end()
    found = by_name(spans, exporter)
    assert set(found) == {"question", "generate", "chat", "ground"}
    assert parent_of(found["generate"]) == parent_of(found["ground"]) == id_of(found["question"])
    assert parent_of(found["chat"]) == id_of(found["generate"])
    assert dict(found["generate"].attributes or {}) == {"documind.in": 3, "documind.out": 1}
    assert dict(found["chat"].attributes or {}) == {
        "gen_ai.request.model": "m",
        "gen_ai.usage.output_tokens": 7,
    }
    assert dict(found["question"].resource.attributes)["service.version"] == "1.2.3"


def test_an_error_is_told_by_class_only(spans: OtelSpans, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(InvalidInput), ended_with_block(spans.begin("fails", {})):
        raise InvalidInput("a secret sentence")
    with pytest.raises(Cancelled), ended_with_block(spans.begin("stopped", {})):
        raise Cancelled("stopped")
    found = by_name(spans, exporter)
    assert not found["fails"].status.is_ok
    assert (found["fails"].attributes or {})["error.type"] == "InvalidInput"
    assert "secret" not in found["fails"].to_json()
    assert found["stopped"].status.is_unset
    assert (found["stopped"].attributes or {})["documind.cancelled"] is True


def test_what_is_surrounded_is_inside_and_a_caller_s_trace_goes_on(
    spans: OtelSpans, exporter: InMemorySpanExporter
) -> None:
    outer = spans.begin("outer", {}, f"00-{'ab' * 16}-{'cd' * 8}-01")
    with spans.around(outer):
        spans.begin("inner", {}).end()
    spans.begin("beside", {}, "not a header").end()
    outer.end()
    outer.end()
    found = by_name(spans, exporter)
    assert len(exporter.get_finished_spans()) == 3
    assert parent_of(found["outer"]) == int("cd" * 8, 16)
    assert parent_of(found["inner"]) == id_of(found["outer"])
    assert parent_of(found["beside"]) is None


def test_spans_reach_a_collector(tmp_path: Path) -> None:
    with (
        Collector() as collector,
        open_spans(settings(tmp_path, f"{collector.url}/"), "1.2.3") as spans,
    ):
        spans.begin("question", {"documind.mode": "general"}).end()
        assert collector.spans == []  # in batches, not one by one
    assert collector.paths == ["/v1/traces"]
    assert [span.name for span in collector.spans] == ["question"]
    assert {a.key: a.value.string_value for a in collector.spans[0].attributes} == {
        "documind.mode": "general"
    }
    assert collector.resources[0]["service.name"] == "documind"


def test_nothing_is_made_or_sent_by_default(tmp_path: Path) -> None:
    with open_spans(settings(tmp_path, ""), "1") as spans:
        assert spans is SILENT
        span = spans.begin("question", {})
        with spans.around(span), ended_with_block(span.child("x", {})):
            assert span is SILENT_SPAN


def test_without_the_extra_the_server_goes_on_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with (
        caplog.at_level(logging.WARNING),
        open_spans(settings(tmp_path, "http://127.0.0.1:9"), "1") as spans,
    ):
        assert spans is SILENT
    assert "pip install opentelemetry-exporter-otlp-proto-http==" in caplog.text
