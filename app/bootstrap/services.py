"""Everything a server runs on, made in order and closed in reverse."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from app.answer.checking import CheckService
from app.answer.completion import Completions
from app.answer.journal import AnswerJournal
from app.answer.memory import ConversationMemory
from app.answer.model_test import ModelTester
from app.answer.replay import Replayer
from app.answer.research import Research
from app.answer.service import RAGService
from app.answer.speeds import ModelSpeeds
from app.answer.suggestions import Suggester
from app.answer.writing import AnswerWriter
from app.bootstrap.acting import acting_constants, inert_settings
from app.bootstrap.adoption import Adopter, LibraryEmbedders
from app.bootstrap.bulk import compose_bulk
from app.bootstrap.collecting import register_collecting
from app.bootstrap.evaluation import EvaluationWorkshop, compose_evaluation
from app.bootstrap.libraries import Libraries
from app.bootstrap.maintenance import StoreMaintenance
from app.bootstrap.models import Models
from app.bootstrap.reembed import register_reembed
from app.bootstrap.telemetry import open_spans
from app.core.ports import Embedder, Generator, PageLocator
from app.core.release import package_version
from app.core.spans import Spans
from app.core.types import Library, ModelReport, ServiceStatus
from app.generation.grounding import Grounder
from app.generation.prompts import PromptLibrary
from app.generation.support import SupportJudge
from app.generation.tokens import TokenCalibrator
from app.index.catalog.answers import SqliteAnswerStore
from app.index.catalog.conversations import SqliteConversationStore
from app.index.catalog.documents import SqliteCatalog
from app.index.catalog.ledger import SqliteLedger
from app.index.catalog.sync_claims import SyncClaims
from app.index.files.lock import DirectoryLock
from app.index.status import ProjectionStatus
from app.index.store import IndexStore
from app.index.writer import CatalogIndexWriter
from app.ingest.sandbox import SandboxedParser
from app.jobs.bulk import BulkService
from app.jobs.calibrate import CalibrateJob
from app.jobs.evaluation import EvaluationService
from app.jobs.housekeeping import Housekeeper
from app.jobs.kinds import CALIBRATE, PULL, REPLAY, SAMPLES, resume_backfills
from app.jobs.maintenance import register_maintenance
from app.jobs.models import ModelTestService, PullJob, register_model_tests
from app.jobs.queue import per_library
from app.jobs.replay import ReplayJob
from app.jobs.runner import JobRunner
from app.jobs.seeding import SeedPolicy, seed
from app.retrieval.calibration import Calibrations
from app.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Services:
    """The parts the edge uses; made by `build_services`."""

    settings: Settings
    store: IndexStore
    models: Models
    libraries: Libraries
    embedders: LibraryEmbedders
    pages: PageLocator
    jobs: JobRunner
    bulk: BulkService
    evaluations: EvaluationService
    model_tests: ModelTestService
    rag: RAGService
    checker: CheckService
    memory: ConversationMemory
    journal: AnswerJournal
    prompts: PromptLibrary
    suggester: Suggester
    spans: Spans

    @property
    def completions(self) -> Completions:
        """Return what asks the answering model directly."""
        return Completions(self.models, self.prompts)

    @property
    def catalog(self) -> SqliteCatalog:
        """The truth, read."""
        return self.store.catalog

    @property
    def projections(self) -> ProjectionStatus:
        """Return the state of the projections against the catalog."""
        return self.store.status

    @property
    def writer(self) -> CatalogIndexWriter:
        """The truth, written."""
        return self.store.writer

    @property
    def claims(self) -> SyncClaims:
        """Which documents a synced folder sent."""
        return self.store.claims

    @property
    def retriever(self) -> Libraries:
        """Ranked passages of one library."""
        return self.libraries

    @property
    def ledger(self) -> SqliteLedger:
        """Return the ledger of all articles of bulk sources."""
        return self.store.ledger

    @property
    def answers(self) -> SqliteAnswerStore:
        """Stored answers."""
        return self.store.answers

    @property
    def conversations(self) -> SqliteConversationStore:
        """Stored conversations."""
        return self.store.conversations

    @property
    def embedder(self) -> Embedder:
        """The embedder of the default library; the embedded one while that cannot be had."""
        return self.libraries.wired(self.settings.library).embedder or self.models.embedded.sentence_embedder

    @property
    def generator(self) -> Generator:
        """Return the generator in use."""
        return self.models.select().model or self.models.embedded.extractive

    def model_report(self) -> ModelReport:
        """Return installed, loaded and used models; asks the host, runs nothing."""
        return self.models.report(self.embedder)

    def missing(self) -> tuple[str, ...]:
        """Return which files are gone under the server."""
        return self.store.missing()

    def status(self) -> ServiceStatus:
        """Return how the parts are; asks model hosts, never runs a model."""
        builds = {library.value: self.projections.build_state(library) for library in Library}
        embedding = {library.value: self.embedders.state(library) for library in Library}
        options, calibrations = self.settings.retrieval(), Calibrations(self.store.calibrations)
        made_with = {library: self.store.made_with(library) for library in Library}
        acting = {
            library.value: acting_constants(options, library, calibrations.of(made) if made else None)
            for library, made in made_with.items()
        }
        inert = tuple(inert_settings(self.settings))
        return ServiceStatus(self.models.hosts(), self.projections.watermarks(), builds, embedding, acting, inert)


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
        spans = stack.enter_context(open_spans(settings, package_version()))
        for line in inert_settings(settings):
            logger.warning("%s", line)
        prompts = PromptLibrary.load(settings.prompts_dir)
        parser = stack.enter_context(SandboxedParser(settings.ingest()))
        store = stack.enter_context(IndexStore(settings.index(), crash_at=settings.documind_crash_at or None))
        speeds = ModelSpeeds(store.models)
        models = stack.enter_context(Models(settings.providers(), settings.generation(), store.models.findings))
        reranker = models.embedded.reranker()
        embedders = LibraryEmbedders(store, models)
        libraries = Libraries(
            store,
            models.embedder_for,
            parser,
            settings.ingest(),
            settings.retrieval(),
            reranker,
            embedders.notices,
            lambda: models.embedded.late_encoder,
        )
        memory = ConversationMemory(store.conversations, settings.answer())
        journal = AnswerJournal(store.answers, settings.answer(), lambda: influences(settings, models))
        answer_writer = AnswerWriter(models.embedded.extractive, prompts, TokenCalibrator(), settings.generation())
        grounder = Grounder(models.embedded.grounding_embedder, settings.generation(), prompts.instructions())
        checker = CheckService(
            searcher_for=libraries.searcher, judge=SupportJudge(models.embedded.grounding_embedder), options=settings.generation()
        )
        research = Research(
            libraries.searcher, answer_writer, grounder, memory, speeds, settings.answer(), settings.retrieval().top_k
        )
        rag = RAGService(catalog=store.catalog, models=models, research=research, journal=journal, spans=spans)
        jobs = JobRunner(store.jobs, settings.jobs(), spans=spans)
        register_collecting(jobs, store, libraries, models)
        jobs.register(PULL, PullJob(models.pull), lane="network")
        model_tests = register_model_tests(
            jobs, ModelTester(models, answer_writer, grounder, speeds, store.models, settings.answer().manner), store.models
        )
        replayer = Replayer(
            store=store.answers,
            catalog=store.catalog,
            searcher_for=libraries.searcher,
            models=models,
            prompts=prompts,
            options=settings.answer(),
            settings=lambda: influences(settings, models),
            top_k=settings.top_k_results,
        )
        jobs.register(REPLAY, ReplayJob(replayer))
        bulk = compose_bulk(settings, store, libraries, jobs)
        workshop = EvaluationWorkshop(
            store=store,
            embedder_of=lambda library: libraries.wired(library).embedder,
            bench_embedder=lambda: libraries.wired(settings.library).embedder or models.embedded.sentence_embedder,
            models=models,
            answer_writer=answer_writer,
            grounder=grounder,
            answer=settings.answer(),
            ingest=settings.ingest(),
            options=settings.retrieval(),
            reranker=reranker,
            folder=settings.data_dir / "evaluations",
        )
        evaluations = compose_evaluation(workshop, prompts, jobs, settings.documind_git_sha)
        register_reembed(
            jobs,
            settings,
            store,
            live_embedder=lambda library: libraries.wired(library).embedder,
            embedder_named=models.embedder_named,
        )
        calibrate = CalibrateJob(
            catalog=store.catalog,
            calibrations=Calibrations(store.calibrations),
            options=settings.retrieval(),
            made_with=store.made_with,
            embedder_of=lambda library: libraries.wired(library).embedder,
            reference=lambda: models.embedded.sentence_embedder,
        )
        jobs.register(CALIBRATE, calibrate, lane="background", exclusive=per_library)
        maintenance = StoreMaintenance(store, evaluations.reports)
        register_maintenance(jobs, maintenance)
        jobs.start()
        stack.callback(jobs.close)
        housekeeper = Housekeeper(maintenance, jobs)
        housekeeper.start()
        stack.callback(housekeeper.close)
        adopter = Adopter(embedders, store, jobs)
        adopter.start()
        stack.callback(adopter.close)
        resume_backfills(jobs, store.catalog, libraries.lacks_codes)
        seed(
            seed_policy(settings), store.catalog, lambda purge: jobs.submit(SAMPLES, {"purge": purge}, unit="files", coalesce=True)
        )
        suggester = Suggester(
            catalog=store.catalog,
            searcher_for=libraries.searcher,
            models=models,
            prompts=prompts,
            extractive=models.embedded.extractive,
        )
        yield Services(
            settings,
            store,
            models,
            libraries,
            embedders,
            parser,
            jobs,
            bulk,
            evaluations,
            model_tests,
            rag,
            checker,
            memory,
            journal,
            prompts,
            suggester,
            spans,
        )


def seed_policy(settings: Settings) -> SeedPolicy:
    """Return what the configuration says of the samples."""
    return SeedPolicy(settings.data_dir, settings.samples, settings.seed_sample_docs, settings.sample_corpus_version)


def influences(settings: Settings, models: Models) -> Mapping[str, str]:
    """Return what can change an answer besides the documents, as text, for replays."""
    chosen = {**asdict(settings.retrieval()), **asdict(settings.generation())}
    return {**{name: str(value) for name, value in chosen.items()}, "generator": models.generator_name}
