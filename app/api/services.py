"""What the edge asks of the composition, as Protocols; `app.bootstrap.ServicePort` fits them.

Routes know these and nothing of how things are made. All calls are synchronous and thread-safe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from app.answer.checking import CheckService
from app.answer.suggestions import Suggester
from app.core.cancel import CancelToken
from app.core.ports import AnswerStore, BulkLedger, Catalog, ConversationStore, Embedder, Generator, IndexWriter, PageLocator
from app.core.spans import Spans
from app.core.trace import Trace
from app.core.types import (
    Answer,
    AnswerEvent,
    Document,
    Fingerprint,
    Library,
    LibraryCounts,
    ModelReport,
    PageSpan,
    Question,
    ServiceStatus,
)
from app.jobs.bulk import BulkService
from app.jobs.evaluation import EvaluationService
from app.jobs.models import ModelTestService
from app.jobs.runner import JobRunner
from app.retrieval.request import Retrieval, SearchRequest
from app.settings import Settings


class DocumentReader(Catalog, Protocol):
    """The catalog, with what only lists and health pages ask."""

    def find(self, library: Library, name: str) -> Document:
        """Return the live document whose doc_id, source key, file name or title is `name`; raises NotFound or Conflict."""
        ...

    def pages(self, library: Library, doc_id: str, revision: int | None = None) -> tuple[PageSpan, ...]:
        """Return where the pages of a revision lie in its text; empty for media without pages."""
        ...

    def original(self, library: Library, doc_id: str, revision: int | None = None) -> Path:
        """Return where the bytes are that a revision came from, or raise NoOriginal."""
        ...

    def fingerprint(self, library: Library) -> Fingerprint | None:
        """Return what the library's index was made with; None before the first write."""
        ...


class Projections(Protocol):
    """How far the projections are behind the catalog."""

    def watermarks(self) -> Mapping[str, int]:
        """Return the last change each projection has applied, by `library/projection`, and the newest there is as `changes`."""
        ...

    def lags(self) -> Mapping[str, int]:
        """Return how many changes each projection has yet to apply, by `library/projection`; 10,000 stands for more."""
        ...


class DocumentWriter(IndexWriter, Protocol):
    """The write side, with what only the edge asks."""

    def discard_unaccepted(self, shas: Collection[str]) -> None:
        """Remove originals of an upload that was not accepted, unless a revision refers to one or a job waits for it."""
        ...

    def restore(self, library: Library, doc_id: str) -> Document:
        """Undo a deletion within its grace period, or raise NotFound."""
        ...

    def clear(self, library: Library) -> LibraryCounts:
        """Delete every document of a library for good and return what there was."""
        ...


class SyncedFolders(Protocol):
    """What synced folders sent."""

    def record(self, library: Library, folder: str, sent: Mapping[str, str]) -> None:
        """Remember the SHA-256 by source key of what a folder sends, durably."""
        ...

    def held(self, library: Library, folder: str) -> dict[str, str]:
        """Return the doc_id by source key of live documents that a folder sent and that still hold those bytes."""
        ...


class Answering(Protocol):
    """The query use case."""

    def stream(self, question: Question, cancel: CancelToken) -> Iterator[AnswerEvent]:
        """Yield meta, sources, tokens and the final answer."""
        ...

    def answer(self, question: Question, cancel: CancelToken | None = None) -> Answer:
        """Return the final answer of the stream."""
        ...


class Conversations(Protocol):
    """Conversations as the chat route begins them."""

    def open(self, conversation_id: str | None, library: str, message: str) -> str:
        """Return the id of the conversation a message belongs to, a new one for None; raises NotFound."""
        ...


class Retrieving(Protocol):
    """A question to ranked passages, without an answer."""

    def retrieve(self, request: SearchRequest, trace: Trace) -> Retrieval:
        """Return the best passages and what must be said about them."""
        ...


class ServicePort(Protocol):
    """Everything the routes use."""

    @property
    def settings(self) -> Settings:
        """The configuration."""
        ...

    @property
    def catalog(self) -> DocumentReader:
        """The truth, read."""
        ...

    @property
    def writer(self) -> DocumentWriter:
        """The truth, written."""
        ...

    @property
    def claims(self) -> SyncedFolders:
        """Which documents a synced folder sent."""
        ...

    @property
    def pages(self) -> PageLocator:
        """Spans of text back to places on the pages of an original."""
        ...

    @property
    def bulk(self) -> BulkService:
        """Where bulk runs are asked for."""
        ...

    @property
    def evaluations(self) -> EvaluationService:
        """Where evaluations are asked for and their reports are found."""
        ...

    @property
    def model_tests(self) -> ModelTestService:
        """Where tests of models are asked for, and what they found."""
        ...

    @property
    def projections(self) -> Projections:
        """How far the projections are behind the catalog."""
        ...

    @property
    def ledger(self) -> BulkLedger:
        """What became of every article of the bulk sources."""
        ...

    @property
    def jobs(self) -> JobRunner:
        """Long work; started."""
        ...

    @property
    def rag(self) -> Answering:
        """Answers."""
        ...

    @property
    def checker(self) -> CheckService:
        """Checks of texts that someone brings."""
        ...

    @property
    def retriever(self) -> Retrieving:
        """Ranked passages."""
        ...

    @property
    def answers(self) -> AnswerStore:
        """Stored answers."""
        ...

    @property
    def memory(self) -> Conversations:
        """Conversations, begun and continued."""
        ...

    @property
    def conversations(self) -> ConversationStore:
        """Stored conversations."""
        ...

    @property
    def embedder(self) -> Embedder:
        """The embedder of new passages and of questions."""
        ...

    @property
    def generator(self) -> Generator:
        """Who answers."""
        ...

    @property
    def suggester(self) -> Suggester:
        """Example questions."""
        ...

    @property
    def spans(self) -> Spans:
        """Where spans begin, for whoever watches from outside."""
        ...

    def model_report(self) -> ModelReport:
        """Installed, loaded and used models; may ask the model host, never runs a model."""
        ...

    def missing(self) -> tuple[str, ...]:
        """Return which files are gone under the server: the catalog, the lexical index of a library; empty when all are there."""
        ...

    def status(self) -> ServiceStatus:
        """What health and diagnostics show; may ask the model hosts, never runs a model."""
        ...
