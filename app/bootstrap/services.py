"""Everything a server runs on, made in order and closed in reverse."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial

from app.answer.checking import CheckService
from app.answer.completion import Completions
from app.answer.judging import ClaimJudge
from app.answer.memory import ConversationMemory
from app.answer.model_test import ModelTester
from app.answer.models import ModelSpeeds
from app.answer.records import AnswerJournal
from app.answer.research import Research
from app.answer.service import RAGService
from app.answer.suggestions import Suggester
from app.answer.writing import AnswerWriter
from app.bootstrap.embedders import Calibrator, LibraryEmbedders
from app.bootstrap.inert import effective_thresholds, ineffective_settings
from app.bootstrap.libraries import Libraries
from app.bootstrap.models import Models, delete_graphs
from app.core.cancel import Periodic
from app.core.errors import InvalidInput, StorageError
from app.core.ids import checkout_sha, package_version, without_credentials
from app.core.ports import Embedder, Generator, Parser
from app.core.trace import SILENT, Spans
from app.core.types import Library, ModelReport, ServiceStatus
from app.evaluation.answers import Judge
from app.evaluation.report import ReportArchive
from app.evaluation.session import Session
from app.evaluation.workshop import PREFIX, Workshop
from app.generation.check.grounding import Grounder
from app.generation.language.tokens import TokenCalibrator
from app.generation.prompt.prompts import PromptLibrary
from app.ingest.bulk import BulkIndexer
from app.ingest.sandbox import SandboxedParser
from app.ingest.sources.folders import bundled
from app.jobs.bulk import BulkIndexJob, BulkPlanJob, BulkService
from app.jobs.corrections import Corrections
from app.jobs.ingest import (
    Collecting,
    FetchJob,
    SamplesJob,
    request_backfill,
    request_ocr,
    request_rereading,
)
from app.jobs.kinds import (
    ARXIV,
    CALIBRATE,
    FETCH,
    MARKER,
    PULL,
    SAMPLES,
    register_ingest,
    resume_backfills,
    seed,
)
from app.jobs.maintenance import (
    LOOK_EVERY_S,
    LOOK_SHARED_S,
    EvaluationService,
    Housekeeper,
    Maintenance,
    ModelTestService,
    PullJob,
)
from app.jobs.reembed import REEMBED, CalibrateJob, ReembedJob
from app.jobs.runner import JobRunner, per_library
from app.jobs.zotero import ZOTERO, ZoteroJob
from app.models.arxiv import ArxivClient
from app.models.webpage import WebClient
from app.models.zotero import open_zotero
from app.retrieval.scoring import Calibrations
from app.settings import Settings
from app.storage.files.lock import DirectoryLock
from app.storage.store import IndexStore

logger = logging.getLogger(__name__)

START_APART_S = 10.0
"""Of processes that start together, one asks for what is missing."""
USE_WRITTEN_S = 600.0
"""Between two writes of when keys were used; a stop writes it too."""


class Services:
    """The parts of a server, composed over an open store; nothing runs before `start`."""

    def __init__(
        self,
        settings: Settings,
        store: IndexStore,
        models: Models,
        parser: Parser,
        arxiv: ArxivClient,
        pages: WebClient,
        spans: Spans = SILENT,
        recogniser: Parser | None = None,
    ) -> None:
        """Compose what answers and what works over what is open.

        Raises:
            InvalidInput: A setting or a prompt file is wrong.
        """
        self.settings = settings
        self.spans = spans
        self.parser = parser
        self.store = store
        self.catalog = store.catalog
        self.writer = store.writer
        self.models = models
        self.pages = pages
        self.prompts = PromptLibrary.load(settings.prompts_dir)
        delete_graphs(settings.data_dir / "models")
        self.embedders = LibraryEmbedders(store, models)
        self.libraries = Libraries(
            store,
            models.embedder_of,
            parser,
            settings.ingest(),
            settings.retrieval(),
            models.embedded.reader,
            self.embedders.notices,
            lambda: models.embedded.sentence_embedder,
            models.for_questions,
            lambda *document: request_ocr(self.jobs, *document),
        )

        answer, generation = settings.answer(), settings.generation()
        self.memory = ConversationMemory(store.conversations, answer)
        writer = AnswerWriter(
            models.embedded.extractive, self.prompts, TokenCalibrator(), generation
        )
        grounder = Grounder(models.embedded.reader, self.prompts.instructions())
        speeds = ModelSpeeds(store.models)
        self.rag = RAGService(
            catalog=store.catalog,
            models=models,
            research=Research(
                store.catalog,
                self.libraries.searcher,
                writer,
                grounder,
                self.memory,
                speeds,
                answer,
                settings.retrieval().top_k,
                settings.fusion,
                settings.enable_fallback_retrieval,
            ),
            journal=AnswerJournal(store.answers, answer, self._influences),
            spans=spans,
        )
        self.completions = Completions(models, self.prompts)
        self.checker = CheckService(
            searcher_for=self.libraries.searcher,
            documents=store.catalog.every_document,
            reader=models.embedded.reader,
            prompts=self.prompts.instructions(),
        )
        self.judge = ClaimJudge(models, self.prompts, answer.check_by)
        self.suggester = Suggester(
            catalog=store.catalog,
            searcher_for=self.libraries.searcher,
            extractive=models.embedded.extractive,
            quiet=self.rag.under_way.ended,
        )

        jobs = self.jobs = JobRunner(
            store.jobs, settings.jobs(), spans=spans, alone=not settings.is_shared
        )
        self._register_ingest(arxiv, recogniser or parser)
        jobs.register(PULL, PullJob(models.pull), lane="network")
        register_reembed(jobs, settings, store, models.embedder_named)
        calibrate = CalibrateJob(
            catalog=store.catalog,
            calibrations=Calibrations(store.calibrations),
            options=settings.retrieval(),
            made_with=store.made_with,
            embedder_of=self._embedder_of,
            reference=lambda: models.embedded.sentence_embedder,
        )
        jobs.register(CALIBRATE, calibrate, lane="background", exclusive=per_library)
        workshop = Workshop(
            store=store,
            embedder_of=self._embedder_of,
            bench_embedder=lambda: (
                self._embedder_of(settings.library) or models.embedded.sentence_embedder
            ),
            models=models,
            answer_writer=writer,
            grounder=grounder,
            answer=answer,
            ingest=settings.ingest(),
            options=settings.retrieval(),
            reader=models.embedded.reader,
            folder=settings.data_dir / "evaluations",
        )
        self.evaluations = compose_evaluation(
            workshop, self.prompts, jobs, settings.documind_git_sha
        )
        self.maintenance = Maintenance(store, self.evaluations.reports, self._backfill_later)
        self.maintenance.register(jobs)
        self.bulk = BulkService(
            jobs,
            index=BulkIndexJob(
                indexer=BulkIndexer(store.writer, store.ledger),
                catalog=store.catalog,
                options=settings.ingest(),
                later=self._backfill_later,
            ),
            plan=BulkPlanJob(
                embedder_of=self._embedder_of,
                options=settings.ingest(),
                data_dir=settings.data_dir,
                index=store.options,
            ),
        )
        tester = ModelTester(
            models, writer, grounder, self.checker, speeds, store.models, answer.manner
        )
        self.model_tests = ModelTestService(jobs, tester, store.models)

    def _embedder_of(self, library: Library) -> Embedder | None:
        """Return a library's embedder as it is now; None while it cannot be had."""
        return self.libraries.runtime(library).embedder

    def _backfill_later(self, library: Library) -> object:
        return request_backfill(self.jobs, library)

    def _influences(self) -> Mapping[str, str]:
        """Return what can change an answer besides the documents, as text."""
        chosen = {**asdict(self.settings.retrieval()), **asdict(self.settings.generation())}
        del chosen["explicit"]  # what an option is counts, not who set it
        return {
            **{name: str(value) for name, value in chosen.items()},
            "generator": self.models.generator_name,
        }

    def _register_ingest(self, arxiv: ArxivClient, recogniser: Parser) -> None:
        jobs, store, libraries = self.jobs, self.store, self.libraries
        parts = Collecting(
            jobs,
            store.catalog,
            store.writer,
            pipeline_of=lambda library: libraries.runtime(library).pipeline,
            backfill_of=libraries.backfill,
            shared=self.settings.is_shared and not self.settings.originals_url,
        )
        register_ingest(parts, store.jobs, recogniser)
        self.corrections = Corrections(parts, self.settings.ingest().max_characters)
        jobs.register(SAMPLES, SamplesJob(parts, bundled()), exclusive=per_library)
        jobs.register(ARXIV, FetchJob(parts, arxiv.fetch), lane="network")
        jobs.register(FETCH, FetchJob(parts, self.pages.fetch), lane="network")
        zotero = ZoteroJob(
            parts,
            store.claims,
            store.labels,
            partial(open_zotero, self.settings.zotero()),
            self.settings.data_dir,
        )
        jobs.register(ZOTERO, zotero, lane="network", exclusive=per_library)

    def start(self, stack: ExitStack) -> None:
        """Start the jobs and what runs by itself; `stack` ends them in reverse."""
        jobs = self.jobs
        jobs.start()
        stack.callback(jobs.close)
        stack.enter_context(Periodic("use of keys", self._flush_keys, USE_WRITTEN_S))
        every_s = LOOK_SHARED_S if self.settings.is_shared else LOOK_EVERY_S
        housekeeper = Housekeeper(self.maintenance, jobs, every_s)
        stack.enter_context(Periodic("housekeeper", housekeeper.look_for_s, every_s))
        calibrator = Calibrator(self.embedders.calibrations, self.store, jobs)
        stack.enter_context(Periodic("calibrator", calibrator.look_at_all))
        if not jobs.acquire_interval(
            "start", START_APART_S
        ):  # another process has just asked for the same
            return
        request_rereading(jobs, self.catalog)
        resume_backfills(jobs, self.catalog, self.libraries.lacks_codes)
        settings = self.settings
        seed(
            jobs,
            self.catalog,
            settings.data_dir / MARKER,
            settings.sample_corpus_version,
            on_empty=settings.samples,
            keep_current=settings.seed_sample_docs,
        )

    def _flush_keys(self) -> float:
        """Write when keys were used; an edge of its thread."""
        try:
            self.store.keys.flush()
        except StorageError as error:
            logger.warning("when keys were used could not be written: %s", error.message)
        return USE_WRITTEN_S

    @property
    def embedder(self) -> Embedder:
        """The embedder of questions to the default library, or the embedded model until then."""
        return (
            self.libraries.runtime(self.settings.library).questions
            or self.models.embedded.sentence_embedder
        )

    @property
    def generator(self) -> Generator:
        return self.models.select().model or self.models.embedded.extractive

    def model_report(self) -> ModelReport:
        return self.models.report(self.embedders.state(self.settings.library).embedder)

    def status(self) -> ServiceStatus:
        """Return how the parts are; asks model hosts, never runs a model."""
        options, calibrations = self.settings.retrieval(), Calibrations(self.store.calibrations)
        made_with = {library: self.store.made_with(library) for library in Library}
        return ServiceStatus(
            self.models.hosts(),
            self.store.projector.watermarks(),
            {library.value: str(self.store.projector.state(library)) for library in Library},
            {library.value: self.embedders.state(library) for library in Library},
            {
                library.value: effective_thresholds(
                    options, library, calibrations.of(made) if made else None
                )
                for library, made in made_with.items()
            },
            tuple(ineffective_settings(self.settings)),
            self.models.select().why,
        )


