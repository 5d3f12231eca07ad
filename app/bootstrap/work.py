"""The long work of a server, composed: every kind of job, and what runs by itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.answer.model_test import ModelTester
from app.bootstrap.evaluation import EvaluationWorkshop, compose_evaluation
from app.bootstrap.foundation import AnswerParts, Foundation, open_runner
from app.bootstrap.libraries import Adopter, Libraries, fingerprint_of
from app.core.errors import OriginalsAway
from app.core.ports import Embedder
from app.core.trace import Trace
from app.core.types import Hit, Library
from app.evaluation.comparison import DEPTH, Search
from app.ingest.bulk import BulkIndexer
from app.ingest.sources.folders import bundled
from app.jobs.bulk import BulkIndexJob, BulkPlanJob, BulkService
from app.jobs.ingest import (
    ArxivJob,
    Collecting,
    OriginalFiles,
    SamplesJob,
    SeedPolicy,
    request_backfill,
    seed,
)
from app.jobs.kinds import (
    ARXIV,
    CALIBRATE,
    PULL,
    SAMPLES,
    register_bulk,
    register_ingest,
    resume_backfills,
)
from app.jobs.maintenance import (
    EvaluationService,
    Housekeeper,
    ModelTestService,
    PullJob,
    StoreMaintenance,
    register_maintenance,
    register_model_tests,
)
from app.jobs.reembed import REEMBED, CalibrateJob, ReembedJob, Target
from app.jobs.runner import JobRunner, per_library
from app.models.arxiv import ArxivClient
from app.retrieval.pipeline import Retriever
from app.retrieval.reading import Calibrations
from app.retrieval.request import RetrievalOptions, SearchRequest
from app.settings import Settings
from app.storage.options import IndexOptions
from app.storage.store import IndexStore

# The bulk jobs, composed.


@contextmanager
def scratch_index(options: IndexOptions) -> Iterator[IndexStore]:
    """Yield an empty index on the data's disk, so that measurements fit it."""
    with tempfile.TemporaryDirectory(prefix="plan-", dir=options.data_dir) as directory:
        there = Path(directory)
        with IndexStore(
            replace(
                options,
                data_dir=there,
                chroma_dir=there / "chroma",
                database_url="",
                search_url="",
                originals_url="",
            ),
            vector_store="off",
        ) as store:
            yield store


def compose_bulk(
    settings: Settings, store: IndexStore, libraries: Libraries, jobs: JobRunner
) -> BulkService:
    """Register the bulk jobs over an open store."""
    index = BulkIndexJob(
        indexer=BulkIndexer(store.writer, store.ledger),
        catalog=store.catalog,
        options=settings.ingest(),
        later=lambda library: request_backfill(jobs, library),
    )
    plan = BulkPlanJob(
        scratch=lambda: scratch_index(store.options),
        embedder_of=lambda library: libraries.wired(library).embedder,
        options=settings.ingest(),
        data_dir=settings.data_dir,
        index=store.options,
    )
    return register_bulk(jobs, index=index, plan=plan)


# The jobs that bring documents in: uploads, samples and papers of arXiv.


@dataclass(frozen=True, slots=True)
class _SharedDirectory:
    """Originals in a directory that servers and workers should share."""

    originals: OriginalFiles

    def original_path(self, sha256: str) -> Path:
        """Return where the bytes of a hash are.

        Raises:
            OriginalsAway: Another process accepted them, in a directory of its own.
        """
        path = self.originals.original_path(sha256)
        if not path.exists():
            raise OriginalsAway(
                f"an upload was kept by another process: {str(path)!r} is not here. Servers and"
                " workers need one ORIGINALS_URL, or one directory DATA_DIR/originals"
            )
        return path

    def delete_original(self, sha256: str) -> None:
        self.originals.delete_original(sha256)


def register_collecting(
    jobs: JobRunner, store: IndexStore, libraries: Libraries, settings: Settings
) -> None:
    """Register the jobs that read documents into a library."""
    hosts, alone = settings.providers(), settings.originals_url or not settings.is_shared
    parts = Collecting(
        jobs,
        store.catalog,
        pipeline_of=lambda library: libraries.wired(library).pipeline,
        backfill_of=libraries.backfill,
    )
    register_ingest(parts, store.writer if alone else _SharedDirectory(store.writer), store.jobs)
    jobs.register(SAMPLES, SamplesJob(parts, bundled(), store.writer), exclusive=per_library)
    client = ArxivClient(
        hosts.arxiv_base_url, max_bytes=hosts.arxiv_max_bytes, interval_s=hosts.arxiv_interval_s
    )
    jobs.register(ARXIV, ArxivJob(parts, client), lane="network")


# The re-embedding job, composed.


def register_reembed(
    jobs: JobRunner,
    settings: Settings,
    store: IndexStore,
    *,
    live_embedder: Callable[[Library], Embedder | None],
    embedder_named: Callable[[Library, str | None, str | None], Embedder],
) -> None:
    """Register `reembed` over an open store."""
    ingest, retrieval = settings.ingest(), settings.retrieval()

    def target_of(library: Library, provider: str | None, model: str | None) -> Target:
        embedder = embedder_named(library, provider, model)
        return Target(embedder, fingerprint_of(embedder.identity, ingest))

    job = ReembedJob(
        reembedding=store.reembedding,
        catalog=store.catalog,
        options=ingest,
        target_of=target_of,
        live_embedder=live_embedder,
        searcher=lambda library, build, embedder, plain: build_search(
            store, retrieval, library, build, embedder, plain=plain
        ),
        later=lambda library: request_backfill(jobs, library),
    )
    jobs.register(REEMBED, job, lane="background", exclusive=per_library)


