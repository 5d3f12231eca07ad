"""Define what the edge needs of the composition, as Protocols.

`app.bootstrap.Services` implements them. Routes know only these. All calls are synchronous and
thread-safe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from app.answer.checking import CheckService, SecondOpinion
from app.answer.completion import Completions
from app.answer.suggestions import Suggester
from app.core.cancel import CancelToken
from app.core.ports import (
    AnswerStore,
    BulkLedger,
    Catalog,
    ConversationStore,
    Embedder,
    Generator,
    IndexWriter,
    PageLocator,
    Parser,
)
from app.core.trace import Calls, Spans, Trace
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
from app.jobs.maintenance import EvaluationService, ModelTestService
from app.jobs.runner import JobRunner
from app.retrieval.request import Retrieval, SearchRequest
from app.settings import Settings


class DocumentReader(Catalog, Protocol):
    """The catalog, with what only lists and health pages ask."""

    def find(self, library: Library, name: str) -> Document:
        """Return the live document named `name`; raise NotFound or Conflict.

        A name is a doc_id, source key, file name or title.
        """
        ...

    def pages(
        self, library: Library, doc_id: str, revision: int | None = None
    ) -> tuple[PageSpan, ...]:
        """Return the spans of a revision's pages in its text; empty without pages."""
        ...

    def original(self, library: Library, doc_id: str, revision: int | None = None) -> Path:
        """Return where the bytes are that a revision came from, or raise NoOriginal."""
        ...

    def fingerprint(self, library: Library) -> Fingerprint | None:
        """Return what the library's index was made with; None before the first write."""
        ...


class Projections(Protocol):
    """Reports how far the projections are behind the catalog."""

    def watermarks(self) -> Mapping[str, int]:
        """Return the last change that each projection has applied.

        Keys are `library/projection`; `changes` is the newest change there is.
        """
        ...

    def lags(self) -> Mapping[str, int]:
        """Return how many changes each projection is behind; 10,000 means more.

        Keys are `library/projection`.
        """
        ...


class DocumentWriter(IndexWriter, Protocol):
    """The write side, with what only the edge asks."""

    def delete_unaccepted(self, shas: Collection[str]) -> None:
        """Remove originals of a refused upload, unless a revision or a job needs them."""
        ...

    def restore(self, library: Library, doc_id: str) -> Document:
        """Undo a deletion within its grace period, or raise NotFound."""
        ...

    def delete_all(self, library: Library) -> LibraryCounts:
        """Delete every document of a library for good and return what there was."""
        ...


class SyncedFolders(Protocol):
    """Records which documents each synced folder sent."""

    def record(self, library: Library, folder: str, sent: Mapping[str, str]) -> None:
        """Remember the SHA-256 by source key of what a folder sends, durably."""
        ...

    def held(self, library: Library, folder: str) -> dict[str, str]:
        """Return source key to doc_id of live documents a folder sent, bytes unchanged."""
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
        """Return the conversation's id, a new one for None; raise NotFound."""
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
        """Return the service that runs bulk jobs."""
        ...

    @property
    def evaluations(self) -> EvaluationService:
        """Return the service that runs evaluations and finds their reports."""
        ...

    @property
    def model_tests(self) -> ModelTestService:
        """Return the service that runs tests of models and keeps their findings."""
        ...

    @property
    def projections(self) -> Projections:
        """Return the state of the projections against the catalog."""
        ...

    @property
    def ledger(self) -> BulkLedger:
        """Return the ledger of all articles of bulk sources."""
        ...

    @property
    def jobs(self) -> JobRunner:
        """Long work; started."""
        ...

    @property
    def completions(self) -> Completions:
        """Return what asks the answering model directly."""
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
    def second_opinion(self) -> SecondOpinion:
        """A model's own verdicts on a checked text."""
        ...

    @property
    def parser(self) -> Parser:
        """Reads files in a process of its own."""
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
        """Return the generator in use."""
        ...

    @property
    def suggester(self) -> Suggester:
        """Example questions."""
        ...

    @property
    def spans(self) -> Spans:
        """Return the source of spans for tracing."""
        ...

    def model_report(self) -> ModelReport:
        """Installed, loaded and used models; may ask the model host, never runs a model."""
        ...

    def choose_model(self, model: str) -> None:
        """Keep which of Ollama's models answers from now on; empty: the server decides."""
        ...

    @property
    def engine_calls(self) -> Sequence[Calls]:
        """Return counts of each engine that another process serves."""
        ...

    def missing(self) -> tuple[str, ...]:
        """Return which files are gone: the catalog, a library's lexical index.

        Empty when all exist.
        """
        ...

    def status(self) -> ServiceStatus:
        """Return the state for health and diagnostics.

        May ask the model hosts; never runs a model.
        """
        ...