@contextmanager
def build_services(settings: Settings, lock: DirectoryLock | None = None) -> Iterator[Services]:
    """Open the data directory and start everything; on leaving, everything is closed.

    Without `lock`, which the caller holds, it is taken here.

    Raises:
        Locked: Another process owns the data directory.
        IndexDamaged: The catalog is damaged; the message names the cure.
        InvalidInput: A setting or a prompt file is wrong.
    """
    with ExitStack() as stack:
        if lock is None:
            stack.enter_context(DirectoryLock([settings.data_dir, settings.chroma_dir]))
        spans = stack.enter_context(open_spans(settings, package_version()))
        for line in ineffective_settings(settings):
            logger.warning("%s", line)
        PromptLibrary.load(settings.prompts_dir)  # a wrong file is told before the store opens
        parser = stack.enter_context(SandboxedParser(settings.ingest()))
        parser.warm()  # it is ready when the store is
        recogniser = stack.enter_context(SandboxedParser(settings.ingest().of_recogniser()))
        store = stack.enter_context(
            IndexStore(settings.index(), crash_at=settings.documind_crash_at or None)
        )
        hosts = settings.providers()
        models = stack.enter_context(Models(hosts, settings.generation(), store.models))
        arxiv = ArxivClient(
            hosts.arxiv_base_url, max_bytes=hosts.arxiv_max_bytes, interval_s=hosts.arxiv_interval_s
        )
        pages = WebClient(max_bytes=settings.ingest().max_file_bytes)
        services = Services(settings, store, models, parser, arxiv, pages, spans, recogniser)
        services.start(stack)
        yield services


