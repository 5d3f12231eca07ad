"""What a collector would see of requests, questions, model calls and jobs; and that no word of a question is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app.models.telemetry import OtelSpans
from tests.api.conftest import LIBRARY, Site, site
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.telling import tells

QUESTION = "What is the melting point of copper?"


@dataclass
class Watched:
    site: Site
    spans: OtelSpans
    exporter: InMemorySpanExporter

    def take(self) -> list[ReadableSpan]:
        self.spans.flush()
        found = list(self.exporter.get_finished_spans())
        self.exporter.clear()
        return found

    def ask(self, **values: object) -> list[ReadableSpan]:
        self.take()
        reply = self.site.client.post(
            "/api/v1/query", json={"question": QUESTION, "library": "papers", **values}
        )
        assert reply.status_code == 200
        return self.take()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    exporter = InMemorySpanExporter()
    model = ScriptedGenerator(*["Copper melts at 1085 degrees Celsius. [1]"] * 10)
    with (
        OtelSpans(exporter, "1") as spans,
        site(tmp_path_factory.mktemp("traced"), models=FixedModels(model), spans=spans) as opened,
    ):
        status, _ = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        assert status == 201
        yield Watched(opened, spans, exporter)


def one(spans: list[ReadableSpan], name: str) -> ReadableSpan:
    (found,) = [span for span in spans if span.name == name]
    return found


NUMBERS = ("context", "parent_id", "start_time", "end_time")
"""Parts of a span that are made of digits: four of them can spell any year or degree by chance."""


def words(spans: list[ReadableSpan]) -> str:
    """Everything that spans tell, in lower case, without their identifiers and times."""
    told = [json.loads(span.to_json()) for span in spans]
    for span in told:
        for part in [span, *span["events"], *span["links"]]:
            for name in (*NUMBERS, "timestamp"):
                part.pop(name, None)
    return json.dumps(told).lower()


def inside(spans: list[ReadableSpan], span: ReadableSpan) -> str:
    """The name of the span around a span."""
    by_id = {other.context.span_id: other.name for other in spans if other.context}
    return by_id.get(span.parent.span_id, "") if span.parent else ""


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_is_one_trace_from_request_to_model_call(watched: Watched, stream: bool) -> None:
    spans = watched.ask(stream=stream)
    request, question, call = one(spans, "POST request"), one(spans, "question"), one(spans, "chat")
    assert (request.attributes or {})["http.route"] == "/api/v1/query"
    assert (request.attributes or {})["http.response.status_code"] == 200
    assert inside(spans, question) == "POST request"
    assert inside(spans, call) == "generate"
    assert (question.attributes or {})["documind.status"] == "answered"
    assert (call.attributes or {})["gen_ai.operation.name"] == "chat"
    assert {span.name for span in spans if inside(spans, span) == "question"} >= {
        "search",
        "fusion",
        "cutoff",
        "generate",
        "ground",
    }
    assert len({span.context.trace_id for span in spans if span.context}) == 1


def test_no_word_of_question_answer_or_document_is_told(watched: Watched) -> None:
    told = words(watched.ask())
    watched.site.client.get("/api/v1/search", params={"q": QUESTION, "library": "papers"})
    watched.site.client.get("/api/v1/papers/copper.txt", params={"library": "papers"})
    watched.site.client.post(
        "/api/v1/query", json={"question": "Copper?", "library": "papers", "model": "copper"}
    )
    told += words(watched.take())
    assert "question" in told
    assert not any(word in told for word in ("copper", "melting"))
    assert not tells(told, "1085")


def test_a_caller_s_trace_goes_on(watched: Watched) -> None:
    watched.take()
    trace_id, span_id = "ab" * 16, "cd" * 8
    watched.site.client.get("/health", headers={"traceparent": f"00-{trace_id}-{span_id}-01"})
    (request,) = watched.take()
    assert request.context is not None
    assert request.context.trace_id == int(trace_id, 16)
    assert (request.attributes or {})["http.route"] == "/health"


def test_a_search_without_an_answer_and_a_job(watched: Watched) -> None:
    watched.take()
    watched.site.client.get("/api/v1/search", params={"q": "tides", "library": "papers"})
    spans = watched.take()
    searches = [span for span in spans if span.name == "search"]
    assert sorted(inside(spans, span) for span in searches) == ["GET request", "search"]
    status, _ = watched.site.upload(("zinc.txt", b"Zinc is a bluish metal."))
    assert status == 201
    job = one(watched.take(), "job ingest")
    assert (job.attributes or {})["documind.state"] == "done"
    assert "zinc" not in job.to_json().lower()


def test_refusals_and_unknown_paths_share_a_route(watched: Watched) -> None:
    watched.take()
    watched.site.client.get("/api/v1/nowhere/secret-name")
    (request,) = watched.take()
    assert (request.attributes or {})["http.route"] == "other"
    assert "secret-name" not in request.to_json()
