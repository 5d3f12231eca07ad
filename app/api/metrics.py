"""Collect Prometheus metrics: counters fed by requests, gauges read on demand.

Every app has a registry of its own. Labels are bounded: route templates, stage names, statuses;
never a question, a document or an address.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from functools import partial
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
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self._requests = counter(
            "documind_requests", "Requests by route and status", ("method", "route", "status")
        )
        self._durations = histogram(
            "documind_request_duration_seconds",
            "Time from the first byte of a request to the last of its reply",
            ("method", "route"),
            buckets=_REQUEST_S,
        )
        self._answers = counter(
            "documind_answers", "Finished answers by status and strategy", ("status", "strategy")
        )
        self._first_tokens = histogram(
            "documind_first_token_seconds",
            "Time from a question to the first words of its answer",
            buckets=_REQUEST_S,
        )
        self._stages = histogram(
            "documind_stage_duration_seconds",
            "Time of each step of a question",
            ("stage",),
            buckets=_STAGE_S,
        )
        self._calls = counter("documind_model_calls", "Calls of a language model", ("generator",))
        self._tokens = counter(
            "documind_tokens", "Tokens as the provider reports them", ("generator", "kind")
        )
        self._streams = Gauge(
            "documind_active_answers", "Answers and event streams under way", registry=self.registry
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, status).inc()
        self._durations.labels(method, route).observe(seconds)

    def answer(self, answer: Answer) -> None:
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


Rows = Iterable[tuple[tuple[str, ...], float]]
"""Values of labels, and the figure."""


def _gauge(name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = GaugeMetricFamily(f"documind_{name}", text, labels=labels)
    for values, figure in rows:
        family.add_metric(values, figure)
    return family


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
        yield from self._copies()

    def _libraries(self) -> Iterator[Metric]:
        counts = {library.value: self._services.catalog.counts(library) for library in Library}
        for name, field, text in (
            ("documents", "documents", "Live documents"),
            ("chunks", "chunks", "Live chunks"),
            ("embedded_chunks", "embedded", "Live chunks with a vector"),
            ("text_bytes", "bytes", "Bytes of the live documents"),
        ):
            rows = [((library,), getattr(found, field)) for library, found in counts.items()]
            yield _gauge(name, text, ("library",), rows)

    def _jobs(self) -> Iterator[Metric]:
        jobs = self._services.jobs
        seen = Tally((job.kind, job.state) for job in jobs.list(_JOBS_SEEN))
        of_lane: Tally[tuple[str, str]] = Tally(
            {(lane, state): 0 for lane in LANES for state in _UNDER_WAY}
        )
        for (kind, state), count in seen.items():
            if state in _UNDER_WAY and (lane := jobs.lane_of(kind)) is not None:
                of_lane[lane, state] += count
        newest = f"of the newest {_JOBS_SEEN}"
        yield _gauge("jobs", f"Jobs by state, {newest}", ("kind", "state"), sorted(seen.items()))
        yield _gauge(
            "lane_jobs",
            f"Jobs that wait or run, by lane, {newest}",
            ("lane", "state"),
            of_lane.items(),
        )

    def _projections(self) -> Iterator[Metric]:
        marks = dict(self._services.store.projector.watermarks())
        lags = self._services.store.projector.log.lags()
        newest = marks.pop("changes", 0)
        yield _gauge("changes", "Number of the newest change of the catalog", (), [((), newest)])
        labels = {name: tuple(name.split("/", 1)) for name in sorted(marks)}
        for metric, text, figures in (
            ("projection_watermark", "Last change that a projection has applied", marks),
            ("projection_lag", "Changes a projection has yet to apply, at most 10,000", lags),
        ):
            rows = [(label, figures.get(name, 0)) for name, label in labels.items()]
            yield _gauge(metric, text, ("library", "projection"), rows)
        lengths = self._services.store.projector.log.lengths()
        rows = [((library,), length) for library, length in lengths.items()]
        text = "Changes that the log keeps for projections and fills, at most 10,000"
        yield _gauge("change_log", text, ("library",), rows)

    def _engines(self) -> Iterator[Metric]:
        for name, field, text in (
            ("calls", "count", "Calls of a database, search engine or object store"),
            ("seconds", "seconds", "Seconds that these calls took, transactions included"),
            ("failures", "failures", "Calls, or tries of a node, that the engine failed"),
        ):
            family = CounterMetricFamily(f"documind_engine_{name}", text, labels=("engine",))
            for calls in self._services.store.calls:
                family.add_metric((calls.engine,), getattr(calls, field))
            yield family

    def _copies(self) -> Iterator[Metric]:
        if not (copies := self._services.store.copies()):
            return  # no search engine, or none that answers
        for name, field, text in (
            ("shards", "shards", "Shards of a collection in the search engine"),
            ("copies", "fewest", "Copies that follow writes, of the shard with the fewest"),
            ("dead_copies", "dead", "Copies that do not follow writes"),
            ("copies_wanted", "wanted", "Copies that SEARCH_REPLICAS asks for"),
        ):
            rows = [((one.collection,), getattr(one, field)) for one in copies]
            yield _gauge(f"search_{name}", text, ("collection",), rows)


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
        answer = self._inner.answer(question, cancel)
        self._metrics.answer(answer)
        return answer