@contextmanager
def open_spans(settings: Settings, release: str) -> Iterator[Spans]:
    """Yield where spans begin; on leaving, what is left is sent.

    A collector that cannot be used is told in the log and costs the spans, never the server.
    """
    endpoint = settings.otel_exporter_otlp_endpoint
    if not endpoint:
        yield SILENT
        return
    # loaded only when asked for
    from app.models.telemetry import OtelSpans, otlp_exporter  # noqa: PLC0415

    try:
        exporter = otlp_exporter(endpoint)
    except InvalidInput as error:
        logger.warning("%s; the server goes on without traces", error.message)
        yield SILENT
        return
    logger.info("traces go to %s", without_credentials(endpoint))
    with OtelSpans(exporter, release) as spans:
        yield spans


def register_reembed(
    jobs: JobRunner,
    settings: Settings,
    store: IndexStore,
    embedder_named: Callable[[Library, str | None, str | None], Embedder],
) -> None:
    job = ReembedJob(
        reembedding=store.reembedding,
        catalog=store.catalog,
        options=settings.ingest(),
        embedder_named=embedder_named,
        later=lambda library: request_backfill(jobs, library),
    )
    jobs.register(REEMBED, job, lane="background", exclusive=per_library)


def compose_evaluation(
    workshop: Workshop, prompts: PromptLibrary, jobs: JobRunner, git_sha: str
) -> EvaluationService:
    """Return evaluations, judged by the model in use then; what a killed run left is removed."""
    for left in workshop.folder.glob(f"{PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)

    def session() -> Session:
        model = workshop.models.select().model
        return Session(
            workshop, git_sha or checkout_sha(), Judge(model, prompts) if model else None
        )

    return EvaluationService(jobs, session, ReportArchive(workshop.folder))
