"""The composition for tests of the edge: a real index, real parsing in this process, fakes where a model would be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.answer.checking import CheckService, SecondOpinion
from app.answer.completion import Completions
from app.answer.conversation import ConversationMemory
from app.answer.model_test import ModelTester
from app.answer.models import ModelSpeeds
from app.answer.records import AnswerJournal
from app.answer.research import Research
from app.answer.search import LibrarySearcher
from app.answer.service import RAGService
from app.answer.suggestions import Suggester
from app.answer.writing import AnswerWriter
from app.bootstrap.evaluation import EvaluationWorkshop, compose_evaluation
from app.bootstrap.work import scratch_index
from app.core.cancel import CancelToken
from app.core.errors import ProviderUnreachable
from app.core.ports import Generator
from app.core.trace import SILENT, Calls, Spans, Trace
from app.core.types import (
    EmbeddingState,
    Fingerprint,
    HostStatus,
    Library,
    ModelReport,
    ServiceStatus,
)
from app.evaluation.report import ReportArchive
from app.generation.context import TokenCalibrator
from app.generation.grounding import Grounder
from app.generation.injection import inspect
from app.generation.prompts import PromptLibrary
from app.generation.quoting import ExtractiveGenerator
from app.generation.support import SupportJudge
from app.ingest.bulk import BulkIndexer
from app.ingest.embedding import VectorBackfill
from app.ingest.parsers import DirectParser
from app.ingest.pipeline import IngestPipeline
from app.ingest.sources.folders import bundled
from app.jobs.bulk import BulkIndexJob, BulkPlanJob, BulkService
from app.jobs.ingest import ArxivJob, Collecting, SamplesJob, request_backfill
from app.jobs.kinds import (
    ARXIV,
    CALIBRATE,
    PULL,
    SAMPLES,
    register_bulk,
    register_ingest,
)
from app.jobs.maintenance import (
    EvaluationService,
    ModelTestService,
    PullJob,
    register_maintenance,
    register_model_tests,
)
from app.jobs.reembed import CalibrateJob
from app.jobs.runner import per_library
from app.jobs.worker import LocalRunner
from app.models.arxiv import ArxivClient
from app.models.ollama import PullProgress
from app.retrieval.pipeline import Retriever
from app.retrieval.reading import Calibrations
from app.retrieval.request import Retrieval, SearchRequest
from app.settings import Settings
from app.storage.catalog.answers import SqliteAnswerStore, SqliteConversationStore
from app.storage.catalog.documents import SqliteCatalog
from app.storage.catalog.state import SqliteLedger, SyncClaims
from app.storage.options import IndexOptions
from app.storage.status import ProjectionStatus
from app.storage.store import IndexStore
from app.storage.writer import CatalogIndexWriter
from tests.fakes.embedders import HashEmbedder
from tests.fakes.generators import FixedModels

PROMPTS = PromptLibrary.load()


@dataclass
class LocalServices:
    """What the routes use; `models` decides who answers (nobody: quotes)."""

    settings: Settings
    store: IndexStore
    jobs: LocalRunner
    bulk: BulkService
    embedder: HashEmbedder
    models: FixedModels
    hosts: list[HostStatus] = field(default_factory=list)
    pages: DirectParser = field(init=False)
    retriever: LocalServices = field(init=False)
    memory: ConversationMemory = field(init=False)
    rag: RAGService = field(init=False)
    checker: CheckService = field(init=False)
    second_opinion: SecondOpinion = field(init=False)
    suggester: Suggester = field(init=False)
    evaluations: EvaluationService = field(init=False)
    model_tests: ModelTestService = field(init=False)
    spans: Spans = SILENT

    def __post_init__(self) -> None:
        options = self.settings.answer()
        self.pages = DirectParser(self.settings.ingest())
        self.second_opinion = SecondOpinion(self.models, PROMPTS)
        self.retriever = self
        self.memory = ConversationMemory(self.store.conversations, options)
        self.rag = RAGService(
            catalog=self.store.catalog,
            models=self.models,
            research=Research(
                self.store.catalog,
                lambda _: LibrarySearcher(self._retriever(), self.embedder),
                AnswerWriter(
                    ExtractiveGenerator(), PROMPTS, TokenCalibrator(), self.settings.generation()
                ),
                Grounder(self.settings.generation()),
                self.memory,
                ModelSpeeds(self.store.models),
                options,
                self.settings.retrieval().top_k,
            ),
            journal=AnswerJournal(self.store.answers, options, dict),
            spans=self.spans,
        )
        self.checker = CheckService(
            searcher_for=lambda _: LibrarySearcher(self._retriever(), self.embedder),
            judge=SupportJudge(),
            options=self.settings.generation(),
        )

        self.suggester = Suggester(
            catalog=self.store.catalog,
            searcher_for=lambda _: LibrarySearcher(self._retriever(), self.embedder),
            extractive=ExtractiveGenerator(),
        )

    @property
    def parser(self) -> DirectParser:
        return self.pages

    @property
    def completions(self) -> Completions:
        return Completions(self.models, PROMPTS)

    @property
    def engine_calls(self) -> Sequence[Calls]:
        return self.store.calls

    def missing(self) -> tuple[str, ...]:
        return self.store.missing()

    def _retriever(self) -> Retriever:
        store = self.store
        return Retriever(
            store.catalog,
            store.vectors,
            store.lexical,
            self.embedder,
            self.settings.retrieval(),
            writer=store.writer,
        )

    def workshop(self) -> EvaluationWorkshop:
        return EvaluationWorkshop(
            store=self.store,
            embedder_of=lambda _: self.embedder,
            bench_embedder=lambda: self.embedder,
            models=self.models,
            answer_writer=AnswerWriter(
                ExtractiveGenerator(), PROMPTS, TokenCalibrator(), self.settings.generation()
            ),
            grounder=Grounder(self.settings.generation()),
            answer=self.settings.answer(),
            ingest=self.settings.ingest(),
            options=self.settings.retrieval(),
            reranker=None,
            folder=self.settings.data_dir / "evaluations",
        )

    def tester(self) -> ModelTester:
        return ModelTester(
            self.models,
            AnswerWriter(
                ExtractiveGenerator(), PROMPTS, TokenCalibrator(), self.settings.generation()
            ),
            Grounder(self.settings.generation()),
            ModelSpeeds(self.store.models),
            self.store.models,
            self.settings.answer().manner,
        )

    def retrieve(self, request: SearchRequest, trace: Trace) -> Retrieval:
        return self._retriever().retrieve(request, trace)

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
    def ledger(self) -> SqliteLedger:
        return self.store.ledger

    @property
    def answers(self) -> SqliteAnswerStore:
        return self.store.answers

    @property
    def conversations(self) -> SqliteConversationStore:
        return self.store.conversations

    @property
    def generator(self) -> Generator:
        return self.models.model or ExtractiveGenerator()

    def model_report(self) -> ModelReport:
        return ModelReport(
            installed=(("llama3.2:latest", 2_000_000_000),),
            chat=("llama3.2:latest",),
            loaded=("llama3.2:latest",),
            in_use={"answers": self.generator.name},
        )

    def choose_model(self, model: str) -> None:
        self.store.models.choose(model)

    def status(self) -> ServiceStatus:
        builds = {library.value: self.projections.build_state(library) for library in Library}
        identity = self.embedder.identity
        state = EmbeddingState(f"{identity.provider}:{identity.model}", reachable=True)
        embedding = {library.value: state for library in Library}
        return ServiceStatus(tuple(self.hosts), self.projections.watermarks(), builds, embedding)


def _register_collecting(
    jobs: LocalRunner, store: IndexStore, embedder: HashEmbedder, settings: Settings
) -> None:
    """Samples as bundled, and an arXiv that nobody runs."""
    ingest = settings.ingest()

    def pipeline_of(_: Library) -> IngestPipeline:
        return IngestPipeline(DirectParser(ingest), store.writer, embedder, ingest, inspect=inspect)

    def backfill_of(_: Library) -> VectorBackfill:
        return VectorBackfill(store.writer, embedder, ingest)

    parts = Collecting(jobs, store.catalog, pipeline_of, backfill_of)
    register_ingest(parts, store.writer, store.jobs)
    jobs.register(SAMPLES, SamplesJob(parts, bundled(), store.writer), exclusive=per_library)
    arxiv_host = (
        settings.arxiv_base_url
        if "arxiv_base_url" in settings.model_fields_set
        else "http://127.0.0.1:9"
    )
    jobs.register(ARXIV, ArxivJob(parts, ArxivClient(arxiv_host, interval_s=0.0)), lane="network")


Pull = Callable[[str, CancelToken], Iterable[PullProgress]]


def _pull_nothing(model: str, cancel: CancelToken) -> Iterable[PullProgress]:
    raise ProviderUnreachable(f"no host to pull {model!r} into")


@contextmanager
def local_services(
    settings: Settings,
    models: FixedModels | None = None,
    pull: Pull | None = None,
    spans: Spans = SILENT,
) -> Iterator[LocalServices]:
    """Open everything in the settings' data directory and close it again."""
    directory = settings.data_dir
    options = IndexOptions(
        directory, directory / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000
    )
    embedder = HashEmbedder(64)
    identity = embedder.identity
    with IndexStore(options) as store:
        for library in Library:
            store.writer.claim(
                library,
                Fingerprint(
                    identity.model, identity.digest, identity.dimension, "", "", "test", "en_stem"
                ),
            )
        jobs = LocalRunner(store.jobs, settings.jobs(), spans=spans)
        jobs.register(PULL, PullJob(pull or _pull_nothing), lane="network")
        _register_collecting(jobs, store, embedder, settings)
        register_maintenance(jobs, store, ReportArchive(settings.data_dir / "evaluations"))
        local = LocalServices(
            settings,
            store,
            jobs,
            _register_bulk(jobs, store, embedder, settings),
            embedder,
            models or FixedModels(),
            spans=spans,
        )
        calibrate = CalibrateJob(
            catalog=store.catalog,
            calibrations=Calibrations(store.calibrations),
            options=settings.retrieval(),
            made_with=store.made_with,
            embedder_of=lambda _: embedder,
            reference=lambda: embedder,
        )
        jobs.register(CALIBRATE, calibrate, lane="background", exclusive=per_library)
        local.model_tests = register_model_tests(jobs, local.tester(), store.models)
        local.evaluations = compose_evaluation(local.workshop(), PROMPTS, jobs, "0123456789abcdef")
        jobs.start()
        try:
            yield local
        finally:
            jobs.close()


def _register_bulk(
    jobs: LocalRunner, store: IndexStore, embedder: HashEmbedder, settings: Settings
) -> BulkService:
    ingest = settings.ingest()
    return register_bulk(
        jobs,
        index=BulkIndexJob(
            indexer=BulkIndexer(store.writer, store.ledger),
            catalog=store.catalog,
            options=ingest,
            later=lambda library: request_backfill(jobs, library),
        ),
        plan=BulkPlanJob(
            scratch=lambda: scratch_index(store.options),
            embedder_of=lambda _: embedder,
            options=ingest,
            data_dir=settings.data_dir,
            index=store.options,
        ),
    )
