"""Everything a server runs on, made in order and closed in reverse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from app.answer.checking import CheckService, SecondOpinion
from app.answer.completion import Completions
from app.answer.conversation import ConversationMemory
from app.answer.records import AnswerJournal
from app.answer.service import RAGService
from app.answer.suggestions import Suggester
from app.bootstrap.foundation import compose_answering, open_foundation
from app.bootstrap.libraries import Libraries, LibraryEmbedders, acting_constants, inert_settings
from app.bootstrap.models import Models
from app.bootstrap.work import compose_work, start_work
from app.core.ports import Embedder, Generator, PageLocator
from app.core.trace import Calls, Spans
from app.core.types import Library, ModelReport, ServiceStatus
from app.generation.prompts import PromptLibrary
from app.ingest.sandbox import SandboxedParser
from app.jobs.bulk import BulkService
from app.jobs.maintenance import EvaluationService, ModelTestService
from app.jobs.runner import JobRunner
from app.retrieval.reading import Calibrations
from app.settings import Settings
from app.storage.catalog.answers import SqliteAnswerStore, SqliteConversationStore
from app.storage.catalog.documents import SqliteCatalog
from app.storage.catalog.state import SqliteLedger, SyncClaims
from app.storage.files.lock import DirectoryLock
from app.storage.status import ProjectionStatus
from app.storage.store import IndexStore
from app.storage.writer import CatalogIndexWriter


@dataclass(frozen=True, slots=True)
class Services:
    """The parts the edge uses; made by `build_services`."""

    settings: Settings
    store: IndexStore
    models: Models
    libraries: Libraries
    embedders: LibraryEmbedders
    parser: SandboxedParser
    jobs: JobRunner
    bulk: BulkService
    evaluations: EvaluationService
    model_tests: ModelTestService
    rag: RAGService
    checker: CheckService
    second_opinion: SecondOpinion
    memory: ConversationMemory
    journal: AnswerJournal
    prompts: PromptLibrary
    suggester: Suggester
    spans: Spans

    @property
    def pages(self) -> PageLocator:
        """Finds spans on pages."""
        return self.parser

    @property
    def completions(self) -> Completions:
        return Completions(self.models, self.prompts)

    @property
    def catalog(self) -> SqliteCatalog:
        return self.store.catalog

    @property
    def projections(self) -> ProjectionStatus:
        return self.store.status

    @property
    def writer(self) -> CatalogIndexWriter:
        return self.store.writer

    @property
    def claims(self) -> SyncClaims:
        return self.store.claims

    @property
    def retriever(self) -> Libraries:
        """Ranked passages of one library."""
        return self.libraries

    @property
    def ledger(self) -> SqliteLedger:
        return self.store.ledger

    @property
    def answers(self) -> SqliteAnswerStore:
        return self.store.answers

    @property
    def conversations(self) -> SqliteConversationStore:
        return self.store.conversations

    @property
    def embedder(self) -> Embedder:
        """What embeds questions to the default library; the embedded model while that is away."""
        return (
            self.libraries.wired(self.settings.library).questions
            or self.models.embedded.sentence_embedder
        )

    @property
    def generator(self) -> Generator:
        return self.models.select().model or self.models.embedded.extractive

    def model_report(self) -> ModelReport:
        return self.models.report(self.embedders.state(self.settings.library).embedder)

    def choose_model(self, model: str) -> None:
        """Keep which of Ollama's models answers from now on; empty: the server decides.

        Raises:
            Conflict: The environment decides.
            InvalidInput: The model cannot chat.
            ProviderError: The host does not answer, or does not have the model.
        """
        self.models.choose(model)

    @property
    def engine_calls(self) -> Sequence[Calls]:
        return self.store.calls

    def missing(self) -> tuple[str, ...]:
        """Return which files or engines are gone under the server."""
        return self.store.missing()

    def status(self) -> ServiceStatus:
        """Return how the parts are; asks model hosts, never runs a model."""
        builds = {library.value: self.projections.build_state(library) for library in Library}
        embedding = {library.value: self.embedders.state(library) for library in Library}
        options, calibrations = self.settings.retrieval(), Calibrations(self.store.calibrations)
        made_with = {library: self.store.made_with(library) for library in Library}
        acting = {
            library.value: acting_constants(
                options, library, calibrations.of(made) if made else None
            )
            for library, made in made_with.items()
        }
        inert = tuple(inert_settings(self.settings))
        return ServiceStatus(
            self.models.hosts(),
            self.projections.watermarks(),
            builds,
            embedding,
            acting,
            inert,
            self.models.select().why,
        )


@contextmanager
def build_services(settings: Settings, lock: DirectoryLock | None = None) -> Iterator[Services]:
    """Open the data directory and start everything; on leaving, everything is closed.

    Args:
        settings: The configuration.
        lock: Held by the caller already; None takes it here.

    Raises:
        Locked: Another process owns the data directory.
        IndexDamaged: The catalog is damaged; the message names the cure.
        InvalidInput: A setting or a prompt file is wrong.
    """
    with ExitStack() as stack:
        if lock is None:
            stack.enter_context(DirectoryLock([settings.data_dir, settings.chroma_dir]))
        base = open_foundation(settings, stack)
        answering = compose_answering(base)
        work = compose_work(base, answering, stack)
        start_work(base, work, stack)
        yield Services(
            settings=settings,
            store=base.store,
            models=base.models,
            libraries=base.libraries,
            embedders=base.embedders,
            parser=base.parser,
            jobs=work.jobs,
            bulk=work.bulk,
            evaluations=work.evaluations,
            model_tests=work.model_tests,
            rag=answering.rag,
            checker=answering.checker,
            second_opinion=answering.second_opinion,
            memory=answering.memory,
            journal=answering.journal,
            prompts=base.prompts,
            suggester=answering.suggester,
            spans=base.spans,
        )
