"""The long work of a server, composed: every kind of job, and what runs by itself."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from app.answer.model_test import ModelTester
from app.bootstrap.adoption import Adopter
from app.bootstrap.answering import AnswerParts
from app.bootstrap.bulk import compose_bulk
from app.bootstrap.collecting import register_collecting
from app.bootstrap.evaluation import EvaluationWorkshop, compose_evaluation
from app.bootstrap.foundation import Foundation
from app.bootstrap.maintenance import StoreMaintenance
from app.bootstrap.reembed import register_reembed
from app.bootstrap.runner import open_runner
from app.jobs.bulk import BulkService
from app.jobs.calibrate import CalibrateJob
from app.jobs.evaluation import EvaluationService
from app.jobs.housekeeping import Housekeeper
from app.jobs.kinds import CALIBRATE, PULL, SAMPLES, resume_backfills
from app.jobs.maintenance import register_maintenance
from app.jobs.models import ModelTestService, PullJob, register_model_tests
from app.jobs.registry import per_library
from app.jobs.runner import JobRunner
from app.jobs.seeding import SeedPolicy, seed
from app.retrieval.calibration import Calibrations
from app.settings import Settings

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
    maintenance = StoreMaintenance(store, evaluations.reports)
    register_maintenance(jobs, maintenance)
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