def build_search(
    store: IndexStore,
    options: RetrievalOptions,
    library: Library,
    build: int,
    embedder: Embedder,
    *,
    plain: bool,
) -> Search:
    """Return a search over one build that keeps nothing.

    Args:
        store: Open.
        options: Of the server's own searches.
        library: What is searched.
        build: Whose vectors.
        embedder: That made them.
        plain: The nearest neighbours alone, so that words do not hide what the vectors are worth.
    """
    view = store.reembedding.view(build)
    retriever = Retriever(store.catalog, view, store.lexical, embedder, options)

    def search(question: str) -> Sequence[Hit]:
        return retriever.retrieve(
            SearchRequest(question, library, top_k=DEPTH + 1, keep_weak=True), Trace()
        ).hits

    def neighbours(question: str) -> Sequence[Hit]:
        found = {
            hit.chunk_id: hit.score
            for hit in view.search(library, embedder.embed_query(question), DEPTH + 1)
        }
        passages = store.catalog.passages(library, list(found))
        return [Hit(passage, -found[chunk_id]) for chunk_id, passage in passages.items()]

    return neighbours if plain else search


START_APART_S = 10.0
"""Of processes that start together, one asks for what is missing."""


@dataclass(frozen=True, slots=True)
class Work:
    """The job runner with what submits to it."""

    jobs: JobRunner
    bulk: BulkService
    evaluations: EvaluationService
    model_tests: ModelTestService
    maintenance: StoreMaintenance


def compose_work(base: Foundation, answering: AnswerParts, stack: ExitStack) -> Work:
    """Register every kind of job over an open store; nothing runs yet.

    `stack` closes the connections of a queue that several processes share.
    """
    settings, store = base.settings, base.store
    jobs = open_runner(base, stack)
    register_collecting(jobs, store, base.libraries, settings)
    jobs.register(PULL, PullJob(base.models.pull), lane="network")
    register_reembed(
        jobs,
        settings,
        store,
        live_embedder=base.embedder_of,
        embedder_named=base.models.embedders.named,
    )
    jobs.register(CALIBRATE, _calibrate(base), lane="background", exclusive=per_library)
    evaluations = compose_evaluation(
        _workshop(base, answering), base.prompts, jobs, settings.documind_git_sha
    )
    maintenance = register_maintenance(jobs, store, evaluations.reports)
    return Work(
        jobs=jobs,
        bulk=compose_bulk(settings, store, base.libraries, jobs),
        evaluations=evaluations,
        model_tests=register_model_tests(jobs, _model_tester(base, answering), store.models),
        maintenance=maintenance,
    )


def _model_tester(base: Foundation, answering: AnswerParts) -> ModelTester:
    manner = base.settings.answer().manner
    parts = (answering.answer_writer, answering.grounder, answering.speeds)
    return ModelTester(base.models, *parts, base.store.models, manner)


def _calibrate(base: Foundation) -> CalibrateJob:
    return CalibrateJob(
        catalog=base.store.catalog,
        calibrations=Calibrations(base.store.calibrations),
        options=base.settings.retrieval(),
        made_with=base.store.made_with,
        embedder_of=base.embedder_of,
        reference=lambda: base.models.embedded.sentence_embedder,
    )


def _workshop(base: Foundation, answering: AnswerParts) -> EvaluationWorkshop:
    settings = base.settings
    return EvaluationWorkshop(
        store=base.store,
        embedder_of=base.embedder_of,
        bench_embedder=base.default_embedder,
        models=base.models,
        answer_writer=answering.answer_writer,
        grounder=answering.grounder,
        answer=settings.answer(),
        ingest=settings.ingest(),
        options=settings.retrieval(),
        reranker=base.reranker,
        folder=settings.data_dir / "evaluations",
    )


def start_work(base: Foundation, work: Work, stack: ExitStack) -> None:
    """Start the jobs and what runs by itself; `stack` ends them in reverse."""
    jobs, store = work.jobs, base.store
    jobs.start()
    stack.callback(jobs.close)
    housekeeper = Housekeeper(work.maintenance, jobs)
    housekeeper.start()
    stack.callback(housekeeper.close)
    adopter = Adopter(base.embedders, store, jobs)
    adopter.start()
    stack.callback(adopter.close)
    if not jobs.turn("start", START_APART_S):  # another process has just asked for the same
        return
    resume_backfills(jobs, store.catalog, base.libraries.lacks_codes)
    seed(
        seed_policy(base.settings),
        store.catalog,
        lambda purge: jobs.submit(SAMPLES, {"purge": purge}, unit="files", coalesce=True),
    )


def seed_policy(settings: Settings) -> SeedPolicy:
    """Return what the configuration says of the samples."""
    return SeedPolicy(
        settings.data_dir,
        settings.samples,
        settings.seed_sample_docs,
        settings.sample_corpus_version,
    )
