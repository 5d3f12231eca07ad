"""Provide the place of an evaluation: the libraries, or a temporary index."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from app.core.ports import Catalog, LexicalIndex
from app.core.types import Answer, Library, Question
from app.evaluation.arms import Arm, Chunking
from app.evaluation.collections import Collection
from app.evaluation.runner import RankedPassages, RetrieverSearch
from app.retrieval.options import RetrievalOptions
from app.retrieval.pipeline import Retriever

Ask = Callable[[Question], Answer]
Step = Callable[[str, int, int], None]
"""Told of preparation: what, how many are done, of how many; may raise Cancelled."""


@dataclass(frozen=True, slots=True)
class SearchableIndex:
    """An index that can be searched under any options."""

    library: Library
    catalog: Catalog
    lexical: LexicalIndex
    retriever_of: Callable[[Arm], Retriever]
    """Makes what searches under an arm."""
    ask_of: Callable[[Arm], Ask]
    """Makes the query use case under an arm; nothing that it answers is stored."""
    fingerprint: str
    models: Mapping[str, str]
    """Digest by model name."""
    passage_of: Mapping[str, str] = field(default_factory=dict)
    """Collection id by doc_id; empty where documents are named by their own."""


class Workshop(Protocol):
    """Makes places; `app.bootstrap.evaluation` has the one over adapters."""

    @property
    def options(self) -> RetrievalOptions:
        """The server's own options of retrieval."""
        ...

    @property
    def has_cross_encoder(self) -> bool:
        """Return whether a cross-encoder is configured."""
        ...

    def live(self, library: Library) -> SearchableIndex:
        """Return a library as it is; it is only read."""
        ...

    def made_with(self, chunking: Chunking) -> tuple[str, Mapping[str, str]]:
        """Return the fingerprint of an index cut like this, and digests by model name."""
        ...

    def indexed(
        self, collection: Collection, chunking: Chunking, step: Step, *, keep_vectors: bool
    ) -> AbstractContextManager[SearchableIndex]:
        """Index a collection apart from the libraries; remove the index afterwards.

        Its vectors may be kept for the next run.
        """
        ...


class PlaceSearch:
    """An `ArmSearch` over one place.

    The retriever alone for the baseline strategy, the whole query use case for the others.
    """

    def __init__(self, place: SearchableIndex) -> None:
        """Keep the place."""
        self._place = place
        self._direct = RetrieverSearch(place.retriever_of, place.library, place.passage_of)
        self._asks: dict[str, Ask] = {}
        self.degraded: set[str] = set()
        """Names of arms whose strategy was degraded for want of a model."""

    def __call__(self, arm: Arm, question: str, top_k: int) -> RankedPassages:
        """Search as `retrieve_only` does: ranked, nothing dropped."""
        if arm.strategy == "baseline":
            return self._direct(arm, question, top_k)
        ask = self._asks.get(arm.name) or self._asks.setdefault(arm.name, self._place.ask_of(arm))
        start = time.perf_counter()
        answer = ask(
            Question(
                question,
                self._place.library.value,
                strategy=arm.strategy,
                fusion=arm.fusion,
                retrieve_only=True,
                top_k=top_k,
            )
        )
        ms = (time.perf_counter() - start) * 1000
        if any(notice.code == "strategy_degraded" for notice in answer.notices):
            self.degraded.add(arm.name)
        best: dict[str, str] = {}
        for evidence in answer.evidence:
            passage = evidence.hit.passage
            name = self._place.passage_of.get(passage.document.doc_id, passage.document.doc_id)
            best.setdefault(name, passage.chunk.text)
        stages: dict[str, float] = {}
        for stage in answer.trace.stages:
            stages[stage.name] = stages.get(stage.name, 0.0) + stage.ms
        return RankedPassages(tuple(best), tuple(best.values()), ms, stages, answer.confidence)


class BenchSearch:
    """An `ArmSearch` over a collection that each arm cuts; one index at a time."""

    def __init__(
        self, workshop: Workshop, collection: Collection, step: Step, *, keep_vectors: bool
    ) -> None:
        """Keep what indexes; nothing is indexed before it is searched."""
        self._keep_vectors = keep_vectors
        self._workshop = workshop
        self._collection = collection
        self._step = step
        self._stack = ExitStack()
        self._open: tuple[Chunking, PlaceSearch] | None = None
        self._degraded: set[str] = set()

    def __enter__(self) -> Self:
        """Return the search."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close and remove the index."""
        self._stack.close()

    @property
    def degraded(self) -> set[str]:
        """Names of arms whose strategy was degraded for want of a model."""
        return self._degraded | (self._open[1].degraded if self._open else set())

    def _at(self, chunking: Chunking) -> PlaceSearch:
        """Return the search of a chunking, indexing it when it is not the open one."""
        if self._open is None or self._open[0] != chunking:
            self._degraded = set(self.degraded)
            self._open = None
            self._stack.close()
            place = self._stack.enter_context(
                self._workshop.indexed(
                    self._collection, chunking, self._step, keep_vectors=self._keep_vectors
                )
            )
            self._open = (chunking, PlaceSearch(place))
        return self._open[1]

    def __call__(self, arm: Arm, question: str, top_k: int) -> RankedPassages:
        """Search the collection as cut for this arm."""
        return self._at(arm.chunking)(arm, question, top_k)
