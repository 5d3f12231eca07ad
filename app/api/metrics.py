"""Collect Prometheus metrics: counters fed by requests, gauges read on demand.

Every app has a registry of its own. Labels are bounded: route templates, stage names, statuses;
never a question, a document or an address.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.answer.service import RAGService
from app.core.cancel import CancelToken
from app.core.types import Answer, AnswerEvent, FinalEvent, Library, Question, TokenEvent
from app.jobs.runner import Lane

if TYPE_CHECKING:
    from app.bootstrap.services import Services

CONTENT_TYPE: str = CONTENT_TYPE_LATEST
_REQUEST_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_STAGE_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
"""Upper bounds of the histograms' buckets, seconds: a search takes milliseconds, a model on a
CPU minutes."""
LANES = get_args(Lane)
_UNDER_WAY = ("queued", "running")
_JOBS_SEEN = 1000
"""The newest jobs counted by state; the store keeps about as many finished ones."""


class Metrics:
    """The registry of one app, and what feeds it. Thread-safe."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._requests = Counter(
            "documind_requests",
            "Requests by route and status",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._durations = Histogram(
            "documind_request_duration_seconds",
            "Time from the first byte of a request to the last of its reply",
            ("method", "route"),
            buckets=_REQUEST_S,
            registry=self.registry,
        )
        self._answers = Counter(
            "documind_answers",
            "Finished answers by status and strategy",
            ("status", "strategy"),
            registry=self.registry,
        )
        self._first_tokens = Histogram(
            "documind_first_token_seconds",
            "Time from a question to the first words of its answer",
            buckets=_REQUEST_S,
            registry=self.registry,
        )
        self._stages = Histogram(
            "documind_stage_duration_seconds",
            "Time of each step of a question",
            ("stage",),
            buckets=_STAGE_S,
            registry=self.registry,
        )
        self._calls = Counter(
            "documind_model_calls",
            "Calls of a language model",
            ("generator",),
            registry=self.registry,
        )
        self._tokens = Counter(
            "documind_tokens",
            "Tokens as the provider reports them",
            ("generator", "kind"),
            registry=self.registry,
        )
        self._streams = Gauge(
            "documind_active_answers", "Answers and event streams under way", registry=self.registry
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        self._requests.labels(method, route, status).inc()
        self._durations.labels(method, route).observe(seconds)

    def answer(self, answer: Answer) -> None:
        """Count a finished answer with its stages, model calls and tokens."""
        self._answers.labels(answer.status, answer.strategy).inc()
        for stage in answer.trace.stages:
            self._stages.labels(stage.name).observe(stage.ms / 1000)
        if answer.trace.llm_calls:
            self._calls.labels(answer.generator).inc(answer.trace.llm_calls)
        for kind, count in (
            ("prompt", answer.usage.prompt_tokens),
            ("completion", answer.usage.completion_tokens),
        ):
            if count:
                self._tokens.labels(answer.generator, kind).inc(count)

    def first_token(self, seconds: float) -> None:
        """Record how long a reader waited for the first words."""
        self._first_tokens.observe(seconds)

    def exposition(self, services: Services | None, active_answers: int) -> bytes:
        """Return everything in Prometheus's text format; without services, what needs none."""
        self._streams.set(active_answers)
        shown: bytes = generate_latest(self.registry)
        if services is not None:
            state = CollectorRegistry()
            state.register(_State(services))
            shown += generate_latest(state)
        return shown


class _State:
    """A collector of what the stores know at this moment."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        """Yield gauges of the libraries, the jobs, the projections and the engines."""
        yield from self._libraries()
        yield from self._jobs()
        yield from self._projections()
        yield from self._engines()

    def _libraries(self) -> Iterator[Metric]:
        documents = GaugeMetricFamily("documind_documents", "Live documents", labels=("library",))
        chunks = GaugeMetricFamily("documind_chunks", "Live chunks", labels=("library",))
        embedded = GaugeMetricFamily(
            "documind_embedded_chunks", "Live chunks with a vector", labels=("library",)
        )
        size = GaugeMetricFamily(
            "documind_text_bytes", "Bytes of the live documents", labels=("library",)
        )
        for library in Library:
            counts = self._services.catalog.counts(library)
            values = (counts.documents, counts.chunks, counts.embedded, counts.bytes)
            for family, value in zip((documents, chunks, embedded, size), values, strict=True):
                family.add_metric((library.value,), value)
        yield from (documents, chunks, embedded, size)

    def _jobs(self) -> Iterator[Metric]:
        jobs = self._services.jobs
        family = GaugeMetricFamily(
            "documind_jobs", f"Jobs by state, of the newest {_JOBS_SEEN}", labels=("kind", "state")
        )
        lanes = GaugeMetricFamily(
            "documind_lane_jobs",
            f"Jobs that wait or run, by lane, of the newest {_JOBS_SEEN}",
            labels=("lane", "state"),
        )
        seen = Tally((job.kind, job.state) for job in jobs.list(_JOBS_SEEN))
        of_lane: Tally[tuple[str, str]] = Tally(
            {(lane, state): 0 for lane in LANES for state in _UNDER_WAY}
        )
        for (kind, state), count in sorted(seen.items()):
            family.add_metric((kind, state), count)
            if state in _UNDER_WAY and (lane := jobs.lane_of(kind)) is not None:
                of_lane[lane, state] += count
        for labels, count in of_lane.items():
            lanes.add_metric(labels, count)
        yield from (family, lanes)

    def _projections(self) -> Iterator[Metric]:
        marks, lags = (
            dict(self._services.store.status.watermarks()),
            self._services.store.status.lags(),
        )
        newest = marks.pop("changes", 0)
        yield GaugeMetricFamily(
            "documind_changes", "Number of the newest change of the catalog", value=newest
        )
        applied = GaugeMetricFamily(
            "documind_projection_watermark",
            "Last change that a projection has applied",
            labels=("library", "projection"),
        )
        lag = GaugeMetricFamily(
            "documind_projection_lag",
            "Changes a projection has yet to apply, at most 10,000",
            labels=("library", "projection"),
        )
        for name, mark in sorted(marks.items()):
            library, _, projection = name.partition("/")
            applied.add_metric((library, projection), mark)
            lag.add_metric((library, projection), lags.get(name, 0))
        yield from (applied, lag)

    def _engines(self) -> Iterator[Metric]:
        count, seconds, failures = (
            CounterMetricFamily(f"documind_engine_{name}", text, labels=("engine",))
            for name, text in (
                ("calls", "Calls of a database, search engine or object store"),
                ("seconds", "Seconds that these calls took, transactions included"),
                ("failures", "Calls, or tries of a node, that the engine failed"),
            )
        )
        for calls in self._services.store.calls:
            count.add_metric((calls.engine,), calls.count)
            seconds.add_metric((calls.engine,), calls.seconds)
            failures.add_metric((calls.engine,), calls.failures)
        yield from (count, seconds, failures)


class Measured:
    """A query use case whose answers are counted."""

    def __init__(self, inner: RAGService, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    def stream(self, question: Question, cancel: CancelToken) -> Iterator[AnswerEvent]:
        """Yield the events of the inner use case, counting what passes."""
        started, waiting = time.perf_counter(), True
        for item in self._inner.stream(question, cancel):
            if waiting and isinstance(item, TokenEvent):
                self._metrics.first_token(time.perf_counter() - started)
                waiting = False
            elif isinstance(item, FinalEvent):
                self._metrics.answer(item.answer)
            yield item

    def answer(self, question: Question, cancel: CancelToken | None = None) -> Answer:
        """Return the inner use case's answer, counted."""
        answer = self._inner.answer(question, cancel)
        self._metrics.answer(answer)
        return answer
